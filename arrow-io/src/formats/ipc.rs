//! Arrow IPC files and streams.
//!
//! Messages are taken apart here and only their arrays are built by `arrow-ipc`, so that no length in a file is believed
//! before the bytes are there, and rows outside a range are not decoded.

mod compact;
mod dictionaries;
mod file;
mod message;
mod stream;
mod write;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;

use super::FormatError;
use super::options::ReadOptions;
use super::projection::selected_columns;
use super::reader::Opened;
use super::rows::{RowWindow, clamped, row_count_of};
use super::source::Source;
use file::IpcFile;
use stream::IpcStream;
pub(super) use write::{FileSink, StreamSink};

pub(super) fn open_file(source: Source, options: &ReadOptions) -> Result<Opened, FormatError> {
    let name = source.name.clone();
    let file = IpcFile::open(&name, source.into_file()?)?;
    let columns = selected_columns(&name, file.schema(), options.columns.as_deref())?;
    let row_count = Some(row_count_of(&clamped(options.rows.as_ref(), file.row_count())));
    let reader = IpcReader::new(name, file, columns, options)?;
    Ok(Opened { reader: Box::new(reader), row_count, counts_rows: true })
}

pub(super) fn open_stream(source: Source, options: &ReadOptions) -> Result<Opened, FormatError> {
    let name = source.name.clone();
    let stream = IpcStream::open(&name, source.into_reader()?)?;
    let columns = selected_columns(&name, stream.schema(), options.columns.as_deref())?;
    let reader = IpcReader::new(name, stream, columns, options)?;
    Ok(Opened { reader: Box::new(reader), row_count: None, counts_rows: false })
}

/// Record batches of a file or stream in order.
trait Batches: Send {
    fn schema(&self) -> &SchemaRef;

    /// The next batch with the chosen columns, after passing over batches that `window` skips; `None` at the end.
    fn next_batch(
        &mut self,
        columns: Option<&[usize]>,
        window: &mut RowWindow,
    ) -> Result<Option<RecordBatch>, FormatError>;
}

/// Cuts batches to the range and the length that the options ask for.
struct IpcReader<B> {
    batches: B,
    columns: Option<Vec<usize>>,
    schema: SchemaRef,
    batch_rows: usize,
    window: RowWindow,
    rest: Option<RecordBatch>,
}

impl<B: Batches> IpcReader<B> {
    fn new(
        name: String,
        batches: B,
        columns: Option<Vec<usize>>,
        options: &ReadOptions,
    ) -> Result<Self, FormatError> {
        let schema = match &columns {
            Some(columns) => projected(&name, batches.schema(), columns)?.into(),
            None => batches.schema().clone(),
        };
        let window = RowWindow::new(options.rows.as_ref());
        Ok(Self { batches, columns, schema, batch_rows: options.batch_rows.max(1), window, rest: None })
    }

    fn next_piece(&mut self) -> Result<Option<RecordBatch>, FormatError> {
        loop {
            if let Some(rest) = self.rest.take().filter(|rest| rest.num_rows() > 0) {
                let row_count = rest.num_rows().min(self.batch_rows);
                self.rest = Some(rest.slice(row_count, rest.num_rows() - row_count));
                return Ok(Some(rest.slice(0, row_count)));
            }
            if self.window.is_over() {
                return Ok(None);
            }
            let Some(batch) = self.batches.next_batch(self.columns.as_deref(), &mut self.window)? else {
                return Ok(None);
            };
            self.rest = Some(self.window.kept(&batch));
        }
    }
}

fn projected(name: &str, schema: &Schema, columns: &[usize]) -> Result<Schema, FormatError> {
    schema.project(columns).map_err(|error| FormatError::malformed(name, error.to_string()))
}

impl<B: Batches> Iterator for IpcReader<B> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_piece().map_err(ArrowError::from).transpose()
    }
}

impl<B: Batches> RecordBatchReader for IpcReader<B> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
