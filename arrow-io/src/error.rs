//! What can go wrong between a table and its file.

use arrow::error::ArrowError;
use codec_core::{BufferError, EncodeError};
use container::ContainerError;
use format_spec::FormatError;

/// Why a table cannot be written or read. Each names the column, and where there is one the row group, buffer, block and tile.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file as a container.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The schema in the file is not one.
    #[error("schema: {reason}")]
    Schema {
        /// What is wrong.
        reason: String,
    },
    /// A column's type cannot be stored.
    #[error("column {column}: type {data_type} is not supported: {reason}")]
    UnsupportedType {
        /// The column, with the path below it.
        column: String,
        /// The Arrow type.
        data_type: String,
        /// Why.
        reason: &'static str,
    },
    /// A batch has another schema than the table.
    #[error("column {column}: a batch has type {found}, the table {expected}")]
    BatchType {
        /// The column.
        column: String,
        /// The batch's type.
        found: String,
        /// The table's type.
        expected: String,
    },
    /// A batch has another number of columns than the table.
    #[error("a batch has {found} columns, the table {expected}")]
    BatchColumns {
        /// Columns of the batch.
        found: usize,
        /// Columns of the table.
        expected: usize,
    },
    /// A column that must not be null has a null.
    #[error("column {column} is declared not null but has a null")]
    UnexpectedNull {
        /// The column.
        column: String,
    },
    /// Values cannot be encoded.
    #[error("column {column}: {source}")]
    Encode {
        /// The column, with the path below it.
        column: String,
        /// Why.
        source: EncodeError,
    },
    /// A column's section is wrong.
    #[error("column {column}: {source}")]
    Section {
        /// The column.
        column: String,
        /// What is wrong.
        source: ContainerError,
    },
    /// A node's buffers are not those of its type.
    #[error("column {column}, row group {row_group}: {source}")]
    Node {
        /// The column, with the path below it.
        column: String,
        /// Index of the row group.
        row_group: u32,
        /// What is wrong.
        source: FormatError,
    },
    /// A buffer cannot be decoded.
    #[error("column {column}, {place}, {role}: {source}")]
    Buffer {
        /// The column, with the path below it.
        column: String,
        /// "row group n" or "dictionary".
        place: String,
        /// Which buffer.
        role: &'static str,
        /// What is wrong, with block and tile.
        source: Box<BufferError<ContainerError>>,
    },
    /// Decoded values are not possible for the type.
    #[error("column {column}, {place}: {reason}")]
    Values {
        /// The column, with the path below it.
        column: String,
        /// "row group n" or "dictionary".
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// Decoding needs more memory than allowed; fewer rows at once need less.
    #[error(
        "column {column}: decoding needs {needed_bytes} bytes more, of a limit of {limit} bytes in all: raise the limit"
    )]
    Memory {
        /// The column, with the path below it.
        column: String,
        /// Bytes of the one buffer that did not fit.
        needed_bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The keys of a dictionary type or the run ends of a run-end type cannot count the rows of one batch; fewer rows at once can be counted.
    #[error(
        "column {column}: too many rows in one batch for the type's keys or run ends: read fewer rows at once"
    )]
    TooManyRows {
        /// The column, with the path below it.
        column: String,
    },
    /// Arrow refuses what was decoded, or cannot convert a value.
    #[error("column {column}: {source}")]
    Arrow {
        /// The column, with the path below it.
        column: String,
        /// What Arrow says.
        source: ArrowError,
    },
    /// A column that does not exist is asked for.
    #[error("no column {name}; the columns are {known}")]
    NoColumn {
        /// The name asked for.
        name: String,
        /// The columns that there are, the first of many.
        known: String,
    },
    /// A row beyond the table is asked for.
    #[error("row {row} of a table of {row_count} rows")]
    NoRow {
        /// The first row that does not exist.
        row: u64,
        /// Rows of the table.
        row_count: u64,
    },
    /// An option has an impossible value.
    #[error("{option}: {reason}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl TableError {
    /// Whether reading fewer rows at once can help.
    #[must_use]
    pub fn wants_fewer_rows(&self) -> bool {
        matches!(self, Self::Memory { .. } | Self::TooManyRows { .. })
    }
}
