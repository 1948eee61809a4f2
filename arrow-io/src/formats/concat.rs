//! Several inputs as one table.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::inference::{SharedSchema, TextSchema};
use super::options::ReadOptions;
use super::reader::{BoxedReader, Opened};
use super::rows::{RowWindow, Windowed, clamped, row_count_of};
use super::source::{Input, Progress};
use super::{FormatError, csv, format_of, json, open, open_known};

/// Opens several inputs and returns their rows one input after the other.
///
/// The inputs must agree in the names, types and nullability of their columns; metadata is that of the first. Where the
/// schema of CSV, TSV or JSON lines files is inferred, it is inferred from all of them together. Files are opened one at
/// a time.
///
/// # Errors
/// [`FormatError::SchemaMismatch`] names a column, both types and both inputs. Otherwise as [`open`].
pub fn open_all(mut inputs: Vec<Input>, options: &ReadOptions) -> Result<BoxedReader, FormatError> {
    if inputs.len() == 1
        && let Some(input) = inputs.pop()
    {
        return open(input, options);
    }
    let names: Vec<String> = inputs.iter().map(Input::name).collect();
    let shared = infer_together(&inputs, options)?;
    let mut parts = Vec::with_capacity(inputs.len());
    let mut first: Option<(String, SchemaRef)> = None;
    // Rows are cut from the concatenation, not from each part.
    let whole = ReadOptions { rows: None, ..options.clone() };
    for (index, input) in inputs.into_iter().enumerate() {
        let part = Part::new(input, shared.as_ref().map(|shared| shared.of_file(index)), &whole)?;
        match &first {
            None => first = Some((part.name.clone(), part.schema.clone())),
            Some((first_name, first_schema)) => {
                check_equal(first_name, first_schema, &part.name, &part.schema)?
            }
        }
        parts.push(part);
    }
    let (_, schema) = first.ok_or(FormatError::NoInput)?;
    let total_bytes = parts.iter().map(|part| part.progress.total_bytes()).sum::<Option<u64>>();
    let progress = Progress::of(total_bytes);
    let counts: Option<Vec<u64>> = parts.iter().map(|part| part.row_count).collect();
    let reader = Concatenated {
        options: whole,
        schema,
        parts: parts.into_iter(),
        current: None,
        progress: progress.clone(),
        earlier_bytes: 0,
    };
    let opened = match counts {
        Some(counts) => reader.cut(&counts, options.rows.as_ref()),
        None => reader.windowed(options.rows.as_ref()),
    };
    Ok(BoxedReader::new(names.join(", "), opened, progress))
}

/// A schema for all inputs together, if all are files of one text format and none was given.
fn infer_together(inputs: &[Input], options: &ReadOptions) -> Result<Option<SharedSchema>, FormatError> {
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut format = None;
    for input in inputs {
        let Input::Path(path) = input else { return Ok(None) };
        let found = format_of(path, options)?;
        if !found.is_text() || *format.get_or_insert(found) != found {
            return Ok(None);
        }
        paths.push(path.clone());
    }
    match (format, &options.schema) {
        (Some(format), None) if paths.len() > 1 => Ok(Some(match format {
            super::Format::JsonLines => json::infer_together(&paths, options)?,
            _ => csv::infer_together(&paths, format, options)?,
        })),
        _ => Ok(None),
    }
}

fn check_equal(first_input: &str, first: &Schema, input: &str, found: &Schema) -> Result<(), FormatError> {
    let length = first.fields().len().max(found.fields().len());
    for index in 0..length {
        let (expected, other) = (first.fields().get(index), found.fields().get(index));
        let described =
            |field: Option<&Arc<Field>>| field.map_or_else(|| "absent".to_owned(), |field| described(field));
        if described(expected) != described(other) {
            let name = expected.or(other).map_or_else(String::new, |field| field.name().clone());
            return Err(FormatError::SchemaMismatch {
                column: name,
                first_input: first_input.to_owned(),
                first: described(expected),
                input: input.to_owned(),
                found: described(other),
            });
        }
    }
    Ok(())
}

fn described(field: &Field) -> String {
    let nullable = if field.is_nullable() { "" } else { " not null" };
    format!("{:?} of type {}{nullable}", field.name(), field.data_type())
}

/// One input. A file is reopened when its turn comes; a stream stays open.
struct Part {
    name: String,
    schema: SchemaRef,
    row_count: Option<u64>,
    progress: Progress,
    input: PartInput,
    known: Option<TextSchema>,
    rows: Option<Range<u64>>,
}

enum PartInput {
    Path(PathBuf),
    Open(Box<BoxedReader>),
}

impl Part {
    fn new(input: Input, known: Option<TextSchema>, options: &ReadOptions) -> Result<Self, FormatError> {
        let path = match &input {
            Input::Path(path) if path.is_file() => Some(path.clone()),
            _ => None,
        };
        let reader = open_known(input, known.clone(), options)?;
        Ok(Self {
            name: reader.input().to_owned(),
            schema: reader.schema(),
            row_count: reader.row_count(),
            progress: reader.progress(),
            input: match path {
                Some(path) => PartInput::Path(path),
                None => PartInput::Open(Box::new(reader)),
            },
            known,
            rows: None,
        })
    }
}

/// Reads parts in turn.
struct Concatenated {
    options: ReadOptions,
    schema: SchemaRef,
    parts: std::vec::IntoIter<Part>,
    current: Option<Box<BoxedReader>>,
    progress: Progress,
    /// Bytes of the parts before the current one.
    earlier_bytes: u64,
}

impl Concatenated {
    /// Leaves only the rows in the range, given the row count of each part, so that other rows are not even read.
    fn cut(mut self, counts: &[u64], rows: Option<&Range<u64>>) -> Opened {
        let rows = clamped(rows, counts.iter().fold(0, |sum, count| sum.saturating_add(*count)));
        let mut start = 0_u64;
        let mut kept = Vec::new();
        for mut part in self.parts {
            let count = part.row_count.unwrap_or(0);
            let range =
                rows.start.saturating_sub(start).min(count)..rows.end.saturating_sub(start).min(count);
            if row_count_of(&range) > 0 {
                part.rows = Some(range);
                kept.push(part);
            }
            start = start.saturating_add(count);
        }
        self.parts = kept.into_iter();
        Opened { reader: Box::new(self), row_count: Some(row_count_of(&rows)), counts_rows: false }
    }

    fn windowed(self, rows: Option<&Range<u64>>) -> Opened {
        let window = RowWindow::new(rows);
        Opened {
            reader: Box::new(Windowed { reader: Box::new(self), window }),
            row_count: None,
            counts_rows: false,
        }
    }

    fn open_next(&mut self) -> Result<Option<Box<BoxedReader>>, FormatError> {
        let Some(part) = self.parts.next() else { return Ok(None) };
        Ok(Some(match part.input {
            PartInput::Open(reader) => reader,
            PartInput::Path(path) => {
                let options = ReadOptions { rows: part.rows, ..self.options.clone() };
                Box::new(open_known(Input::Path(path), part.known, &options)?)
            }
        }))
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        loop {
            if let Some(reader) = &mut self.current {
                let batch = reader.next().transpose()?;
                let done_bytes = self.earlier_bytes + reader.progress().done_bytes();
                self.progress.set(done_bytes);
                if let Some(batch) = batch {
                    return self.with_schema(&batch).map(Some);
                }
                self.earlier_bytes = done_bytes;
                self.current = None;
            }
            self.current = self.open_next()?;
            if self.current.is_none() {
                return Ok(None);
            }
        }
    }

    /// The batch with the first input's metadata.
    fn with_schema(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), batch.columns().to_vec(), &options)
    }
}

impl Iterator for Concatenated {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl RecordBatchReader for Concatenated {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
