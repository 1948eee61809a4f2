//! Batches from JSON lines.

use std::io::BufRead;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::json::reader::Decoder;

use super::super::FormatError;
use super::super::inference::{Origin, TextSchema};
use super::super::options::ReadOptions;
use super::super::rows::RowWindow;
use super::shape::Shape;
use crate::compare::with_children;

/// Appends the next line that is not blank to `line`, with a newline at its end; false at the end of the text.
pub(super) fn next_line(
    name: &str,
    bytes: &mut dyn BufRead,
    line: &mut Vec<u8>,
) -> Result<bool, FormatError> {
    loop {
        let start = line.len();
        bytes.read_until(b'\n', line).map_err(|error| FormatError::io(name, error))?;
        let added = line.get(start..).unwrap_or_default();
        if added.is_empty() {
            return Ok(false);
        }
        if !added.trim_ascii().is_empty() {
            if !added.ends_with(b"\n") {
                line.push(b'\n');
            }
            return Ok(true);
        }
        line.truncate(start);
    }
}

/// Decodes batches of lines.
pub(super) struct JsonReader {
    input: String,
    bytes: Box<dyn BufRead + Send>,
    /// The schema of whole rows.
    file_schema: SchemaRef,
    /// The schema in which rows are decoded: dictionaries are not decoded, but cast to.
    decoded_schema: SchemaRef,
    decoder: Decoder,
    origin: Origin,
    columns: Option<Vec<usize>>,
    schema: SchemaRef,
    batch_rows: usize,
    batch_bytes: usize,
    window: RowWindow,
    row: u64,
}

impl JsonReader {
    pub(super) fn new(
        input: String,
        bytes: Box<dyn BufRead + Send>,
        file: &TextSchema,
        columns: Option<Vec<usize>>,
        options: &ReadOptions,
    ) -> Result<Self, FormatError> {
        let decoded_schema = decoded_schema(&file.schema);
        let batch_rows = options.text_batch_rows(file.schema.flattened_fields().len());
        let unusable =
            |error: ArrowError| FormatError::GivenSchema { input: input.clone(), problem: error.to_string() };
        let decoder = decoder(&decoded_schema, batch_rows).map_err(unusable)?;
        let schema = match &columns {
            Some(columns) => Arc::new(file.schema.project(columns).map_err(unusable)?),
            None => file.schema.clone(),
        };
        Ok(Self {
            input,
            bytes,
            file_schema: file.schema.clone(),
            decoded_schema,
            decoder,
            origin: file.origin,
            columns,
            schema,
            batch_rows,
            batch_bytes: options.batch_bytes,
            window: RowWindow::new(options.rows.as_ref()),
            row: 0,
        })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, FormatError> {
        while !self.window.is_over() {
            let Some(lines) = self.next_lines()? else { return Ok(None) };
            let batch = self.decoded(&lines)?;
            self.row += lines.ends.len() as u64;
            let kept = self.window.kept(&batch);
            if kept.num_rows() > 0 {
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }

    /// The lines of the next batch; those before the range of rows are passed over.
    fn next_lines(&mut self) -> Result<Option<Lines>, FormatError> {
        let mut lines = Lines::default();
        let wanted =
            usize::try_from(self.window.left()).map_or(self.batch_rows, |left| left.min(self.batch_rows));
        while lines.ends.len() < wanted
            && lines.text.len() < self.batch_bytes.max(1)
            && next_line(&self.input, self.bytes.as_mut(), &mut lines.text)?
        {
            if lines.ends.is_empty() && self.window.skips(1) {
                lines.text.clear();
                self.row += 1;
            } else {
                lines.ends.push(lines.text.len());
            }
        }
        Ok((!lines.ends.is_empty()).then_some(lines))
    }

    fn decoded(&mut self, lines: &Lines) -> Result<RecordBatch, FormatError> {
        if self.origin != Origin::AllRows {
            self.check_fit(lines)?;
        }
        let batch = decode(&mut self.decoder, &lines.text, lines.ends.len());
        let batch = batch.map_err(|problem| self.located(lines, problem))?;
        self.selected(&batch)
            .map_err(|error| FormatError::malformed(&self.input, format!("rows from {}: {error}", self.row)))
    }

    fn selected(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let all: Vec<usize> = (0..self.file_schema.fields().len()).collect();
        let columns = self.columns.as_ref().unwrap_or(&all);
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let arrays = columns
            .iter()
            .zip(self.schema.fields())
            .map(|(column, field)| cast_with_options(batch.column(*column), field.data_type(), &options))
            .collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
    }

    /// Refuses what the decoder would let pass although it loses something.
    fn check_fit(&self, lines: &Lines) -> Result<(), FormatError> {
        for (index, line) in lines.iter().enumerate() {
            let mut shape = Shape::default();
            let fit = shape.add(line, 0).and_then(|()| match shape.conflict(self.file_schema.fields()) {
                Some(problem) => Err(problem),
                None => Ok(()),
            });
            fit.map_err(|problem| self.row_error(index, problem))?;
        }
        Ok(())
    }

    /// The error for the first line that cannot be decoded by itself.
    fn located(&self, lines: &Lines, problem: String) -> FormatError {
        for (index, line) in lines.iter().enumerate() {
            let alone = decoder(&self.decoded_schema, 2)
                .map_err(|error| error.to_string())
                .and_then(|mut decoder| decode(&mut decoder, line, 1));
            if let Err(problem) = alone {
                return self.row_error(index, problem);
            }
        }
        FormatError::malformed(&self.input, format!("rows from {}: {problem}", self.row))
    }

    fn row_error(&self, index: usize, problem: String) -> FormatError {
        FormatError::Row {
            input: self.input.clone(),
            row: self.row + index as u64,
            problem,
            remedy: self.origin.to_string(),
        }
    }
}

/// The text of some lines and where each ends.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Lines {
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| self.text.get(*start..*end).unwrap_or_default())
    }
}

fn decoder(schema: &SchemaRef, batch_rows: usize) -> Result<Decoder, ArrowError> {
    // Strict, since a member without a column would be lost. Numbers in text columns keep their spelling.
    ReaderBuilder::new(schema.clone())
        .with_batch_size(batch_rows)
        .with_strict_mode(true)
        .with_coerce_primitive(true)
        .build_decoder()
}

/// Decodes text that must hold `row_count` rows.
fn decode(decoder: &mut Decoder, text: &[u8], row_count: usize) -> Result<RecordBatch, String> {
    let message = |error: ArrowError| match error {
        ArrowError::JsonError(message) => message,
        other => other.to_string(),
    };
    let read_bytes = decoder.decode(text).map_err(message)?;
    if decoder.has_partial_record() {
        return Err("the line ends inside a value".to_owned());
    }
    if read_bytes < text.len() || decoder.len() != row_count {
        return Err("the line holds more than one value".to_owned());
    }
    let batch = decoder.flush().map_err(message)?;
    batch.ok_or_else(|| "the line holds no value".to_owned())
}

fn decoded_schema(schema: &Schema) -> SchemaRef {
    let decoded = |field: &FieldRef| field.as_ref().clone().with_data_type(decoded_type(field.data_type()));
    Arc::new(Schema::new(schema.fields().iter().map(decoded).collect::<Vec<_>>()))
}

/// The type with the value type in place of each dictionary type, which arrow-json does not decode.
fn decoded_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => decoded_type(values),
        other => with_children(other, decoded_type),
    }
}

impl Iterator for JsonReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for JsonReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
