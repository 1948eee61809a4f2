//! Minima and maxima of a node in one row group: SPEC.md section 4.

use std::cmp::Ordering;

use arrow::datatypes::DataType;
use codec_core::statistics::range;
use codec_core::{Order, OwnedValues, Value, with_values};

use super::build::{Content, NodeBuilder};
use super::tree::{Limb, Node, Shape};

/// A value longer than this makes the pair unknown.
const MAX_VALUE_BYTES: usize = 64;

/// Smallest and largest value of what `builder` has collected, as SPEC.md stores them; `None` where there is no value, the type has none, or one is too long.
#[must_use]
pub fn extremes(node: &Node, builder: &NodeBuilder) -> Option<(Vec<u8>, Vec<u8>)> {
    value_extremes(node, builder).filter(|(min, max)| are_short(min, max))
}

/// Whether both are short enough to be stored.
#[must_use]
pub fn are_short(min: &[u8], max: &[u8]) -> bool {
    min.len() <= MAX_VALUE_BYTES && max.len() <= MAX_VALUE_BYTES
}

/// As [`extremes`], whatever their length.
#[must_use]
pub fn value_extremes(node: &Node, builder: &NodeBuilder) -> Option<(Vec<u8>, Vec<u8>)> {
    // Values under nulls are copies of others and NaNs are left out: what is left must be something.
    if builder.slot_count == builder.null_count + builder.nan_count {
        return None;
    }
    match (&builder.content, &node.shape) {
        (Content::Limbs(limbs), Shape::Boolean) => {
            let [OwnedValues::U8(values)] = limbs.as_slice() else { return None };
            Some(single(values, Order::Unsigned))
        }
        (Content::Limbs(values), Shape::Limbs(limbs)) => match (values.as_slice(), limbs.as_slice()) {
            _ if matches!(node.data_type, DataType::Interval(_)) => None,
            ([values], [limb]) if !matches!(node.data_type, DataType::FixedSizeBinary(_)) => {
                Some(with_values!(OwnedValues, values, values => single(values, limb.order)))
            }
            _ => wide(node, values, limbs),
        },
        (Content::FixedBytes(bytes), Shape::FixedBytes(stride)) => byte_extremes(
            valid_slots(builder).filter_map(|slot| bytes.get(slot * stride..(slot + 1) * stride)),
        ),
        (Content::Bytes { ends, bytes }, Shape::Bytes) => {
            let value = |slot: usize| {
                let end = usize::try_from(*ends.get(slot)?).ok()?;
                let start = match slot.checked_sub(1) {
                    Some(before) => usize::try_from(*ends.get(before)?).ok()?,
                    None => 0,
                };
                bytes.get(start..end)
            };
            byte_extremes(valid_slots(builder).filter_map(value))
        }
        (Content::Codes(codes), Shape::Bytes) => {
            let dictionary = builder.coding.dictionary()?;
            // Codes of nulls before the first value are u32::MAX until they are filled in: no entry has that code.
            let mut used = vec![false; dictionary.len()];
            for &code in codes {
                if let Some(used) = usize::try_from(code).ok().and_then(|code| used.get_mut(code)) {
                    *used = true;
                }
            }
            let known = (0_u32..).zip(used).filter(|(_, used)| *used);
            byte_extremes(known.map(|(code, _)| dictionary.entry(code)))
        }
        _ => None,
    }
}

/// Compares two values as [`extremes`] stores them.
#[must_use]
pub fn compare(node: &Node, left: &[u8], right: &[u8]) -> Ordering {
    let order = match &node.shape {
        Shape::Boolean => Order::Unsigned,
        // The last limb of a wide integer carries the sign of all of it.
        Shape::Limbs(limbs) if !matches!(node.data_type, DataType::FixedSizeBinary(_)) => {
            limbs.last().map_or(Order::None, |limb| limb.order)
        }
        _ => return left.cmp(right),
    };
    ascending(left, order).cmp(&ascending(right, order))
}

/// The bytes of a little-endian value, changed so that they ascend as unsigned bytes when the values do.
fn ascending(value: &[u8], order: Order) -> Vec<u8> {
    let mut bytes: Vec<u8> = value.iter().rev().copied().collect();
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    if order == Order::Float && negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    } else if matches!(order, Order::Float | Order::Signed)
        && let Some(first) = bytes.first_mut()
    {
        *first ^= 0x80;
    }
    bytes
}

fn single<V: Value>(values: &[V], order: Order) -> (Vec<u8>, Vec<u8>) {
    let (min, max) = range(values, order);
    (min.as_bytes().to_vec(), max.as_bytes().to_vec())
}

/// Values of several limbs, and binary ones of any number: found by comparing slot with slot. Intervals have no order.
fn wide(node: &Node, values: &[OwnedValues], limbs: &[Limb]) -> Option<(Vec<u8>, Vec<u8>)> {
    let count = values.first()?.as_values().len();
    let compare = match node.data_type {
        DataType::Decimal128(..) | DataType::Decimal256(..) => compare_integers,
        DataType::FixedSizeBinary(_) => compare_bytes,
        _ => return None,
    };
    let (mut min, mut max) = (0, 0);
    for slot in 1..count {
        if compare(values, slot, min) == Ordering::Less {
            min = slot;
        } else if compare(values, slot, max) == Ordering::Greater {
            max = slot;
        }
    }
    let bytes = |slot| {
        let mut bytes = Vec::new();
        for (values, limb) in values.iter().zip(limbs) {
            let stored = limb_at(values, slot).to_le_bytes();
            bytes.extend_from_slice(stored.get(..usize::from(limb.width / 8)).unwrap_or_default());
        }
        bytes
    };
    Some((bytes(min), bytes(max)))
}

/// Two's complement integers, the least significant limb first.
fn compare_integers(values: &[OwnedValues], left: usize, right: usize) -> Ordering {
    let Some((top, rest)) = values.split_last() else { return Ordering::Equal };
    let signed = limb_at(top, left).cast_signed().cmp(&limb_at(top, right).cast_signed());
    rest.iter()
        .rev()
        .fold(signed, |order, limb| order.then_with(|| limb_at(limb, left).cmp(&limb_at(limb, right))))
}

/// Bytes in order, of which each limb holds some as a little-endian integer.
fn compare_bytes(values: &[OwnedValues], left: usize, right: usize) -> Ordering {
    let limb = |values: &OwnedValues, slot| limb_at(values, slot).swap_bytes();
    values.iter().fold(Ordering::Equal, |order, values| {
        order.then_with(|| limb(values, left).cmp(&limb(values, right)))
    })
}

fn limb_at(values: &OwnedValues, slot: usize) -> u64 {
    with_values!(OwnedValues, values, values => values.get(slot).map_or(0, |value| value.to_u64()))
}

fn valid_slots(builder: &NodeBuilder) -> impl Iterator<Item = usize> {
    let count = usize::try_from(builder.slot_count).unwrap_or(usize::MAX);
    (0..count).filter(|&slot| builder.null_count == 0 || builder.validity.get(slot) == Some(&1))
}

fn byte_extremes<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut both: Option<(&[u8], &[u8])> = None;
    for value in values {
        both = Some(both.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
    }
    both.map(|(min, max)| (min.to_vec(), max.to_vec()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::Field;

    use super::*;

    fn ordered(data_type: DataType, ascending: &[&[u8]]) {
        let node = Node::column(&Arc::new(Field::new("c", data_type, true))).unwrap();
        for pair in ascending.windows(2) {
            assert_eq!(compare(&node, pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(compare(&node, pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
    }

    #[test]
    fn stored_values_compare_by_what_they_mean() {
        let signed = [i32::MIN, -1, 0, 1, 256, i32::MAX].map(i32::to_le_bytes);
        ordered(DataType::Int32, &signed.each_ref().map(|value| value.as_slice()));
        let unsigned = [0, 1, 256, u32::MAX].map(u32::to_le_bytes);
        ordered(DataType::UInt32, &unsigned.each_ref().map(|value| value.as_slice()));
        let floats = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1.0, f64::INFINITY].map(f64::to_le_bytes);
        ordered(DataType::Float64, &floats.each_ref().map(|value| value.as_slice()));
        let wide = [i128::MIN, -(1 << 70), -1, 0, 1 << 70].map(i128::to_le_bytes);
        ordered(DataType::Decimal128(38, 0), &wide.each_ref().map(|value| value.as_slice()));
        ordered(DataType::FixedSizeBinary(2), &[&[0, 255], &[1, 0]]);
        ordered(DataType::Utf8, &[b"", b"a", b"ab", b"b"]);
    }
}
