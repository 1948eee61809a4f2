//! The order of a result, found from its groups' indexes and words: before there are strings to compare, and before there are rows that a limit leaves out.

use std::cmp::Ordering;

use arrow::array::Array;
use arrow::compute::{SortOptions, rank};

use super::output::Output;
use crate::plan::{GroupKey, GroupWords};

/// Strings of a longer dictionary are ordered when the rows are there: ranking its entries would take longer than the query.
const MOST_RANKED: usize = 1 << 16;

/// ORDER BY columns of the aggregation's result, with LIMIT.
#[derive(Debug, Clone)]
pub struct Order {
    keys: Vec<OrderKey>,
    fetch: Option<usize>,
}

#[derive(Debug, Clone)]
struct OrderKey {
    column: usize,
    options: SortOptions,
    /// Of a column of strings, the rank of each entry of its dictionary.
    ranks: Option<Vec<u32>>,
}

/// The places of groups in the order of one column: numbers that are less for what comes first.
struct Places<'a> {
    of: Column<'a>,
    options: SortOptions,
    /// Values are places from 1 to this one; null comes before or behind them.
    most: u128,
    /// Bits of the greatest place.
    bits: u32,
}

enum Column<'a> {
    /// A part of the groups' key, told by their indexes, with the ranks of strings.
    Key(&'a GroupKey, Option<&'a [u32]>, &'a [u64]),
    /// A function's values and the smallest of them.
    Values(Vec<Option<i128>>, i128),
}

impl Order {
    /// The order by these columns of `output`, at most `fetch` rows. `None` where it has to be found from the rows.
    #[must_use]
    pub fn new(output: &Output, columns: &[(usize, SortOptions)], fetch: Option<usize>) -> Option<Self> {
        let keys = columns.iter().map(|&(column, options)| {
            let ranks = match output.keys.get(column).and_then(|(_, entries)| entries.as_ref()) {
                None => None,
                Some(entries) if entries.len() > MOST_RANKED => return None,
                Some(entries) => Some(rank(entries, None).ok()?),
            };
            Some(OrderKey { column, options, ranks })
        });
        Some(Self { keys: keys.collect::<Option<_>>()?, fetch })
    }

    /// The numbers of the groups in this order.
    #[must_use]
    pub fn rows(&self, output: &Output, groups: &GroupWords) -> Vec<u32> {
        let columns: Vec<Places<'_>> = self.keys.iter().map(|key| Places::new(key, output, groups)).collect();
        let count = u32::try_from(groups.indexes.len()).unwrap_or(u32::MAX);
        let row_bits = u32::BITS - count.leading_zeros();
        let bits: u32 = columns.iter().map(|column| column.bits).sum();
        if bits + row_bits > u128::BITS {
            return first((0..count).collect(), self.fetch, |&left, &right| {
                let orders = columns.iter().map(|column| column.place(left).cmp(&column.place(right)));
                orders.fold(Ordering::Equal, Ordering::then).then(left.cmp(&right))
            });
        }
        // The places in all columns and the row in one number.
        let packed = |row| columns.iter().fold(0, |packed, column| packed << column.bits | column.place(row));
        let packed = (0..count).map(|row| packed(row) << row_bits | u128::from(row)).collect();
        let row = |packed: u128| u32::try_from(packed & ((1 << row_bits) - 1)).unwrap_or(u32::MAX);
        first(packed, self.fetch, u128::cmp).into_iter().map(row).collect()
    }
}

/// The first `fetch` of `rows`, in order.
fn first<T>(mut rows: Vec<T>, fetch: Option<usize>, compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    if let Some(fetch) = fetch.filter(|&fetch| fetch < rows.len()) {
        rows.select_nth_unstable_by(fetch, &compare);
        rows.truncate(fetch);
    }
    rows.sort_unstable_by(compare);
    rows
}

impl<'a> Places<'a> {
    fn new(key: &'a OrderKey, output: &'a Output, groups: &'a GroupWords) -> Self {
        let (of, most) = match output.keys.get(key.column) {
            Some((part, _)) => {
                let ranks = key.ranks.as_deref();
                let most = ranks.map(|ranks| ranks.iter().max().copied().unwrap_or(0).into());
                (
                    Column::Key(part, ranks, &groups.indexes),
                    most.map_or(part.codes.into(), |most: u128| most + 1),
                )
            }
            None => {
                let values = output.values(key.column, groups);
                let min = values.iter().flatten().min().copied().unwrap_or(0);
                let max = values.iter().flatten().max().copied().unwrap_or(0);
                (Column::Values(values, min), max.abs_diff(min) + 1)
            }
        };
        Self { of, options: key.options, most, bits: u128::BITS - (most + 1).leading_zeros() }
    }

    fn place(&self, row: u32) -> u128 {
        let row = row as usize;
        let value: Option<u128> = match &self.of {
            Column::Key(part, ranks, indexes) => {
                let value = indexes.get(row).and_then(|&index| part.value_of(index));
                value.map(|value| match ranks {
                    Some(ranks) => {
                        let rank = usize::try_from(value).ok().and_then(|entry| ranks.get(entry));
                        rank.copied().unwrap_or(0).into()
                    }
                    None => value.abs_diff(part.range.min).into(),
                })
            }
            Column::Values(values, min) => {
                values.get(row).copied().flatten().map(|value| value.abs_diff(*min))
            }
        };
        match value {
            Some(value) if self.options.descending => self.most - value.min(self.most),
            Some(value) => value + 1,
            None if self.options.nulls_first => 0,
            None => self.most + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, RecordBatch, StringArray};
    use arrow::compute::{SortColumn, lexsort_to_indices, take_record_batch};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::front::output::Finish;
    use crate::plan::{GroupKey, GroupWords, Predicate, Range, Value};

    /// Groups by a nullable string and a number, with a sum that can be null and an average.
    fn example() -> (Output, GroupWords) {
        let names: ArrayRef = Arc::new(StringArray::from(vec!["b", "", "ab", "a"]));
        let key = |nullable: bool, min: i64, codes: u64, stride| GroupKey {
            value: Value::Literal(0),
            valid: Predicate::Always(true),
            nullable,
            range: Range { min, max: min + codes.cast_signed() },
            codes,
            stride,
        };
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let schema = Schema::new(vec![
            field("name", DataType::Utf8),
            field("number", DataType::Int32),
            field("sum", DataType::Int64),
            field("average", DataType::Float64),
        ]);
        let functions = vec![
            Finish::Sum { low: 0, high: None, count: Some(1) },
            Finish::Average { low: 0, high: None, count: 1, scale: 1 },
        ];
        let keys = vec![(key(true, 0, 5, 3), Some(names)), (key(false, -1, 3, 1), None)];
        let output = Output { schema: Arc::new(schema), keys, functions, words: 2, order: None };
        let mut groups = GroupWords::default();
        let sums = [i64::MIN, i64::MAX, -3, 3, 3].into_iter().cycle();
        let counts = [0, 2, 5].into_iter().cycle();
        for (index, (sum, count)) in [7, 2, 14, 0, 9, 4, 11, 6].into_iter().zip(sums.zip(counts)) {
            groups.indexes.push(index);
            groups.words.extend([sum.cast_unsigned(), count]);
        }
        (output, groups)
    }

    #[test]
    fn the_order_of_groups_is_that_of_their_rows() {
        let (output, groups) = example();
        let all = output.batch(&groups).unwrap();
        for columns in [vec![0], vec![1], vec![3], vec![2, 0], vec![0, 1], vec![3, 1], vec![2, 3, 0, 1]] {
            for bits in 0..16_u8 {
                let options = |place: usize| SortOptions {
                    descending: bits >> (place % 2) & 1 == 1,
                    nulls_first: bits >> (2 + place % 2) & 1 == 1,
                };
                // The group's key last, so that there is one right order.
                let by: Vec<(usize, SortOptions)> = columns
                    .iter()
                    .chain(&[0, 1])
                    .enumerate()
                    .map(|(at, &column)| (column, options(at)))
                    .collect();
                for fetch in [None, Some(0), Some(3), Some(9)] {
                    let sorted: Vec<SortColumn> = by
                        .iter()
                        .map(|&(column, options)| SortColumn {
                            values: Arc::clone(all.column(column)),
                            options: Some(options),
                        })
                        .collect();
                    let expected: RecordBatch =
                        take_record_batch(&all, &lexsort_to_indices(&sorted, fetch).unwrap()).unwrap();
                    let order = Order::new(&output, &by, fetch);
                    assert!(order.is_some());
                    let found = Output { order, ..output.clone() }.batch(&groups).unwrap();
                    assert_eq!(found, expected, "{by:?}, {fetch:?}");
                }
            }
        }
    }

    #[test]
    fn strings_of_a_long_dictionary_are_left_to_the_rows() {
        let (mut output, _) = example();
        let entries: StringArray = (0..=MOST_RANKED).map(|number| Some(number.to_string())).collect();
        output.keys[0].1 = Some(Arc::new(entries));
        assert!(Order::new(&output, &[(0, SortOptions::default())], None).is_none());
        assert!(Order::new(&output, &[(1, SortOptions::default())], None).is_some());
    }
}
