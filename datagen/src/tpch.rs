//! The eight tables of TPC-H, from the `tpchgen` crates: bit for bit those of the TPC's own generator.
//!
//! Keys are Int64, money and percentages Decimal128(15, 2), dates Date32, text Utf8View; no column has nulls. At scales
//! below 1 a table has the fraction of its rows, rounded down, but for `nation` and `region`, which do not scale.
//!
//! The comments are cut from a text of 300 MB that is made when the first batch is, in about a second, and stays in memory.
use crate::error::{Error, Result};
use crate::lines::total_lines;
use crate::scale::Scale;
use crate::stream::{BatchStream, check_batch_rows};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use std::fmt;
use std::str::FromStr;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

/// A table of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// The lines of the orders, in the order of `l_orderkey`.
    Lineitem,
    /// The orders, by `o_orderkey`, eight of which are used of every 32.
    Orders,
    /// The customers, by `c_custkey` from 1 on.
    Customer,
    /// The parts, by `p_partkey` from 1 on.
    Part,
    /// Four suppliers a part.
    Partsupp,
    /// The suppliers, by `s_suppkey` from 1 on.
    Supplier,
    /// 25 nations.
    Nation,
    /// 5 regions.
    Region,
}

impl Table {
    /// All tables, the largest first.
    pub const ALL: [Self; 8] = [
        Self::Lineitem,
        Self::Orders,
        Self::Partsupp,
        Self::Part,
        Self::Customer,
        Self::Supplier,
        Self::Nation,
        Self::Region,
    ];

    /// The table's name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lineitem => "lineitem",
            Self::Orders => "orders",
            Self::Customer => "customer",
            Self::Part => "part",
            Self::Partsupp => "partsupp",
            Self::Supplier => "supplier",
            Self::Nation => "nation",
            Self::Region => "region",
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

/// The batches of a part of a table.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Makes the tables of one scale. It holds the scale only, and is cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    scale: f64,
}

impl Generator {
    /// The generator of `scale`.
    ///
    /// # Errors
    /// [`Error::EmptyTable`] if `scale` is below 0.0001, where there would be no supplier to refer to.
    pub fn new(scale: Scale) -> Result<Self> {
        let factor = scale.factor();
        if factor < LEAST_SCALE {
            return Err(Error::EmptyTable { factor, least: LEAST_SCALE });
        }
        Ok(Self { scale: factor })
    }

    /// The columns of `table`, none of them nullable.
    pub fn schema(&self, table: Table) -> SchemaRef {
        match table {
            Table::Lineitem => LineItemArrow::schema_ref(),
            Table::Orders => OrderArrow::schema_ref(),
            Table::Customer => CustomerArrow::schema_ref(),
            Table::Part => PartArrow::schema_ref(),
            Table::Partsupp => PartSuppArrow::schema_ref(),
            Table::Supplier => SupplierArrow::schema_ref(),
            Table::Nation => NationArrow::schema_ref(),
            Table::Region => RegionArrow::schema_ref(),
        }
    }

    /// The exact number of rows of `table`. For `lineitem` the lines of all orders are counted, on all cores.
    pub fn row_count(&self, table: Table) -> u64 {
        match table {
            Table::Lineitem => total_lines(self.unit_count(table)),
            Table::Partsupp => u64::from(self.unit_count(table)) * u64::from(SUPPLIERS_A_PART),
            _ => self.unit_count(table).into(),
        }
    }

    /// About how many bytes the Arrow buffers of `table` hold, within a few percent. Text of up to 12 bytes lies within
    /// its 16-byte view, longer text is counted beside it.
    pub fn bytes_estimate(&self, table: Table) -> u64 {
        let bytes_a_unit = match table {
            Table::Lineitem => 871,
            Table::Orders => 170,
            Table::Customer => 242,
            Table::Part => 201,
            Table::Partsupp => 702,
            Table::Supplier => 215,
            Table::Nation => 123,
            Table::Region => 106,
        };
        u64::from(self.unit_count(table)) * bytes_a_unit
    }

    /// The batches of one part of `table`, of at most `batch_rows` rows each: part `part`, counted from 0, of `part_count`
    /// parts, which hold all rows when put together in order. Nothing of the parts before it is generated.
    ///
    /// The tables that do not scale, `nation` and `region`, lie in part 0.
    ///
    /// # Errors
    /// [`Error::Part`] unless `part` is below `part_count` and `part_count` below 2^31, and [`Error::BatchRows`] if
    /// `batch_rows` is not within 1..=[`MAX_BATCH_ROWS`](crate::MAX_BATCH_ROWS).
    pub fn batches(
        &self,
        table: Table,
        part: u32,
        part_count: u32,
        batch_rows: usize,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + use<>> {
        check_batch_rows(batch_rows)?;
        match (i32::try_from(part), i32::try_from(part_count)) {
            (Ok(part), Ok(part_count)) if part < part_count => {
                Ok(self.part(table, part, part_count, batch_rows))
            }
            _ => Err(Error::Part { part, part_count }),
        }
    }

    /// All batches of `table` in order, made by `threads` threads (0 is taken as 1) and at most three a thread at once.
    ///
    /// A batch has about `batch_rows` rows, and at most twice as many.
    ///
    /// # Errors
    /// [`Error::BatchRows`] if `batch_rows` is not within 1..=[`MAX_BATCH_ROWS`](crate::MAX_BATCH_ROWS), and
    /// [`Error::Thread`] if the system does not start the threads.
    pub fn stream(&self, table: Table, threads: usize, batch_rows: usize) -> Result<BatchStream> {
        let units_a_batch = check_batch_rows(batch_rows)?.div_ceil(rows_a_unit(table));
        let part_count = self.unit_count(table).div_ceil(units_a_batch).max(1);
        let generator = *self;
        // A part's rows vary around `batch_rows`, and the last one takes what the division left over. Batches of twice the
        // size keep the former whole and cut the latter.
        let most_rows = batch_rows * 2;
        BatchStream::spawn(self.schema(table), threads, part_count, move |part| {
            generator.part(table, part.cast_signed(), part_count.cast_signed(), most_rows)
        })
    }

    /// Orders for `lineitem`, parts for `partsupp`, rows for the others: what `tpchgen` divides into parts.
    fn unit_count(&self, table: Table) -> u32 {
        let rows = match table {
            Table::Lineitem | Table::Orders => OrderGenerator::calculate_row_count(self.scale, 1, 1),
            Table::Customer => CustomerGenerator::calculate_row_count(self.scale, 1, 1),
            Table::Part | Table::Partsupp => PartGenerator::calculate_row_count(self.scale, 1, 1),
            Table::Supplier => SupplierGenerator::calculate_row_count(self.scale, 1, 1),
            Table::Nation => 25,
            Table::Region => 5,
        };
        // The most there are is 1.5e9 orders at the largest scale.
        u32::try_from(rows).unwrap_or(u32::MAX)
    }

    /// The batches of part `part` of `part_count`, which is more than `part`, counted from 0.
    fn part(&self, table: Table, part: i32, part_count: i32, batch_rows: usize) -> Batches {
        let (scale, part, parts) = (self.scale, part + 1, part_count);
        match table {
            Table::Lineitem => {
                let rows = LineItemGenerator::new(scale, part, parts);
                Box::new(LineItemArrow::new(rows).with_batch_size(batch_rows))
            }
            Table::Orders => {
                Box::new(OrderArrow::new(OrderGenerator::new(scale, part, parts)).with_batch_size(batch_rows))
            }
            Table::Customer => {
                let rows = CustomerGenerator::new(scale, part, parts);
                Box::new(CustomerArrow::new(rows).with_batch_size(batch_rows))
            }
            Table::Part => {
                Box::new(PartArrow::new(PartGenerator::new(scale, part, parts)).with_batch_size(batch_rows))
            }
            Table::Partsupp => {
                let rows = PartSuppGenerator::new(scale, part, parts);
                Box::new(PartSuppArrow::new(rows).with_batch_size(batch_rows))
            }
            Table::Supplier => {
                let rows = SupplierGenerator::new(scale, part, parts);
                Box::new(SupplierArrow::new(rows).with_batch_size(batch_rows))
            }
            Table::Nation | Table::Region if part > 1 => Box::new(std::iter::empty()),
            Table::Nation => {
                let rows = NationGenerator::new(scale, part, parts);
                Box::new(NationArrow::new(rows).with_batch_size(batch_rows))
            }
            Table::Region => {
                let rows = RegionGenerator::new(scale, part, parts);
                Box::new(RegionArrow::new(rows).with_batch_size(batch_rows))
            }
        }
    }
}

/// At this scale there is one supplier.
const LEAST_SCALE: f64 = 0.0001;

const SUPPLIERS_A_PART: u32 = 4;

/// The mean number of rows of one of the units that [`Generator::unit_count`] counts.
fn rows_a_unit(table: Table) -> u32 {
    const MEAN_LINES: u32 = 4;
    match table {
        Table::Lineitem => MEAN_LINES,
        Table::Partsupp => SUPPLIERS_A_PART,
        _ => 1,
    }
}
