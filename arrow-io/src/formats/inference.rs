//! Where a schema comes from, and what to do about a row that does not fit it.

use std::fmt;

use arrow::datatypes::SchemaRef;

/// Where the schema of a text file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// From the caller.
    Given,
    /// From this many first rows.
    FirstRows(u64),
    /// From all rows.
    AllRows,
}

/// The schema of a text file.
#[derive(Debug, Clone)]
pub(super) struct TextSchema {
    pub(super) schema: SchemaRef,
    pub(super) origin: Origin,
    /// Rows in the file, if they were counted.
    pub(super) row_count: Option<u64>,
}

/// The remedy for a row that does not fit.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => f.write_str("correct the row or change the column in the given schema"),
            Self::FirstRows(row_count) => write!(
                f,
                "the schema was inferred from the first {row_count} rows: infer it from more, or give a schema in which \
                 the column can hold this"
            ),
            Self::AllRows => {
                f.write_str("correct the row, or give a schema in which the column can hold this")
            }
        }
    }
}
