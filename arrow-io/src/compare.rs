//! Comparing two tables batch by batch.
//!
//! [`compare`] reads two [`RecordBatchReader`]s side by side and holds one batch of each, however either side cuts its
//! batches. Schemas are compared in full: column order, names, types, nullability, metadata. Values are compared
//! logically and bit for bit:
//!
//! - dictionary, run-end, view and offset-width encodings count for nothing, nor does what lies under a null;
//! - floats are equal when their bits are, so `-0.0` differs from `0.0` and NaNs differ in their payload.
//!
//! Whole chunks are compared with arrow's range equality. Only in a chunk that differs are the differing rows looked for: by
//! a kernel in flat columns, by halving the chunk in nested ones.

mod nested;
mod plain;
mod schema;
mod text;

use std::fmt;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{can_cast_types, cast};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

pub use schema::SchemaDifference;
use schema::{ColumnPair, pair_columns, schema_differences};

#[cfg(feature = "formats")]
pub(crate) use nested::{children, with_children};
#[cfg(feature = "formats")]
pub(crate) use plain::has_encoding;
pub(crate) use plain::plain;

/// What to compare and how much to remember.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// Leave out metadata of the schema and of its fields.
    pub ignore_metadata: bool,
    /// Leave out types and nullability, and compare columns of different types after a cast. Values are equal only if
    /// the cast succeeds and agrees in both directions, so a lossy cast hides nothing.
    pub ignore_types: bool,
    /// How many differing values of each column to keep as text.
    pub first_differences: usize,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { ignore_metadata: false, ignore_types: false, first_differences: 5 }
    }
}

/// Which of the two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first.
    Left,
    /// The second.
    Right,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "left",
            Self::Right => "right",
        })
    }
}

/// Why a comparison could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A reader failed.
    #[error("reading the {side} table after {row_count} rows: {source}")]
    Read {
        /// The table.
        side: Side,
        /// Rows read before the failure.
        row_count: u64,
        /// The reader's error.
        source: ArrowError,
    },
    /// A reader returned a batch that does not follow its own schema.
    #[error("the {side} table promised {expected} columns, but the batch after row {row} has {found}")]
    BatchShape {
        /// The table.
        side: Side,
        /// First row of the batch.
        row: u64,
        /// Columns in the reader's schema.
        expected: usize,
        /// Columns in the batch.
        found: usize,
    },
    /// An arrow kernel could not handle a column.
    #[error("comparing column {column:?} from row {row}: {source}")]
    Kernel {
        /// The column.
        column: String,
        /// First row of the chunk.
        row: u64,
        /// The kernel's error.
        source: ArrowError,
    },
}

/// What differs between two tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Differences between the schemas.
    pub schema: Vec<SchemaDifference>,
    /// Rows of the left table.
    pub left_rows: u64,
    /// Rows of the right table.
    pub right_rows: u64,
    /// The columns that both tables have, in the left table's order.
    pub columns: Vec<ColumnComparison>,
}

/// What differs in one column, over the rows that both tables have.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnComparison {
    /// The column's name.
    pub name: String,
    /// Rows whose values differ.
    pub differing_rows: u64,
    /// The first of them.
    pub first: Vec<ValueDifference>,
    /// Why the values were not compared, if they were not.
    pub not_compared: Option<String>,
}

/// Two values that should be equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueDifference {
    /// The row, from 0.
    pub row: u64,
    /// The left value as text.
    pub left: String,
    /// The right value as text.
    pub right: String,
}

impl Comparison {
    /// Whether nothing at all differs.
    pub fn is_equal(&self) -> bool {
        self.schema.is_empty()
            && self.left_rows == self.right_rows
            && self.columns.iter().all(|column| column.differing_rows == 0 && column.not_compared.is_none())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_equal() {
            return writeln!(f, "equal: {} rows, {} columns", self.left_rows, self.columns.len());
        }
        for difference in &self.schema {
            writeln!(f, "{difference}")?;
        }
        if self.left_rows != self.right_rows {
            writeln!(f, "rows: left {}, right {}", self.left_rows, self.right_rows)?;
        }
        for column in &self.columns {
            write!(f, "{column}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ColumnComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = &self.not_compared {
            writeln!(f, "column {:?}: values not compared: {reason}", self.name)?;
        }
        if self.differing_rows == 0 {
            return Ok(());
        }
        writeln!(f, "column {:?}: {} rows differ", self.name, self.differing_rows)?;
        for difference in &self.first {
            writeln!(f, "  row {}: left {}, right {}", difference.row, difference.left, difference.right)?;
        }
        let not_shown = self.differing_rows.saturating_sub(self.first.len() as u64);
        if not_shown > 0 {
            writeln!(f, "  and {not_shown} more")?;
        }
        Ok(())
    }
}

/// Reads both tables to their ends and reports what differs.
///
/// # Errors
/// [`CompareError`] if a table cannot be read or a kernel fails; a difference is no error.
pub fn compare(
    left: &mut dyn RecordBatchReader,
    right: &mut dyn RecordBatchReader,
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    let (left_schema, right_schema) = (left.schema(), right.schema());
    let pairs = pair_columns(&left_schema, &right_schema);
    let schema = schema_differences(&left_schema, &right_schema, &pairs, options);
    let mut columns: Vec<ColumnComparison> = pairs.iter().map(ColumnComparison::new).collect();

    let mut left = Cursor::new(left, Side::Left);
    let mut right = Cursor::new(right, Side::Right);
    loop {
        let row_count = left.available()?.min(right.available()?);
        if row_count == 0 {
            break;
        }
        let row = left.row;
        let (left_chunk, right_chunk) = (left.take(row_count), right.take(row_count));
        for (pair, column) in pairs.iter().zip(&mut columns) {
            column
                .compare_chunk(left_chunk.column(pair.left), right_chunk.column(pair.right), row, options)
                .map_err(|source| CompareError::Kernel { column: pair.name.clone(), row, source })?;
        }
    }
    Ok(Comparison { schema, left_rows: left.row_count()?, right_rows: right.row_count()?, columns })
}

/// A reader with the part of its current batch that has not been compared yet.
struct Cursor<'a> {
    reader: &'a mut dyn RecordBatchReader,
    side: Side,
    column_count: usize,
    rest: Option<RecordBatch>,
    row: u64,
}

impl<'a> Cursor<'a> {
    fn new(reader: &'a mut dyn RecordBatchReader, side: Side) -> Self {
        let column_count = reader.schema().fields().len();
        Self { reader, side, column_count, rest: None, row: 0 }
    }

    /// Rows that can be taken without reading; 0 only at the end of the table.
    fn available(&mut self) -> Result<usize, CompareError> {
        loop {
            if let Some(rest) = &self.rest
                && rest.num_rows() > 0
            {
                return Ok(rest.num_rows());
            }
            let Some(next) = self.reader.next() else { return Ok(0) };
            let batch =
                next.map_err(|source| CompareError::Read { side: self.side, row_count: self.row, source })?;
            if batch.num_columns() != self.column_count {
                return Err(CompareError::BatchShape {
                    side: self.side,
                    row: self.row,
                    expected: self.column_count,
                    found: batch.num_columns(),
                });
            }
            self.rest = Some(batch);
        }
    }

    /// The next `row_count` rows, which must be available.
    fn take(&mut self, row_count: usize) -> RecordBatch {
        self.row += row_count as u64;
        match self.rest.take() {
            Some(batch) => {
                self.rest = Some(batch.slice(row_count, batch.num_rows() - row_count));
                batch.slice(0, row_count)
            }
            None => RecordBatch::new_empty(self.reader.schema()),
        }
    }

    /// Reads on to the end and counts all rows.
    fn row_count(&mut self) -> Result<u64, CompareError> {
        loop {
            match self.available()? {
                0 => return Ok(self.row),
                row_count => drop(self.take(row_count)),
            }
        }
    }
}

impl ColumnComparison {
    fn new(pair: &ColumnPair) -> Self {
        Self { name: pair.name.clone(), differing_rows: 0, first: Vec::new(), not_compared: None }
    }

    fn compare_chunk(
        &mut self,
        left: &ArrayRef,
        right: &ArrayRef,
        row: u64,
        options: &CompareOptions,
    ) -> Result<(), ArrowError> {
        if left.data_type() == right.data_type() && left.to_data() == right.to_data() {
            return Ok(());
        }
        let rows = match differing_rows(left, right, options)? {
            Differing::Rows(rows) => rows,
            Differing::NotCompared(reason) => {
                self.not_compared = Some(reason);
                return Ok(());
            }
        };
        self.differing_rows += rows.len() as u64;
        let wanted = options.first_differences.saturating_sub(self.first.len());
        for index in rows.into_iter().take(wanted) {
            let (left, right) = text::value_texts(left, right, index);
            self.first.push(ValueDifference { row: row + index as u64, left, right });
        }
        Ok(())
    }
}

enum Differing {
    Rows(Vec<usize>),
    NotCompared(String),
}

fn differing_rows(
    left: &ArrayRef,
    right: &ArrayRef,
    options: &CompareOptions,
) -> Result<Differing, ArrowError> {
    let (plain_left, plain_right) = (plain(left)?, plain(right)?);
    let (left_type, right_type) = (plain_left.data_type(), plain_right.data_type());
    let mut rows = Vec::new();
    if left_type == right_type {
        find_differing(&plain_left, &plain_right, &mut rows)?;
        return Ok(Differing::Rows(rows));
    }
    if !options.ignore_types {
        return Ok(Differing::NotCompared(format!("{} against {}", left.data_type(), right.data_type())));
    }
    if !castable(left_type, right_type) {
        return Ok(Differing::NotCompared(format!(
            "{} and {} cannot be cast to each other",
            left.data_type(),
            right.data_type()
        )));
    }
    find_differing(&plain_left, &cast(&plain_right, left_type)?, &mut rows)?;
    find_differing(&cast(&plain_left, right_type)?, &plain_right, &mut rows)?;
    rows.sort_unstable();
    rows.dedup();
    Ok(Differing::Rows(rows))
}

fn castable(left: &DataType, right: &DataType) -> bool {
    can_cast_types(left, right) && can_cast_types(right, left)
}

/// Appends the rows that differ, in ascending order, of two plain arrays of one type.
fn find_differing(left: &ArrayRef, right: &ArrayRef, rows: &mut Vec<usize>) -> Result<(), ArrowError> {
    if left.data_type().is_nested() {
        bisect(left, right, 0, left.len(), rows);
    } else {
        // The kernel takes two nulls for equal and compares floats by their bits.
        rows.extend(distinct(left, right)?.values().set_indices());
    }
    Ok(())
}

/// Appends the rows of `start..start + row_count` that differ, for types that no kernel compares.
fn bisect(left: &ArrayRef, right: &ArrayRef, start: usize, row_count: usize, rows: &mut Vec<usize>) {
    if row_count == 0 || left.slice(start, row_count).to_data() == right.slice(start, row_count).to_data() {
        return;
    }
    if row_count == 1 {
        rows.push(start);
        return;
    }
    let half = row_count / 2;
    bisect(left, right, start, half, rows);
    bisect(left, right, start + half, row_count - half, rows);
}
