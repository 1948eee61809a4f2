//! Row ranges of a reader.

use std::ops::Range;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

/// The part of `rows` (all if `None`) that a table of `row_count` rows has.
pub(super) fn clamped(rows: Option<&Range<u64>>, row_count: u64) -> Range<u64> {
    rows.map_or(0..row_count, |rows| {
        let end = rows.end.min(row_count);
        rows.start.min(end)..end
    })
}

/// Rows in a range; none if it is reversed.
pub(super) fn row_count_of(rows: &Range<u64>) -> u64 {
    rows.end.saturating_sub(rows.start)
}

/// Keeps a range of the rows that pass through. Once the range is over, no more is read.
pub(super) struct RowWindow {
    skip: u64,
    keep: u64,
}

impl RowWindow {
    pub(super) fn new(rows: Option<&Range<u64>>) -> Self {
        match rows {
            Some(rows) => Self { skip: rows.start, keep: row_count_of(rows) },
            None => Self { skip: 0, keep: u64::MAX },
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.keep == 0
    }

    /// Rows of the range still to come.
    pub(super) fn left(&self) -> u64 {
        self.keep
    }

    /// Whether the next `row_count` rows all come before the range; if so they count as passed.
    pub(super) fn skips(&mut self, row_count: u64) -> bool {
        let skipped = row_count <= self.skip;
        if skipped {
            self.skip -= row_count;
        }
        skipped
    }

    /// The rows of `batch` that lie in the range.
    pub(super) fn kept(&mut self, batch: &RecordBatch) -> RecordBatch {
        let row_count = batch.num_rows();
        let start = usize::try_from(self.skip).map_or(row_count, |skip| skip.min(row_count));
        let kept = usize::try_from(self.keep).map_or(row_count - start, |keep| keep.min(row_count - start));
        self.skip -= start as u64;
        self.keep -= kept as u64;
        batch.slice(start, kept)
    }
}

/// A reader cut down to a range of its rows.
pub(super) struct Windowed {
    pub(super) reader: Box<dyn RecordBatchReader + Send>,
    pub(super) window: RowWindow,
}

impl Iterator for Windowed {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.window.is_over() {
            match self.reader.next()? {
                Ok(batch) => {
                    let kept = self.window.kept(&batch);
                    if kept.num_rows() > 0 {
                        return Some(Ok(kept));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
}

impl RecordBatchReader for Windowed {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}
