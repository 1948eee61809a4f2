//! A progress bar on a terminal; nothing in a pipe.

use std::time::Duration;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use indicatif::{ProgressBar, ProgressStyle};

use crate::input::Opened;

/// How far batches have been read.
pub struct BatchProgress {
    bar: ProgressBar,
    bytes: Option<arrow_io::formats::Progress>,
}

const ROWS: &str = "{msg:10} [{bar:30}] {human_pos}/{human_len} rows {eta}";

impl BatchProgress {
    /// A bar over the input's bytes, or its rows, or without an end where neither is known.
    pub fn new(what: &'static str, opened: &Opened) -> Self {
        let bytes = opened.progress.clone().filter(|progress| progress.total_bytes().is_some());
        let total_bytes = bytes.as_ref().and_then(arrow_io::formats::Progress::total_bytes);
        let bar = match (total_bytes, opened.row_count) {
            (Some(total), _) => styled(
                total,
                "{msg:10} [{bar:30}] {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}",
            ),
            (None, Some(rows)) => styled(rows, ROWS),
            (None, None) => ProgressBar::new_spinner(),
        };
        Self::started(what, bar, bytes)
    }

    /// A bar over `rows` rows.
    #[cfg(feature = "query")]
    pub fn of_rows(what: &'static str, rows: u64) -> Self {
        Self::started(what, styled(rows, ROWS), None)
    }

    fn started(what: &'static str, bar: ProgressBar, bytes: Option<arrow_io::formats::Progress>) -> Self {
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, bytes }
    }

    /// `rows` more have been read.
    pub fn add(&self, rows: u64) {
        match &self.bytes {
            Some(bytes) => self.bar.set_position(bytes.done_bytes()),
            None => self.bar.inc(rows),
        }
    }
}

impl Drop for BatchProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A reader with a bar that shows how far it has come.
pub struct Watched {
    reader: Box<dyn RecordBatchReader + Send>,
    progress: BatchProgress,
}

impl Watched {
    /// The batches of `opened`, with a bar.
    pub fn new(what: &'static str, opened: Opened) -> Self {
        let progress = BatchProgress::new(what, &opened);
        Self { reader: opened.reader, progress }
    }
}

impl Iterator for Watched {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?;
        if let Ok(batch) = &batch {
            self.progress.add(batch.num_rows() as u64);
        }
        Some(batch)
    }
}

impl RecordBatchReader for Watched {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

/// A bar over `total` steps.
pub fn steps(what: &'static str, total: u64) -> ProgressBar {
    let bar = styled(total, "{msg:10} [{bar:30}] {human_pos}/{human_len} {eta}");
    bar.set_message(what);
    bar
}

fn styled(total: u64, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style)
}
