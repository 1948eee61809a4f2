//! Writing CSV.
//!
//! A null is the null text, by default nothing at all; an empty text is `""`. Readers that heed quotes can so tell one from
//! the other. (In a table of one column both are `""`, since an empty line is no record.) Floats are written in the fewest
//! digits that give the same value back; the payload of a NaN is lost.

use std::fmt::Write as _;
use std::io::Write;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::super::options::WriteOptions;
use super::super::sink::{OUTPUT, Output, Sink, text_batch};
use super::super::{Format, FormatError};
use super::default_delimiter;

/// Writes records as text.
pub(in super::super) struct CsvSink {
    output: Output,
    format: Format,
    delimiter: u8,
    null_text: String,
    row: u64,
}

impl CsvSink {
    pub(in super::super) fn new(
        output: Output,
        schema: &Schema,
        format: Format,
        options: &WriteOptions,
    ) -> Result<Self, FormatError> {
        let mut sink = Self {
            output,
            format,
            delimiter: options.delimiter.unwrap_or_else(|| default_delimiter(format)),
            null_text: options.null_text.clone(),
            row: 0,
        };
        if options.has_header && !schema.fields().is_empty() {
            let mut line = Vec::new();
            for (index, field) in schema.fields().iter().enumerate() {
                if index > 0 {
                    line.push(sink.delimiter);
                }
                sink.push_text(&mut line, field.name());
            }
            line.push(b'\n');
            sink.put(&line)?;
        }
        Ok(sink)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.output.write_all(bytes).map_err(|error| FormatError::io(OUTPUT, error))
    }

    fn push_null(&self, line: &mut Vec<u8>, column_count: usize) {
        if column_count == 1 && self.null_text.is_empty() {
            line.extend_from_slice(b"\"\"");
        } else {
            line.extend_from_slice(self.null_text.as_bytes());
        }
    }

    fn push_text(&self, line: &mut Vec<u8>, text: &str) {
        let needs_quotes = |byte: u8| byte == self.delimiter || matches!(byte, b'"' | b'\n' | b'\r');
        if !text.is_empty() && !text.bytes().any(needs_quotes) {
            line.extend_from_slice(text.as_bytes());
            return;
        }
        line.push(b'"');
        for byte in text.bytes() {
            if byte == b'"' {
                line.push(b'"');
            }
            line.push(byte);
        }
        line.push(b'"');
    }
}

impl Sink for CsvSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        let failed = |source| FormatError::Write { format: self.format, source };
        let batch = text_batch(batch).map_err(failed)?;
        let schema = batch.schema();
        let columns = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, array)| Column::new(field.name(), array))
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        let (mut line, mut field) = (Vec::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            for (index, column) in columns.iter().enumerate() {
                if index > 0 {
                    line.push(self.delimiter);
                }
                if column.is_null(row) {
                    self.push_null(&mut line, columns.len());
                    continue;
                }
                let text = column.text(row, &mut field).map_err(|problem| FormatError::Value {
                    row: self.row,
                    column: column.name.to_owned(),
                    problem,
                })?;
                self.push_text(&mut line, text);
            }
            line.push(b'\n');
            self.put(&line)?;
            self.row += 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), FormatError> {
        self.output.finish()
    }
}

/// The values of a column as text.
struct Column<'a> {
    name: &'a str,
    nulls: Option<NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Text(&'a ArrayRef),
    Other(ArrayFormatter<'a>),
}

impl<'a> Column<'a> {
    fn new(name: &'a str, array: &'a ArrayRef) -> Result<Self, ArrowError> {
        let values = match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Values::Text(array),
            _ => Values::Other(ArrayFormatter::try_new(
                array.as_ref(),
                &FormatOptions::new().with_display_error(false),
            )?),
        };
        Ok(Self { name, nulls: array.logical_nulls(), values })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The value of a row that is not null; `buffer` may hold it.
    fn text<'b>(&'b self, row: usize, buffer: &'b mut String) -> Result<&'b str, String> {
        match &self.values {
            Values::Text(array) => Ok(match array.data_type() {
                DataType::Utf8 => array.as_string::<i32>().value(row),
                DataType::LargeUtf8 => array.as_string::<i64>().value(row),
                _ => array.as_string_view().value(row),
            }),
            Values::Other(formatter) => {
                buffer.clear();
                match write!(buffer, "{}", formatter.value(row)) {
                    Ok(()) => Ok(buffer),
                    Err(_) => Err(formatter
                        .value(row)
                        .try_to_string()
                        .err()
                        .map_or_else(|| "cannot be shown as text".to_owned(), |error| error.to_string())),
                }
            }
        }
    }
}
