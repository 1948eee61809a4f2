//! What the files say of the columns of a query's relations: types, ranges, nulls, dictionaries.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Schema};
use arrow_io::TableError;
use arrow_io::columns::statistics::compare;
use arrow_io::columns::tree::{Shape, plain_type};
use arrow_io::table::Table;
use datafusion::common::{DFSchema, TableReference};
use format_spec::Order;

use super::graph::relation_name;
use crate::QueryError;
use crate::plan::{Buffer, Input, Range};
use crate::scan::{self, Tables};

/// A relation of a query: a table under a number.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Its number in the graph.
    pub number: usize,
    /// The table's name.
    pub name: String,
    /// The table.
    pub table: Arc<Table>,
}

/// A column as pipelines see it.
#[derive(Debug, Clone)]
pub struct ColumnInfo {
    /// Its values: the decoded buffer.
    pub values: Input,
    /// Its validity, where there are nulls.
    pub validity: Option<Input>,
    /// Its Arrow type, without dictionaries around it.
    pub data_type: DataType,
    /// The dictionary whose codes the values are, of strings and binary values.
    pub dictionary: Option<ArrayRef>,
}

impl Relation {
    /// Relation `number` of the graph, over table `name`.
    ///
    /// # Errors
    /// There is no such table.
    pub fn new(number: usize, name: &str, tables: &Tables) -> Result<Self, QueryError> {
        let table = Arc::clone(scan::table(tables, name)?);
        Ok(Self { number, name: name.to_owned(), table })
    }

    /// Its columns by the names that the graph's expressions use.
    ///
    /// # Errors
    /// Two columns of one name.
    pub fn schema(&self) -> Result<DFSchema, QueryError> {
        let name = TableReference::bare(relation_name(self.number));
        Ok(DFSchema::try_from_qualified_schema(name, self.table.schema())?)
    }

    /// What the file says of the column with this name.
    ///
    /// # Errors
    /// A type that pipelines do not compute with, strings without a dictionary, or a file that cannot be read.
    pub fn column(&self, name: &str) -> Result<ColumnInfo, QueryError> {
        let failed = |source| QueryError::Table { table: self.name.clone(), source: Box::new(source) };
        let schema: &Schema = self.table.schema();
        let index = schema.index_of(name)?;
        let data_type = plain_type(schema.field(index).data_type()).clone();
        let unsupported =
            |what: &str| QueryError::unsupported(format!("{}.{name}, {what} of type {data_type}", self.name));
        let column = self.table.column(index).map_err(failed)?;
        let (value_width, order, dictionary) = match &column.node.shape {
            Shape::Boolean => (8, Order::Unsigned, None),
            Shape::Bytes => {
                let dictionary = self.table.dictionary(index).map_err(failed)?;
                let dictionary = dictionary
                    .ok_or_else(|| unsupported("a column that is not all codes of a dictionary,"))?;
                (self.code_width(index).map_err(failed)?, Order::Unsigned, Some(dictionary))
            }
            Shape::Limbs(limbs) => match limbs.as_slice() {
                [limb] if limb.order != Order::Float => (limb.width, limb.order, None),
                [_, _] if matches!(data_type, DataType::Decimal128(..)) => (64, Order::Signed, None),
                _ => return Err(unsupported("a column")),
            },
            _ => return Err(unsupported("a column")),
        };
        if matches!(data_type, DataType::FixedSizeBinary(_) | DataType::Interval(_)) {
            return Err(unsupported("a column"));
        }
        let range = match &dictionary {
            Some(entries) => Range::new(0, (entries.len() as i128 - 1).max(0)),
            None => self.range(index).map_err(failed)?,
        };
        let range = range.ok_or_else(|| unsupported("a column with values beyond 64 bits, of numbers"))?;
        let input = |buffer, value_width, signed, range| Input {
            column: index,
            name: name.to_owned(),
            buffer,
            value_width,
            signed,
            range,
        };
        let has_nulls = self.chunks(index).map_err(failed)?.iter().any(|chunk| chunk.null_count.get() > 0);
        Ok(ColumnInfo {
            values: input(Buffer::Values, value_width, order == Order::Signed, range),
            validity: has_nulls.then(|| input(Buffer::Validity, 8, false, Range { min: 0, max: 1 })),
            data_type,
            dictionary,
        })
    }

    fn chunks(&self, index: usize) -> Result<Vec<&format_spec::NodeChunk>, TableError> {
        let section = &self.table.column(index)?.section;
        let groups = u32::try_from(self.table.row_groups().len()).unwrap_or(u32::MAX);
        Ok((0..groups).filter_map(|group| section.node_chunk(group, 0)).collect())
    }

    /// Codes are as wide as each row group needs: the widest.
    fn code_width(&self, index: usize) -> Result<u8, TableError> {
        let section = &self.table.column(index)?.section;
        let chunks = self.chunks(index)?;
        let entries = chunks.iter().flat_map(|chunk| section.chunk_buffers(chunk));
        let codes = entries.filter(|entry| entry.role == format_spec::Role::Codes as u8);
        Ok(codes.map(|entry| entry.value_width).max().unwrap_or(8))
    }

    /// The union of the row groups' ranges; of no values, of zero alone; `None` where it is unknown or too wide.
    fn range(&self, index: usize) -> Result<Option<Range>, TableError> {
        let column = self.table.column(index)?;
        let (node, section) = (&column.node, &column.section);
        let mut bounds: Option<(&[u8], &[u8])> = None;
        let mut only_nulls = false;
        for chunk in self.chunks(index)? {
            let Some((min, max)) = section.statistics(chunk) else {
                if chunk.null_count.get() == chunk.slot_count.get() {
                    only_nulls |= chunk.slot_count.get() > 0;
                    continue;
                }
                return Ok(None);
            };
            bounds = Some(bounds.map_or((min, max), |(least, greatest)| {
                let least = if compare(node, min, least) == Ordering::Less { min } else { least };
                let greatest = if compare(node, max, greatest) == Ordering::Greater { max } else { greatest };
                (least, greatest)
            }));
        }
        let signed = match &node.shape {
            Shape::Limbs(limbs) => limbs.last().is_some_and(|limb| limb.order == Order::Signed),
            _ => false,
        };
        Ok(match bounds {
            None => Range::new(0, 0),
            Some((min, max)) => match (integer(min, signed), integer(max, signed)) {
                // Where a row group has nulls only, zeros are under them.
                (Some(min), Some(max)) if only_nulls => Range::new(min.min(0), max.max(0)),
                (Some(min), Some(max)) => Range::new(min, max),
                _ => None,
            },
        })
    }
}

/// A little-endian integer of up to 16 bytes.
fn integer(bytes: &[u8], signed: bool) -> Option<i128> {
    let last = *bytes.last()?;
    let fill = if signed && last & 0x80 != 0 { 0xFF } else { 0 };
    let mut wide = [fill; 16];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i128::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn statistics_are_little_endian_integers() {
        assert_eq!(integer(&[0xFE], true), Some(-2));
        assert_eq!(integer(&[0xFE], false), Some(254));
        assert_eq!(integer(&(-5_i128 << 70).to_le_bytes(), true), Some(-5 << 70));
        assert_eq!(integer(&[], true), None);
    }
}
