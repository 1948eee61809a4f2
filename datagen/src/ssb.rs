//! The Star Schema Benchmark (O'Neil, O'Neil, Chen): the fact table `lineorder` and the dimensions `customer`,
//! `supplier`, `part` and `ddate`.
//!
//! # What the rows are compared with
//!
//! The rows follow the rules of the `ssb-dbgen` program, one random stream a column, so that any range of a table is made
//! on its own. What its tests compare:
//!
//! - The 13 queries' answers at scale 1, `Dialect::Maintained`, are those on the rows of `ssb-dbgen` itself. They cover
//!   `lo_custkey`, `lo_partkey`, `lo_suppkey`, `lo_orderdate`, `lo_quantity`, `lo_extendedprice`, `lo_discount`,
//!   `lo_revenue`, `lo_supplycost`, the keys, cities, nations, regions, `p_mfgr`, `p_category`, `p_brand1`, `d_year`,
//!   `d_yearmonthnum`, `d_yearmonth` and `d_weeknuminyear`. The other columns of `lineorder` are compared with sums that a
//!   second program computed from the same rules, order included.
//! - The remaining columns (names, addresses, phones, `c_mktsegment`, `p_name`, `p_color`, `p_type`, `p_size`,
//!   `p_container`, and the labels and flags of `ddate`) are compared with the first rows that users of `ssb-dbgen` have
//!   published, not with whole tables.
//!
//! Each table is as a run of the program for that table alone makes it; a run for all tables carries the streams of cities
//! and phones on from one table to the next.
//!
//! The project's own choices: Arrow types (below), the two-way flags of `ddate` as booleans, `d_lastdayinmonthfl` true on
//! the last day (older programs have it inverted), and everything about scales below 1.
//!
//! # Types
//!
//! Keys, measures and dates (yyyymmdd) are Int32, money in cents; `lo_orderkey` becomes Int64 where the largest one does
//! not fit, above scale 357. Text is Utf8, flags Boolean. No column has nulls.
//!
//! # Sizes
//!
//! | table | rows at a whole scale SF | rows at a fraction SF |
//! | --- | --- | --- |
//! | `lineorder` | 1,500,000 SF orders of 1 to 7 lines | the same |
//! | `customer` | 30,000 SF | the same |
//! | `supplier` | 2,000 SF | the same |
//! | `part` | 200,000 (1 + floor(log2 SF)) | 200,000 SF |
//! | `ddate` | 2,557: the days of 1992 to 1998 | the same |
//!
//! Fractions are rounded, and no table has less than one row. At a whole scale `lo_partkey` reaches 200,000 (1 + floor(ln
//! SF)) only, with the natural logarithm, as in `ssb-dbgen`: at scale 10, 600,000 of 800,000 parts are ever ordered.
mod customer;
mod date;
mod geography;
mod lineorder;
mod part;
mod sizes;
mod supplier;
mod text;

use crate::error::{Error, Result};
use crate::lines::total_lines;
use crate::scale::Scale;
use crate::stream::{BatchStream, DEFAULT_BATCH_ROWS, check_batch_rows};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use sizes::Sizes;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

/// A table of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// The fact table, one row a line of an order, in the order of `lo_orderkey`.
    Lineorder,
    /// The customers, by `c_custkey` from 1 on.
    Customer,
    /// The suppliers, by `s_suppkey` from 1 on.
    Supplier,
    /// The parts, by `p_partkey` from 1 on.
    Part,
    /// The days of 1992 to 1998. The table's name is `ddate`, since `date` is a reserved word of SQL.
    Date,
}

impl Table {
    /// All tables, the fact table first.
    pub const ALL: [Self; 5] = [Self::Lineorder, Self::Customer, Self::Supplier, Self::Part, Self::Date];

    /// The table's name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lineorder => "lineorder",
            Self::Customer => "customer",
            Self::Supplier => "supplier",
            Self::Part => "part",
            Self::Date => "ddate",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Table {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name).ok_or_else(|| Error::UnknownTable {
            name: name.to_owned(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// Which family of `ssb-dbgen` programs to follow. Both make the same `lineorder`, but for one priority's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The maintained program: cities and part categories have random streams of their own.
    #[default]
    Maintained,
    /// The older forks that many published measurements used: cities and categories share stream 0 with `p_mfgr`, and the
    /// priority `4-NOT SPECIFIED` is cut to `4-NOT SPECI`.
    Classic,
}

impl FromStr for Dialect {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "maintained" => Ok(Self::Maintained),
            "classic" => Ok(Self::Classic),
            _ => Err(Error::UnknownDialect { name: name.to_owned() }),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Maintained => "maintained",
            Self::Classic => "classic",
        })
    }
}

/// Makes the tables of one scale and dialect. It holds a few numbers only, and is cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    sizes: Sizes,
    dialect: Dialect,
}

impl Generator {
    /// The generator of `scale` and `dialect`.
    pub fn new(scale: Scale, dialect: Dialect) -> Self {
        Self { sizes: Sizes::new(scale), dialect }
    }

    /// The columns of `table`, none of them nullable.
    pub fn schema(&self, table: Table) -> SchemaRef {
        let fields = match table {
            Table::Lineorder => lineorder::fields(self.sizes.order_key_type()),
            Table::Customer => customer::fields(),
            Table::Supplier => supplier::fields(),
            Table::Part => part::fields(),
            Table::Date => date::fields(),
        };
        Arc::new(Schema::new(fields))
    }

    /// The exact number of rows of `table`. For `lineorder` the lines of all orders are counted, on all cores.
    pub fn row_count(&self, table: Table) -> u64 {
        match table {
            Table::Lineorder => total_lines(self.sizes.orders),
            _ => self.unit_count(table).into(),
        }
    }

    /// The orders of `lineorder`; the rows of any other table. This is what [`Generator::batches`] counts in.
    pub fn unit_count(&self, table: Table) -> u32 {
        match table {
            Table::Lineorder => self.sizes.orders,
            Table::Customer => self.sizes.customers,
            Table::Supplier => self.sizes.suppliers,
            Table::Part => self.sizes.parts,
            Table::Date => date::DAYS,
        }
    }

    /// About how many bytes the Arrow buffers of `table` hold, within a few percent.
    pub fn bytes_estimate(&self, table: Table) -> u64 {
        let order_key_growth = if self.sizes.order_key_type() == DataType::Int64 { 16 } else { 0 };
        let bytes_a_unit = match table {
            Table::Lineorder => 323 + order_key_growth,
            Table::Customer => 113,
            Table::Supplier => 100,
            Table::Part => 104,
            Table::Date => 94,
        };
        u64::from(self.unit_count(table)) * bytes_a_unit
    }

    /// The batches of some rows of `table`, counted from 0; for `lineorder`, the lines of some orders. Each batch has
    /// about [`DEFAULT_BATCH_ROWS`] rows. Nothing before `units` is generated.
    ///
    /// # Errors
    /// [`Error::Range`] if `units` is not within 0..[`Generator::unit_count`].
    pub fn batches(
        &self,
        table: Table,
        units: Range<u64>,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + use<>> {
        let unit_count = self.unit_count(table);
        let (start, end) = match (u32::try_from(units.start), u32::try_from(units.end)) {
            (Ok(start), Ok(end)) if start <= end && end <= unit_count => (start, end),
            _ => {
                return Err(Error::Range {
                    table: table.name(),
                    unit: if table == Table::Lineorder { "orders" } else { "rows" },
                    count: unit_count.into(),
                    start: units.start,
                    end: units.end,
                });
            }
        };
        let step = units_a_batch(table, check_batch_rows(DEFAULT_BATCH_ROWS)?);
        let schema = self.schema(table);
        let generator = *self;
        Ok((0..(end - start).div_ceil(step)).map(move |index| {
            let first = start + index * step;
            generator.batch(table, &schema, first..end.min(first.saturating_add(step)))
        }))
    }

    /// All batches of `table` in order, made by `threads` threads (0 is taken as 1) and at most three a thread at once.
    ///
    /// A batch has `batch_rows` rows, the last one less; for `lineorder`, whose batches hold whole orders, it has about
    /// `batch_rows` rows, at least 1 and at most 1.75 times as many (but never less than one order).
    ///
    /// # Errors
    /// [`Error::BatchRows`] if `batch_rows` is not within 1..=[`MAX_BATCH_ROWS`](crate::MAX_BATCH_ROWS), and
    /// [`Error::Thread`] if the system does not start the threads.
    pub fn stream(&self, table: Table, threads: usize, batch_rows: usize) -> Result<BatchStream> {
        let step = units_a_batch(table, check_batch_rows(batch_rows)?);
        let unit_count = self.unit_count(table);
        let schema = self.schema(table);
        let generator = *self;
        BatchStream::spawn(Arc::clone(&schema), threads, unit_count.div_ceil(step), move |index| {
            let first = index * step;
            let units = first..unit_count.min(first.saturating_add(step));
            std::iter::once(generator.batch(table, &schema, units))
        })
    }

    /// The batch of `units` of `table`, which has that many.
    fn batch(&self, table: Table, schema: &SchemaRef, units: Range<u32>) -> Result<RecordBatch, ArrowError> {
        let columns = match table {
            Table::Lineorder => lineorder::columns(&self.sizes, self.dialect, units)?,
            Table::Customer => customer::columns(self.dialect, units),
            Table::Supplier => supplier::columns(self.dialect, units),
            Table::Part => part::columns(self.dialect, units),
            Table::Date => date::columns(units),
        };
        RecordBatch::try_new(Arc::clone(schema), columns)
    }
}

/// How many rows of `table`, or orders of `lineorder`, make a batch of about `batch_rows` rows.
fn units_a_batch(table: Table, batch_rows: u32) -> u32 {
    const MEAN_LINES: u32 = 4;
    match table {
        Table::Lineorder => batch_rows.div_ceil(MEAN_LINES),
        _ => batch_rows,
    }
}

/// A column without nulls.
fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, false)
}
