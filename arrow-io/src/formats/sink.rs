//! Writing foreign files.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::csv::CsvSink;
use super::ipc::{FileSink, StreamSink};
use super::json::JsonSink;
use super::options::WriteOptions;
use super::parquet::ParquetSink;
use super::support::unsupported_columns;
use super::{Format, FormatError};
use crate::compare::{has_encoding, plain, with_children};

/// What messages call the output.
pub(super) const OUTPUT: &str = "<output>";

/// Takes the batches of a table. Without [`finish`](Sink::finish) the output is incomplete.
pub trait Sink: Send {
    /// Appends the rows of a batch, whose columns must have the names and types of the sink's schema.
    ///
    /// # Errors
    /// [`FormatError`] if the batch does not fit, a value cannot be held, or the output fails.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError>;

    /// Completes and flushes the output.
    ///
    /// # Errors
    /// [`FormatError`] if the output fails.
    fn finish(self: Box<Self>) -> Result<(), FormatError>;
}

/// Starts writing a table of the given schema.
///
/// # Errors
/// [`FormatError::UnsupportedColumns`], before a byte is written, if the format cannot hold a column; other
/// [`FormatError`]s if an option does not fit the format or the output fails.
pub fn create(
    output: Box<dyn Write + Send>,
    format: Format,
    schema: SchemaRef,
    options: &WriteOptions,
) -> Result<Box<dyn Sink>, FormatError> {
    let columns = unsupported_columns(format, &schema);
    if !columns.is_empty() {
        return Err(FormatError::UnsupportedColumns { format, columns });
    }
    if options.gzip && !format.is_text() {
        return Err(FormatError::malformed(
            OUTPUT,
            format!("gzip is only written around csv, tsv and jsonl, not {format}"),
        ));
    }
    let sink: Box<dyn Sink> = match format {
        Format::Parquet => Box::new(ParquetSink::new(output, schema.clone(), options)?),
        Format::Csv | Format::Tsv => {
            Box::new(CsvSink::new(Output::new(output, options.gzip), &schema, format, options)?)
        }
        Format::JsonLines => Box::new(JsonSink::new(Output::new(output, options.gzip), options)),
        Format::ArrowFile => Box::new(FileSink::new(output, &schema, options)?),
        Format::ArrowStream => Box::new(StreamSink::new(output, &schema, options)?),
        Format::Cb2t => return Err(FormatError::Cb2t { name: OUTPUT.to_owned() }),
    };
    Ok(Box::new(Checked { schema, sink }))
}

/// Refuses batches of another schema. Metadata and nullability are not compared: they do not change how values are
/// written.
struct Checked {
    schema: SchemaRef,
    sink: Box<dyn Sink>,
}

impl Sink for Checked {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        check_schema(&self.schema, batch)?;
        self.sink.write(batch)
    }

    fn finish(self: Box<Self>) -> Result<(), FormatError> {
        self.sink.finish()
    }
}

fn check_schema(schema: &Schema, batch: &RecordBatch) -> Result<(), FormatError> {
    let found = batch.schema_ref();
    let mismatch = |column: &str, expected: String, found: String| {
        Err(FormatError::BatchSchema { column: column.to_owned(), expected, found })
    };
    for (index, field) in schema.fields().iter().enumerate() {
        let expected = format!("{}", field.data_type());
        match found.fields().get(index) {
            None => return mismatch(field.name(), expected, "absent".to_owned()),
            Some(other) if other.name() != field.name() => {
                return mismatch(field.name(), expected, format!("column {:?}", other.name()));
            }
            Some(other) if other.data_type() != field.data_type() => {
                return mismatch(field.name(), expected, format!("{}", other.data_type()));
            }
            Some(_) => {}
        }
    }
    match found.fields().get(schema.fields().len()) {
        Some(extra) => mismatch(extra.name(), "absent".to_owned(), format!("{}", extra.data_type())),
        None => Ok(()),
    }
}

/// The batch as it is to be written as text: with dictionaries and runs replaced by their values, and timestamps of named
/// time zones in UTC, since the text of an offset has no seconds, which offsets of before 1912 have.
pub(super) fn text_batch(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let column = if has_encoding(column.data_type()) { plain(column)? } else { column.clone() };
        let column = cast(&column, &with_instants(column.data_type()))?;
        fields.push(Field::new(field.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

fn with_instants(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(unit, Some(zone)) if !zone.starts_with(['+', '-']) => {
            DataType::Timestamp(*unit, Some("+00:00".into()))
        }
        other => with_children(other, with_instants),
    }
}

/// Text output, gzipped or not.
pub(super) enum Output {
    Plain(BufWriter<Box<dyn Write + Send>>),
    Gzip(Box<GzEncoder<BufWriter<Box<dyn Write + Send>>>>),
}

impl Output {
    fn new(output: Box<dyn Write + Send>, gzip: bool) -> Self {
        let buffered = BufWriter::with_capacity(128 * 1024, output);
        if gzip {
            Self::Gzip(Box::new(GzEncoder::new(buffered, Compression::default())))
        } else {
            Self::Plain(buffered)
        }
    }

    pub(super) fn finish(self) -> Result<(), FormatError> {
        let flushed = match self {
            Self::Plain(mut plain) => plain.flush(),
            Self::Gzip(encoder) => encoder.finish().and_then(|mut plain| plain.flush()),
        };
        flushed.map_err(|error| FormatError::io(OUTPUT, error))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(plain) => plain.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(plain) => plain.flush(),
            // Flushing a gzip stream ends a block, which costs ratio; finish() does it once.
            Self::Gzip(_) => Ok(()),
        }
    }
}
