//! Reading and writing foreign formats: Parquet, CSV, TSV, Arrow IPC and JSON lines.
//!
//! [`open`] gives a [`RecordBatchReader`](arrow::array::RecordBatchReader) over a file or stream, [`open_all`] over several
//! one after the other, and [`create`] a [`Sink`] for batches. Memory is bounded by the batch size, the Parquet row group
//! being written, and the prefix from which the schema of a text stream is inferred.

mod concat;
mod csv;
mod error;
mod format;
mod guard;
mod inference;
mod ipc;
mod json;
mod options;
mod parquet;
mod projection;
mod reader;
mod rows;
mod sink;
mod source;
mod support;

use std::path::Path;

use inference::{Origin, TextSchema};
use source::Source;

pub use concat::open_all;
pub use error::FormatError;
pub use format::{Format, is_gzip, is_gzip_path};
pub use options::{ArrowCompression, ParquetCompression, ReadOptions, STREAM_INFER_ROWS, WriteOptions};
pub use reader::BoxedReader;
pub use sink::{Sink, create};
pub use source::{Input, Progress};
pub use support::{UnsupportedColumn, unsupported_columns};

/// Opens a file or stream.
///
/// The format is that of the options; else, for a path, the one its extension names; else the one the first bytes give
/// away. Parquet and Arrow files need random access: from a stream they are first copied to a temporary file.
///
/// # Errors
/// [`FormatError`] says what is wrong with the input or the options, where, and what to do.
pub fn open(input: Input, options: &ReadOptions) -> Result<BoxedReader, FormatError> {
    open_known(input, None, options)
}

/// Opens an input, whose schema may be known already.
fn open_known(
    input: Input,
    known: Option<TextSchema>,
    options: &ReadOptions,
) -> Result<BoxedReader, FormatError> {
    let name = input.name();
    guard::guarded(&name, || {
        let path = match &input {
            Input::Path(path) => Some(path.clone()),
            Input::Stream(_) => None,
        };
        let source = Source::new(input)?;
        let format = resolved_format(path.as_deref(), &source, options)?;
        let known = known.or_else(|| given_schema(options));
        let progress = source.progress.clone();
        if known.is_some() && !format.is_text() {
            let problem = format!("a {format} file has a schema of its own; leave the given one out");
            return Err(FormatError::GivenSchema { input: source.name, problem });
        }
        let name = source.name.clone();
        let opened = match format {
            Format::Parquet => parquet::open(source, options)?,
            Format::Csv | Format::Tsv => csv::open(source, format, known, options)?,
            Format::JsonLines => json::open(source, known, options)?,
            Format::ArrowFile => ipc::open_file(source, options)?,
            Format::ArrowStream => ipc::open_stream(source, options)?,
            Format::Cb2t => return Err(FormatError::Cb2t { name }),
        };
        Ok(BoxedReader::new(name, opened, progress))
    })
}

fn given_schema(options: &ReadOptions) -> Option<TextSchema> {
    let schema = options.schema.clone()?;
    Some(TextSchema { schema, origin: Origin::Given, row_count: None })
}

/// The format of a file.
fn format_of(path: &Path, options: &ReadOptions) -> Result<Format, FormatError> {
    let source = Source::new(Input::Path(path.to_path_buf()))?;
    resolved_format(Some(path), &source, options)
}

fn resolved_format(
    path: Option<&Path>,
    source: &Source,
    options: &ReadOptions,
) -> Result<Format, FormatError> {
    let first_bytes = source.first_text_bytes();
    let format = match (options.format, path) {
        (Some(format), _) => format,
        (None, Some(path)) => match (Format::from_path(path), Format::sniff(&first_bytes)) {
            (Ok(format), _) | (Err(FormatError::UnknownFormat { .. }), Some(format)) => format,
            (Err(error), _) => return Err(error),
        },
        (None, None) => Format::sniff(&first_bytes)
            .ok_or_else(|| FormatError::UnknownFormat { input: source.name.clone(), clue: "first bytes" })?,
    };
    Ok(format.refined(&first_bytes))
}
