//! Groups as arrays: the result of an aggregation as SQL types it.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, make_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, SchemaRef};

use super::lower::limits;
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
    /// The batch of `groups`.
    ///
    /// # Errors
    /// A value that does not fit the type that SQL gives it, or an index of no group.
    pub fn batch(&self, groups: &GroupWords) -> Result<RecordBatch, QueryError> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        let fields = self.schema.fields();
        for ((key, entries), field) in self.keys.iter().zip(fields) {
            columns.push(key_array(key, entries.as_ref(), &groups.indexes, field.data_type())?);
        }
        for (finish, field) in self.functions.iter().zip(fields.iter().skip(self.keys.len())) {
            let words = groups.words.chunks_exact(self.words.max(1));
            columns.push(match (finish, field.data_type()) {
                (Finish::Average { low, high, count, scale }, DataType::Float64) => {
                    let value = |group: &[u64]| average(group, *low, *high, *count, *scale);
                    Arc::new(words.map(value).collect::<arrow::array::Float64Array>())
                }
                (finish, data_type) => {
                    let values: Vec<Option<i128>> =
                        words.map(|group| finish.value(group, data_type)).collect();
                    array(&values, data_type, field.name())?
                }
            });
        }
        let rows = groups.indexes.len();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
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

#[expect(clippy::cast_precision_loss, reason = "an average in floating point is rounded once")]
fn average(group: &[u64], low: usize, high: Option<usize>, count: usize, scale: i16) -> Option<f64> {
    let count = word(group, count);
    (count > 0).then(|| total(group, low, high) as f64 / count as f64 / 10_f64.powi(scale.into()))
}

impl Finish {
    fn value(&self, group: &[u64], data_type: &DataType) -> Option<i128> {
        match self {
            Self::Count { word: index } => Some(word(group, *index).into()),
            Self::Sum { low, high, count } => {
                count.is_none_or(|count| word(group, count) > 0).then(|| total(group, *low, *high))
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

fn key_array(
    key: &GroupKey,
    entries: Option<&ArrayRef>,
    indexes: &[u64],
    data_type: &DataType,
) -> Result<ArrayRef, QueryError> {
    let codes = indexes.iter().map(|index| index / key.stride.max(1) % key.codes.max(1));
    let shift = u64::from(key.nullable);
    let value = |code: u64| code.checked_sub(shift).map(|code| i128::from(key.range.min) + i128::from(code));
    let Some(entries) = entries else {
        let values: Vec<Option<i128>> = codes.map(value).collect();
        return array(&values, data_type, "a group's key");
    };
    let places: UInt32Array =
        codes.map(|code| value(code).and_then(|place| u32::try_from(place).ok())).collect();
    let values = take(entries, &places, Some(arrow::compute::TakeOptions { check_bounds: true }))?;
    if values.data_type() == data_type { Ok(values) } else { Ok(cast(&values, data_type)?) }
}

/// An array of exact integers as `data_type` stores them.
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
    let Some(width) = data_type.primitive_width() else {
        return Err(QueryError::unsupported(format!("a result of type {data_type}")));
    };
    let (min, max) = limits(data_type);
    let mut bytes = Vec::with_capacity(values.len() * width);
    for value in values {
        let value = value.unwrap_or_default();
        if value < min || value > max {
            let data_type = data_type.to_string();
            return Err(QueryError::ResultTooWide { column: name.to_owned(), value, data_type });
        }
        let wide = value.to_le_bytes();
        let fill = if value < 0 { 0xFF } else { 0 };
        bytes.extend_from_slice(wide.get(..width).unwrap_or(&wide));
        bytes.resize(bytes.len() + width.saturating_sub(wide.len()), fill);
    }
    let data = ArrayData::builder(data_type.clone())
        .len(values.len())
        .nulls(Some(nulls))
        .add_buffer(bytes.into())
        .align_buffers(true)
        .build()?;
    Ok(make_array(data))
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
