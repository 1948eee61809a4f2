use crate::scale::Scale;
use crate::stream::MAX_BATCH_ROWS;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a generator refuses.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A scale factor that has no defined table sizes.
    #[error(
        "scale factor {factor} is not usable: give a fraction above 0 and below 1, or a whole number from 1 to {}",
        Scale::MAX
    )]
    Scale {
        /// The scale factor asked for.
        factor: f64,
    },
    /// A scale factor at which a table that others refer to would be empty.
    #[error("scale factor {factor} leaves TPC-H without suppliers: give at least {least}")]
    EmptyTable {
        /// The scale factor asked for.
        factor: f64,
        /// The least one that is possible.
        least: f64,
    },
    /// A scale factor that is not a number.
    #[error("scale factor '{text}' is not a number: write it like 0.01 or 100")]
    ScaleText {
        /// The text found where the number should be.
        text: String,
    },
    /// A table name that the benchmark does not have.
    #[error("there is no table '{name}': the tables are {known}")]
    UnknownTable {
        /// The name asked for.
        name: String,
        /// The names there are, separated by commas.
        known: String,
    },
    /// A dialect of SSB that does not exist.
    #[error("there is no SSB dialect '{name}': the dialects are maintained, classic")]
    UnknownDialect {
        /// The name asked for.
        name: String,
    },
    /// A range of rows or orders outside the table, or one that ends before it starts.
    #[error("{start}..{end} is not a range of the {count} {unit} of table {table}")]
    Range {
        /// The table's name.
        table: &'static str,
        /// What the range counts: `orders` or `rows`.
        unit: &'static str,
        /// How many of them the table has.
        count: u64,
        /// The first one asked for, counted from 0.
        start: u64,
        /// One past the last one asked for.
        end: u64,
    },
    /// A part of a table outside the parts it is divided into.
    #[error(
        "part {part} of {part_count} does not exist: parts are counted from 0, and there must be at least one"
    )]
    Part {
        /// The part asked for, counted from 0.
        part: u32,
        /// How many parts the table is divided into.
        part_count: u32,
    },
    /// A batch size that cannot be made.
    #[error("batches of {batch_rows} rows are not possible: give 1 to {MAX_BATCH_ROWS}")]
    BatchRows {
        /// The batch size asked for, in rows.
        batch_rows: usize,
    },
    /// The system did not start a worker thread.
    #[error("a generator thread could not be started, try fewer threads: {0}")]
    Thread(#[from] std::io::Error),
}
