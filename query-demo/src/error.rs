//! Why a query gave no result.

use arrow_io::TableError;
use codec_core::BlockError;
#[cfg(feature = "sql")]
use datafusion::error::DataFusionError;
use gpu_decode::GpuError;

/// Why a query gave no result.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[cfg(feature = "sql")]
    /// SQL that is wrong, or that names what does not exist.
    #[error(transparent)]
    Sql(#[from] Box<DataFusionError>),
    /// SQL that is right and that the pipelines cannot express.
    #[error("the compiled pipelines cannot express {construct}")]
    Unsupported {
        /// What, as in "a join on a range".
        construct: String,
    },
    /// An expression whose value may not fit 64 bits: neither pipelines nor DataFusion would compute it exactly.
    #[error(
        "{expression} may reach from {min} to {max}, which does not fit 64 bits: cast a part of it to a wider decimal, or filter its columns"
    )]
    TooWide {
        /// The expression as SQL.
        expression: String,
        /// Its smallest possible value.
        min: i128,
        /// Its largest possible value.
        max: i128,
    },
    /// A result that does not fit its SQL type.
    #[error("{column} is {value}, which does not fit {data_type}")]
    ResultTooWide {
        /// Name of the result's column.
        column: String,
        /// The exact value.
        value: i128,
        /// Its type.
        data_type: String,
    },
    /// The key of a join occurs more than once on the side that is built.
    #[error("a key occurs more than once in {table}.{column}")]
    DuplicateKey {
        /// The table that was built from.
        table: String,
        /// The key's column or expression.
        column: String,
    },
    /// More distinct groups than the hash table was made for.
    #[error("more than {capacity} groups")]
    TooManyGroups {
        /// Groups that there was room for.
        capacity: u64,
    },
    /// Values that contradict the file's own statistics or dictionaries.
    #[error("{table}: values lie outside what the file's statistics say; `cb2t verify` tells where")]
    Statistics {
        /// The table.
        table: String,
    },
    /// A file that cannot be read or is damaged.
    #[error("{table}: {source}")]
    Table {
        /// The table.
        table: String,
        /// Why.
        source: Box<TableError>,
    },
    /// A damaged block.
    #[error("{table}, column {column}, row group {row_group}, block {block_index}: {source}")]
    Block {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Index of the row group.
        row_group: u32,
        /// Index of the block in the column's row group.
        block_index: u32,
        /// What is wrong.
        source: Box<BlockError>,
    },
    /// Of the device.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// A launch shape or placement that does not fit the query.
    #[error("{reason}")]
    Options {
        /// What does not fit, and what would.
        reason: String,
    },
    /// Of Arrow, on a result.
    #[error("making the result: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
}

#[cfg(feature = "sql")]
impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        Self::Sql(Box::new(error))
    }
}

impl QueryError {
    /// That the pipelines cannot express `construct`.
    #[must_use]
    pub fn unsupported(construct: impl Into<String>) -> Self {
        Self::Unsupported { construct: construct.into() }
    }
}
