//! CSV and TSV.
//!
//! Arrow's CSV reader splits the records; every field is first text. Columns are then cast to their types, so that a field
//! that does not fit can be named with its row and column.

mod infer;
mod read;
mod write;

use std::io::{BufRead, Read};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{RecordBatchIterator, RecordBatchReader};
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::{BufReader, Format as CsvFormat};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::inference::{SharedSchema, TextSchema};
use super::options::ReadOptions;
use super::projection::selected_columns;
use super::reader::Opened;
use super::rows::{clamped, row_count_of};
use super::source::{Input, Source, TextSource};
use super::{Format, FormatError};
use infer::Inferred;
use read::CsvReader;
pub(super) use write::CsvSink;

pub(super) fn open(
    source: Source,
    format: Format,
    known: Option<TextSchema>,
    options: &ReadOptions,
) -> Result<Opened, FormatError> {
    let dialect = Dialect::new(format, options);
    let mut text = source.into_text()?;
    let header = dialect.header(&mut text)?;
    let columns = chosen_columns(&text.name, &header, options)?;
    let file = match known {
        Some(known) => matched(&text.name, &header, known)?,
        None => dialect.infer(&mut text, &header, &columns, options)?.schema(text.is_stream(), options),
    };
    let row_count = file.row_count.map(|row_count| row_count_of(&clamped(options.rows.as_ref(), row_count)));
    let schema = Arc::new(file.schema.project(&columns).map_err(|error| dialect.error(&text.name, error))?);
    let reader: Box<dyn RecordBatchReader + Send> = if header.is_empty() {
        Box::new(RecordBatchIterator::new(std::iter::empty(), schema))
    } else {
        read::check_schema(&text.name, &schema)?;
        let name = text.name.clone();
        let batch_rows = batch_rows(&mut text, header.len(), options)?;
        let builder = dialect.builder(header.len(), columns, batch_rows);
        let records = dialect.records(&name, text.into_reader()?, builder, options)?;
        Box::new(CsvReader::new(name, records, schema, file.origin, options))
    };
    Ok(Opened { reader, row_count, counts_rows: false })
}

/// One schema for several files with equal headers.
pub(super) fn infer_together(
    paths: &[PathBuf],
    format: Format,
    options: &ReadOptions,
) -> Result<SharedSchema, FormatError> {
    let dialect = Dialect::new(format, options);
    let mut row_counts = Vec::with_capacity(paths.len());
    let mut first: Option<(String, Vec<String>, Inferred)> = None;
    for path in paths {
        let mut text = Source::new(Input::Path(path.clone()))?.into_text()?;
        let header = dialect.header(&mut text)?;
        let columns = chosen_columns(&text.name, &header, options)?;
        let inferred = dialect.infer(&mut text, &header, &columns, options)?;
        row_counts.push(inferred.row_count());
        match &mut first {
            None => first = Some((text.name, header, inferred)),
            Some((first_name, first_header, together)) => {
                check_headers(first_name, first_header, &text.name, &header)?;
                together.merge(&inferred);
            }
        }
    }
    let (_, _, together) = first.ok_or(FormatError::NoInput)?;
    Ok(SharedSchema { file: together.schema(false, options), row_counts: row_counts.into_iter().collect() })
}

fn check_headers(
    first_input: &str,
    first: &[String],
    input: &str,
    found: &[String],
) -> Result<(), FormatError> {
    let column = |header: &[String], index: usize| {
        header.get(index).map_or_else(|| "absent".to_owned(), |name| format!("called {name:?}"))
    };
    match (0..first.len().max(found.len())).find(|index| first.get(*index) != found.get(*index)) {
        None => Ok(()),
        Some(index) => Err(FormatError::SchemaMismatch {
            column: format!("#{index}"),
            first_input: first_input.to_owned(),
            first: column(first, index),
            input: input.to_owned(),
            found: column(found, index),
        }),
    }
}

/// Checks that a given schema names the file's columns in the file's order.
fn matched(input: &str, header: &[String], known: TextSchema) -> Result<TextSchema, FormatError> {
    let names: Vec<&String> = known.schema.fields().iter().map(|field| field.name()).collect();
    if header.iter().ne(names.iter().copied()) {
        let index =
            (0..header.len().max(names.len())).find(|index| header.get(*index) != names.get(*index).copied());
        let name_at =
            |names: Option<&String>| names.map_or_else(|| "none".to_owned(), |name| format!("{name:?}"));
        let index = index.unwrap_or(0);
        return Err(FormatError::GivenSchema {
            input: input.to_owned(),
            problem: format!(
                "column #{index} of the file is {}, but that of the schema is {}; give one field for each of the {} \
                 columns, in their order",
                name_at(header.get(index)),
                name_at(names.get(index).copied()),
                header.len()
            ),
        });
    }
    Ok(known)
}

/// The indices of the columns to return.
fn chosen_columns(input: &str, header: &[String], options: &ReadOptions) -> Result<Vec<usize>, FormatError> {
    let fields: Vec<Field> = header.iter().map(|name| Field::new(name, DataType::Utf8View, true)).collect();
    let columns = selected_columns(input, &Schema::new(fields), options.columns.as_deref())?;
    Ok(columns.unwrap_or_else(|| (0..header.len()).collect()))
}

/// Bytes at the beginning of a text by which the length of its rows is judged.
const SAMPLE_BYTES: u64 = 256 * 1024;

/// Rows in a batch, so that its text stays within the bytes that a batch may take.
fn batch_rows(
    text: &mut TextSource,
    column_count: usize,
    options: &ReadOptions,
) -> Result<usize, FormatError> {
    let name = text.name.clone();
    let mut sample = Vec::new();
    text.look_ahead(|bytes| {
        bytes.take(SAMPLE_BYTES).read_to_end(&mut sample).map_err(|error| FormatError::io(&name, error))
    })?;
    let lines = sample.iter().filter(|byte| **byte == b'\n').count();
    let fitting = options.fitting_rows(sample.len() / lines.max(1));
    Ok(fitting.min(options.text_batch_rows(column_count)))
}

/// How the text is cut into fields.
#[derive(Debug, Clone, Copy)]
struct Dialect {
    format: Format,
    delimiter: u8,
    has_header: bool,
}

fn default_delimiter(format: Format) -> u8 {
    if format == Format::Tsv { b'\t' } else { b',' }
}

/// Records as batches of text columns.
type Records = BufReader<Box<dyn BufRead + Send>>;

impl Dialect {
    fn new(format: Format, options: &ReadOptions) -> Self {
        let delimiter = options.delimiter.unwrap_or_else(|| default_delimiter(format));
        Self { format, delimiter, has_header: options.has_header }
    }

    fn error(&self, input: &str, source: ArrowError) -> FormatError {
        FormatError::Arrow { input: input.to_owned(), format: self.format, source }
    }

    /// The column names; none if the file is empty.
    fn header(&self, text: &mut TextSource) -> Result<Vec<String>, FormatError> {
        let name = text.name.clone();
        let format = CsvFormat::default().with_header(self.has_header).with_delimiter(self.delimiter);
        let (schema, _) = text.look_ahead(|bytes| {
            format.infer_schema(bytes, Some(0)).map_err(|error| self.error(&name, error))
        })?;
        Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
    }

    fn infer(
        &self,
        text: &mut TextSource,
        header: &[String],
        columns: &[usize],
        options: &ReadOptions,
    ) -> Result<Inferred, FormatError> {
        let name = text.name.clone();
        let is_stream = text.is_stream();
        let mut inferred = Inferred::new(header, columns);
        if header.is_empty() {
            return Ok(inferred);
        }
        let batch_rows = batch_rows(text, header.len(), options)?.min(infer::BATCH_ROWS);
        text.look_ahead(|bytes| {
            let builder = self.builder(header.len(), columns.to_vec(), batch_rows);
            let records = builder.build_buffered(bytes).map_err(|error| self.error(&name, error))?;
            inferred.read(records, is_stream, options).map_err(|error| self.error(&name, error))
        })?;
        Ok(inferred)
    }

    fn records(
        &self,
        input: &str,
        bytes: Box<dyn BufRead + Send>,
        mut builder: ReaderBuilder,
        options: &ReadOptions,
    ) -> Result<Records, FormatError> {
        if let Some(rows) = &options.rows {
            // The reader adds the header to both bounds.
            let bound = |row: u64| usize::try_from(row).unwrap_or(usize::MAX).min(usize::MAX - 1);
            builder = builder.with_bounds(bound(rows.start), bound(rows.end.max(rows.start)));
        }
        builder.build_buffered(bytes).map_err(|error| self.error(input, error))
    }

    fn builder(&self, column_count: usize, columns: Vec<usize>, batch_rows: usize) -> ReaderBuilder {
        let fields: Vec<Field> =
            (0..column_count).map(|index| Field::new(format!("{index}"), DataType::Utf8View, true)).collect();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        ReaderBuilder::new(schema)
            .with_header(self.has_header)
            .with_delimiter(self.delimiter)
            .with_batch_size(batch_rows)
            .with_projection(columns)
    }
}
