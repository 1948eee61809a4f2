//! Groups as arrays: the result of an aggregation as SQL types it.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, make_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, SchemaRef};

use super::lower::limits;
use super::order::Order;
use crate::QueryError;
use crate::plan::{GroupKey, GroupWords};

/// How groups become a batch: group columns first, as in SQL's aggregation.
#[derive(Debug, Clone)]
pub struct Output {
    /// Names and types.
    pub schema: SchemaRef,
    /// The key's parts, in their order, and of strings their entries.
    pub keys: Vec<(GroupKey, Option<ArrayRef>)>,
    /// The functions.
    pub functions: Vec<Finish>,
    /// Words of a group.
    pub words: usize,
    /// The order of the rows, where the query asks for one that the groups tell.
    pub order: Option<Order>,
}

/// How a function's words become its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The word.
    Count {
        /// Which.
        word: usize,
    },
    /// low, or high * 2^32 + low; null where count is 0.
    Sum {
        /// The sum, or that of the low halves.
        low: usize,
        /// The sum of the high halves.
        high: Option<usize>,
        /// How many values there are, where that may be none.
        count: Option<usize>,
    },
    /// As a sum, divided by count.
    Average {
        /// The sum, or that of the low halves.
        low: usize,
        /// The sum of the high halves.
        high: Option<usize>,
        /// How many values there are.
        count: usize,
        /// Digits of the values behind the point.
        scale: i16,
    },
    /// base - word + 1 if it is the least value, base + word - 1 if the greatest; null where the word is 0.
    Extreme {
        /// Which word.
        word: usize,
        /// Least or greatest.
        least: bool,
        /// The largest or smallest possible value.
        base: i64,
    },
}

impl Output {
    /// The batch of `groups`, in order.
    ///
    /// # Errors
    /// A value that does not fit the type that SQL gives it, or an index of no group.
    pub fn batch(&self, groups: &GroupWords) -> Result<RecordBatch, QueryError> {
        let ordered = self.order.as_ref().map(|order| groups.take(&order.rows(self, groups), self.words));
        let groups = ordered.as_ref().unwrap_or(groups);
        let mut columns: Vec<ArrayRef> = Vec::new();
        for (column, field) in self.schema.fields().iter().enumerate() {
            let values = self.values(column, groups);
            columns.push(match self.keys.get(column) {
                Some((_, Some(entries))) => strings(entries, &values, field.data_type())?,
                _ => array(&values, field.data_type(), field.name())?,
            });
        }
        let rows = groups.indexes.len();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// A column's value in each of `groups` as a number, greater where the value is, and null where it is. Of strings it is the place in their dictionary.
    #[must_use]
    pub fn values(&self, column: usize, groups: &GroupWords) -> Vec<Option<i128>> {
        if let Some((key, _)) = self.keys.get(column) {
            return groups.indexes.iter().map(|&index| key.value_of(index).map(i128::from)).collect();
        }
        let finish = column.checked_sub(self.keys.len()).and_then(|function| self.functions.get(function));
        let (Some(finish), Some(field)) = (finish, self.schema.fields().get(column)) else {
            return vec![None; groups.indexes.len()];
        };
        groups
            .words
            .chunks_exact(self.words.max(1))
            .map(|group| finish.value(group, field.data_type()))
            .collect()
    }
}

/// The bits of a floating-point number as an integer that is greater where the number is (IEEE 754, section 5.10), and back.
fn ordered(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

fn word(group: &[u64], index: usize) -> u64 {
    group.get(index).copied().unwrap_or_default()
}

fn total(group: &[u64], low: usize, high: Option<usize>) -> i128 {
    match high {
        None => word(group, low).cast_signed().into(),
        Some(high) => (i128::from(word(group, high).cast_signed()) << 32) + i128::from(word(group, low)),
    }
}

impl Finish {
    fn value(&self, group: &[u64], data_type: &DataType) -> Option<i128> {
        match self {
            Self::Count { word: index } => Some(word(group, *index).into()),
            Self::Sum { low, high, count } => {
                count.is_none_or(|count| word(group, count) > 0).then(|| total(group, *low, *high))
            }
            Self::Average { low, high, count, scale } if *data_type == DataType::Float64 => {
                let count = word(group, *count);
                (count > 0).then(|| average(total(group, *low, *high), count, *scale))
            }
            Self::Average { low, high, count, scale } => {
                // As DataFusion: more digits behind the point first, then a division that cuts off.
                let more = u32::try_from(super::lower::scale(data_type) - scale).unwrap_or_default();
                let (sum, count) = (total(group, *low, *high), i128::from(word(group, *count)));
                (count > 0).then(|| sum.saturating_mul(10_i128.saturating_pow(more)) / count)
            }
            Self::Extreme { word: index, least, base } => {
                let (found, base) = (i128::from(word(group, *index)), i128::from(*base));
                (found > 0).then(|| if *least { base - (found - 1) } else { base + (found - 1) })
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "an average in floating point is rounded once")]
fn average(sum: i128, count: u64, scale: i16) -> i128 {
    let average = sum as f64 / count as f64 / 10_f64.powi(scale.into());
    ordered(average.to_bits().cast_signed()).into()
}

/// The strings at these places of a dictionary.
fn strings(
    entries: &ArrayRef,
    places: &[Option<i128>],
    data_type: &DataType,
) -> Result<ArrayRef, QueryError> {
    let places: UInt32Array = places.iter().map(|place| u32::try_from((*place)?).ok()).collect();
    let values = take(entries, &places, Some(arrow::compute::TakeOptions { check_bounds: true }))?;
    if values.data_type() == data_type { Ok(values) } else { Ok(cast(&values, data_type)?) }
}

/// An array of numbers, as [`Output::values`] gives them, as `data_type` stores them.
fn array(values: &[Option<i128>], data_type: &DataType, name: &str) -> Result<ArrayRef, QueryError> {
    let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
    if *data_type == DataType::Boolean {
        let bits = BooleanBuffer::collect_bool(values.len(), |index| {
            values.get(index).is_some_and(|bit| *bit == Some(1))
        });
        return Ok(Arc::new(arrow::array::BooleanArray::new(bits, Some(nulls))));
    }
    if let DataType::Dictionary(..) | DataType::RunEndEncoded(..) = data_type {
        let plain = array(values, arrow_io::columns::tree::plain_type(data_type), name)?;
        return Ok(cast(&plain, data_type)?);
    }
    if *data_type == DataType::Float64 {
        let float =
            |bits: i128| i64::try_from(bits).map(|bits| f64::from_bits(ordered(bits).cast_unsigned()));
        let floats = values.iter().map(|value| float((*value)?).ok());
        return Ok(Arc::new(floats.collect::<arrow::array::Float64Array>()));
    }
    let (min, max) = limits(data_type);
    if let Some(&value) = values.iter().flatten().find(|&&value| value < min || value > max) {
        let data_type = data_type.to_string();
        return Err(QueryError::ResultTooWide { column: name.to_owned(), value, data_type });
    }
    let bytes = match data_type.primitive_width() {
        Some(1) => little_endian::<1>(values),
        Some(2) => little_endian::<2>(values),
        Some(4) => little_endian::<4>(values),
        Some(8) => little_endian::<8>(values),
        Some(16) => little_endian::<16>(values),
        Some(32) => little_endian::<32>(values),
        _ => return Err(QueryError::unsupported(format!("a result of type {data_type}"))),
    };
    let data = ArrayData::builder(data_type.clone())
        .len(values.len())
        .nulls(Some(nulls))
        .add_buffer(bytes.into())
        .align_buffers(true)
        .build()?;
    Ok(make_array(data))
}

/// Numbers of `WIDTH` bytes each, 0 for null.
fn little_endian<const WIDTH: usize>(values: &[Option<i128>]) -> Vec<u8> {
    let each = values.iter().map(|value| {
        let value = value.unwrap_or_default();
        let mut bytes = [if value < 0 { 0xFF } else { 0 }; WIDTH];
        bytes.iter_mut().zip(value.to_le_bytes()).for_each(|(byte, of)| *byte = of);
        bytes
    });
    each.collect::<Vec<[u8; WIDTH]>>().into_flattened()
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::{Date32Type, Decimal128Type, Int8Type};

    use super::*;

    #[test]
    fn integers_become_arrays_of_any_type_or_an_error() {
        let dates = array(&[Some(-3), None], &DataType::Date32, "d").unwrap();
        assert_eq!(dates.as_primitive::<Date32Type>().iter().collect::<Vec<_>>(), [Some(-3), None]);
        let decimals = array(&[Some(-(1 << 80))], &DataType::Decimal128(38, 2), "d").unwrap();
        assert_eq!(decimals.as_primitive::<Decimal128Type>().value(0), -(1 << 80));
        assert_eq!(
            array(&[Some(-128)], &DataType::Int8, "d").unwrap().as_primitive::<Int8Type>().value(0),
            -128
        );
        assert!(matches!(array(&[Some(128)], &DataType::Int8, "d"), Err(QueryError::ResultTooWide { .. })));
    }

    #[test]
    fn sums_of_halves_are_whole() {
        let value = -5_i64;
        let halves = [(value & 0xFFFF_FFFF).cast_unsigned(), (value >> 32).cast_unsigned(), 1];
        let finish = Finish::Sum { low: 0, high: Some(1), count: Some(2) };
        assert_eq!(finish.value(&halves, &DataType::Int64), Some(-5));
        assert_eq!(finish.value(&[0, 0, 0], &DataType::Int64), None);
    }
}
