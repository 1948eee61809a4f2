//! The reader that every format hands out.

use std::fmt;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::guard::guarded;
use super::{FormatError, Progress};

/// What a format's own module returns.
pub(super) struct Opened {
    pub(super) reader: Box<dyn RecordBatchReader + Send>,
    /// Rows that the reader will return, where the format knows.
    pub(super) row_count: Option<u64>,
    /// Whether bytes are counted by row.
    pub(super) counts_rows: bool,
}

/// A [`RecordBatchReader`] over a foreign file.
///
/// Errors of the iterator are [`FormatError`]s inside [`ArrowError::ExternalError`]; [`FormatError::from_reader`] takes
/// them out. After an error the iterator ends.
pub struct BoxedReader {
    input: String,
    schema: SchemaRef,
    reader: Option<Box<dyn RecordBatchReader + Send>>,
    row_count: Option<u64>,
    rows_done: u64,
    counts_rows: bool,
    progress: Progress,
}

impl BoxedReader {
    pub(super) fn new(input: String, opened: Opened, progress: Progress) -> Self {
        Self {
            input,
            schema: opened.reader.schema(),
            reader: Some(opened.reader),
            row_count: opened.row_count,
            rows_done: 0,
            counts_rows: opened.counts_rows,
            progress,
        }
    }

    /// What messages call the input.
    pub fn input(&self) -> &str {
        &self.input
    }

    /// Rows that this reader returns in all, if that is known without reading: row ranges are counted in.
    pub fn row_count(&self) -> Option<u64> {
        self.row_count
    }

    /// A handle on how far the reader has come.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    fn count(&mut self, row_count: usize) {
        self.rows_done += row_count as u64;
        if let (true, Some(total_bytes), Some(total_rows)) =
            (self.counts_rows, self.progress.total_bytes(), self.row_count)
        {
            let scaled = u128::from(total_bytes) * u128::from(self.rows_done) / u128::from(total_rows.max(1));
            self.progress.set(u64::try_from(scaled).unwrap_or(total_bytes));
        }
    }

    /// The error if the reader ends too early: some malformed files make it stop without a word.
    fn missing_rows(&self) -> Option<FormatError> {
        let expected = self.row_count.filter(|expected| *expected != self.rows_done)?;
        let problem = format!("{expected} rows should be there, but only {} could be read", self.rows_done);
        Some(FormatError::malformed(&self.input, problem))
    }

    fn end(&mut self) {
        self.reader = None;
    }
}

impl fmt::Debug for BoxedReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedReader")
            .field("input", &self.input)
            .field("row_count", &self.row_count)
            .field("rows_done", &self.rows_done)
            .finish_non_exhaustive()
    }
}

impl Iterator for BoxedReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut()?;
        let input = &self.input;
        let step = guarded(input, || {
            reader.next().transpose().map_err(|error| FormatError::from_reader(input, error))
        });
        match step {
            Ok(Some(batch)) => {
                self.count(batch.num_rows());
                Some(Ok(batch))
            }
            Ok(None) => {
                if let Some(error) = self.missing_rows() {
                    self.end();
                    return Some(Err(error.into()));
                }
                if let Some(total_bytes) = self.progress.total_bytes() {
                    self.progress.set(total_bytes);
                }
                self.end();
                None
            }
            Err(error) => {
                self.end();
                Some(Err(error.into()))
            }
        }
    }
}

impl RecordBatchReader for BoxedReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
