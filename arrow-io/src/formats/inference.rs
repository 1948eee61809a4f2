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

/// One schema for several files, and the rows of each if they were all counted.
#[derive(Debug, Clone)]
pub(super) struct SharedSchema {
    pub(super) file: TextSchema,
    pub(super) row_counts: Option<Vec<u64>>,
}

impl SharedSchema {
    /// The schema for the file at `index`.
    pub(super) fn of_file(&self, index: usize) -> TextSchema {
        let row_count = self.row_counts.as_ref().and_then(|row_counts| row_counts.get(index).copied());
        TextSchema { row_count, ..self.file.clone() }
    }
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
