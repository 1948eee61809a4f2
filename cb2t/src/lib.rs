//! Read and write `.cb2t` files from a Rust program.
//!
//! [`open`] gives a [`Table`]: schema, statistics, projection, row ranges, single rows, record batches. [`write()`] makes a file of record batches.
//! Everything goes through the codecs of the program ([`codecs::REGISTRY`]); a program with codecs of its own uses [`Table::from_source`] and [`TableWriter`] with its own
//! [`Registry`].
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::sync::Arc;
//! # use arrow::array::{ArrayRef, Int32Array, RecordBatch};
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("numbers.cb2t");
//! let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100_000));
//! let batch = RecordBatch::try_from_iter([("number", numbers)])?;
//! cb2t::write(&path, batch.schema(), [Ok(batch)], cb2t::WriterOptions::default())?;
//!
//! let table = cb2t::open(&path)?;
//! assert_eq!(table.row_count(), 100_000);
//! let rows = table.take(&[5, 77_777], None)?;
//! assert_eq!(rows.num_rows(), 2);
//! # Ok(())
//! # }
//! ```

use std::io::BufWriter;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

pub use arrow_io::TableError;
pub use arrow_io::columns::dictionary::DictionaryLimits;
pub use arrow_io::table::{
    Dictionaries, DictionarySurvey, NodeInfo, ReadOptions, Table, TableBatches, TableWriter, Verified,
    WriteReport, WriterOptions,
};
pub use codec_core::{Choice, EncodeOptions, Registry};
pub use codecs::REGISTRY;
pub use container::{AtomicFile, ContainerError, Source};

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A batch could not be had.
    #[error(transparent)]
    Batch(ArrowError),
    /// The table could not be encoded or written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The file could not be created or written.
    #[error(transparent)]
    File(#[from] ContainerError),
}

/// Opens a file. Blocks are read when needed and copied before they are proven: a file that is changed meanwhile gives an error or the values that were read, never a crash.
///
/// # Errors
/// The file cannot be read, or is no cb2t file of this version.
pub fn open(path: impl AsRef<Path>) -> Result<Table, TableError> {
    Table::open(path.as_ref(), &REGISTRY)
}

/// Opens a file by mapping it into memory: blocks are used where they lie.
///
/// # Safety
/// As [`Source::map`]: nothing may truncate or write the file while the table lives.
///
/// # Errors
/// As [`open`].
pub unsafe fn open_mapped(path: impl AsRef<Path>) -> Result<Table, TableError> {
    // SAFETY: the caller promises what `Source::map` demands.
    let source = unsafe { Source::map(path.as_ref()) }?;
    Table::from_source(source, &REGISTRY)
}

/// Opens a table from anything that reads and seeks.
///
/// # Errors
/// As [`open`].
pub fn open_stream(stream: impl std::io::Read + std::io::Seek + Send + 'static) -> Result<Table, TableError> {
    Table::from_source(Source::stream(stream)?, &REGISTRY)
}

/// Opens a table in memory.
///
/// # Errors
/// As [`open`].
pub fn open_bytes(bytes: Vec<u8>) -> Result<Table, TableError> {
    Table::from_source(Source::memory(bytes), &REGISTRY)
}

/// Writes batches of `schema` as the file `path`, which appears whole or not at all and replaces what was there.
///
/// # Errors
/// A batch that cannot be had or is of another schema, a type that cannot be stored, or a file that cannot be written.
pub fn write(
    path: impl AsRef<Path>,
    schema: SchemaRef,
    batches: impl IntoIterator<Item = Result<RecordBatch, ArrowError>>,
    options: WriterOptions,
) -> Result<WriteReport, WriteError> {
    let file = AtomicFile::create(path.as_ref(), true)?;
    let mut writer = TableWriter::new(BufWriter::new(file), schema, &REGISTRY, options)?;
    for batch in batches {
        writer.write(&batch.map_err(WriteError::Batch)?)?;
    }
    let (buffered, report) = writer.finish()?;
    let file = buffered
        .into_inner()
        .map_err(|error| ContainerError::Write { offset: report.file_bytes, source: error.into_error() })?;
    file.commit()?;
    Ok(report)
}

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
