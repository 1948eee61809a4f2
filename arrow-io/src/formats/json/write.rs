//! JSON lines from batches.
//!
//! Each line names every column, nulls included. Binary values are hexadecimal text; dates, times and timestamps are ISO
//! 8601 text.

use arrow::array::RecordBatch;
use arrow::json::WriterBuilder;
use arrow::json::writer::{LineDelimited, Writer};

use super::super::options::WriteOptions;
use super::super::sink::{Output, Sink, text_batch};
use super::super::{Format, FormatError};
use super::unwritable::find_unwritable;

/// Writes objects as lines.
pub(in super::super) struct JsonSink {
    writer: Writer<Output, LineDelimited>,
    non_finite_as_null: bool,
    row: u64,
}

impl JsonSink {
    pub(in super::super) fn new(output: Output, options: &WriteOptions) -> Self {
        let writer = WriterBuilder::new().with_explicit_nulls(true).build(output);
        Self { writer, non_finite_as_null: options.non_finite_as_null, row: 0 }
    }

    fn check_values(&self, batch: &RecordBatch) -> Result<(), FormatError> {
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            if let Some(found) = find_unwritable(column, field.name(), self.non_finite_as_null) {
                return Err(FormatError::Value {
                    row: self.row + found.row as u64,
                    column: found.path,
                    problem: found.problem,
                });
            }
        }
        Ok(())
    }
}

impl Sink for JsonSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        let failed = |source| FormatError::Write { format: Format::JsonLines, source };
        let batch = text_batch(batch).map_err(failed)?;
        self.check_values(&batch)?;
        self.writer.write(&batch).map_err(failed)?;
        self.row += batch.num_rows() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), FormatError> {
        self.writer.finish().map_err(|source| FormatError::Write { format: Format::JsonLines, source })?;
        self.writer.into_inner().finish()
    }
}
