//! What can go wrong with foreign files.

use std::io;

use ::parquet::errors::ParquetError;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::format::{Format, NAMES};
use super::support::UnsupportedColumn;

/// Why a foreign file could not be read or written.
///
/// Row numbers count data rows from 0, as row ranges do. `input` is the path, or `<stream>`.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The operating system or a decompressor failed.
    #[error("{name}: {source}")]
    Io {
        /// The input, or `<output>`.
        name: String,
        /// The failure.
        source: io::Error,
    },
    /// Neither the name nor the first bytes tell the format.
    #[error("{input}: cannot tell the format from the {clue}; name it: one of {NAMES}")]
    UnknownFormat {
        /// The input.
        input: String,
        /// What was looked at.
        clue: &'static str,
    },
    /// A format name that does not exist.
    #[error("no format is called {name:?}; the formats are {NAMES}")]
    UnknownFormatName {
        /// The name.
        name: String,
    },
    /// A cb2t file was given where a foreign one is expected.
    #[error("{name} is a cb2t file; open it with the cb2t reader or writer, not as a foreign format")]
    Cb2t {
        /// The input, or `<output>`.
        name: String,
    },
    /// The file does not follow its format.
    #[error("{input}: {problem}")]
    Malformed {
        /// The input.
        input: String,
        /// What is wrong, where, and what to do.
        problem: String,
    },
    /// A row does not fit the schema.
    #[error("{input}: row {row}: {problem}; {remedy}")]
    Row {
        /// The input.
        input: String,
        /// The row, from 0.
        row: u64,
        /// What is wrong, naming the column.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// Arrow's reader refused the file.
    #[error("{input}: not readable as {format}: {source}")]
    Arrow {
        /// The input.
        input: String,
        /// The format it was read as.
        format: Format,
        /// Arrow's error.
        source: ArrowError,
    },
    /// The Parquet reader or writer failed.
    #[error("{name}: {source}")]
    Parquet {
        /// The input, or `<output>`.
        name: String,
        /// Parquet's error.
        source: ParquetError,
    },
    /// The reading library panicked, which only a malformed file should bring about.
    #[error("{input}: the file is malformed, its reader gave up: {message}")]
    Panic {
        /// The input.
        input: String,
        /// The panic's message.
        message: String,
    },
    /// A selected column does not exist.
    #[error("{input}: no column {name:?}; {hint}")]
    UnknownColumn {
        /// The input.
        input: String,
        /// The selected name.
        name: String,
        /// The close names, or the first names if none is close.
        hint: String,
    },
    /// A selected column was named twice, or its name belongs to two columns.
    #[error("{input}: column {name:?} is {problem}")]
    AmbiguousColumn {
        /// The input.
        input: String,
        /// The selected name.
        name: String,
        /// What is ambiguous.
        problem: &'static str,
    },
    /// The given schema cannot be used.
    #[error("{input}: the given schema does not work: {problem}")]
    GivenSchema {
        /// The input.
        input: String,
        /// Why, naming the column.
        problem: String,
    },
    /// Inputs to be concatenated disagree about a column.
    #[error(
        "column {column:?} is {first} in {first_input}, but {found} in {input}; concatenated inputs need equal schemas"
    )]
    SchemaMismatch {
        /// The column.
        column: String,
        /// The first input.
        first_input: String,
        /// Its type in the first input.
        first: String,
        /// The other input.
        input: String,
        /// Its type in the other input.
        found: String,
    },
    /// Concatenation of nothing.
    #[error("no input was given")]
    NoInput,
    /// The format cannot hold some columns.
    #[error("{format} cannot hold {}", listed(.columns))]
    UnsupportedColumns {
        /// The format.
        format: Format,
        /// The columns.
        columns: Vec<UnsupportedColumn>,
    },
    /// A batch differs from the schema that the sink was created with.
    #[error("a batch does not fit the output: column {column:?} is {found}, expected {expected}")]
    BatchSchema {
        /// The column.
        column: String,
        /// Its type in the output's schema, or `absent`.
        expected: String,
        /// Its type in the batch, or `absent`.
        found: String,
    },
    /// A value that the format cannot hold.
    #[error("<output>: row {row}, column {column:?}: {problem}")]
    Value {
        /// The row, from 0 over all batches written.
        row: u64,
        /// The column's path.
        column: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Arrow's writer failed.
    #[error("<output>: not writable as {format}: {source}")]
    Write {
        /// The format.
        format: Format,
        /// Arrow's error.
        source: ArrowError,
    },
}

impl FormatError {
    /// The error behind an error of a reader that [`open`](super::open) returned.
    pub fn from_reader(input: &str, error: ArrowError) -> Self {
        match error {
            ArrowError::ExternalError(inner) => match inner.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Malformed { input: input.to_owned(), problem: other.to_string() },
            },
            other => Self::Malformed { input: input.to_owned(), problem: other.to_string() },
        }
    }

    pub(super) fn io(name: &str, source: io::Error) -> Self {
        Self::Io { name: name.to_owned(), source }
    }

    pub(super) fn malformed(input: &str, problem: impl Into<String>) -> Self {
        Self::Malformed { input: input.to_owned(), problem: problem.into() }
    }

    pub(super) fn given_schema(input: &str, column: &str, data_type: &DataType, problem: &str) -> Self {
        Self::GivenSchema {
            input: input.to_owned(),
            problem: format!("column {column:?} is {data_type}, {problem}"),
        }
    }
}

impl From<FormatError> for ArrowError {
    fn from(error: FormatError) -> Self {
        Self::ExternalError(Box::new(error))
    }
}

fn listed(columns: &[UnsupportedColumn]) -> String {
    let texts: Vec<String> = columns.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
