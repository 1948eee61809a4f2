//! Minima and maxima of stored values, by the order of what they mean.

use format_spec::Order;

use crate::Value;
use crate::packing::vectors::{self, Kernel};

/// Smallest and largest of `values` by `order`, as SPEC.md section 5 has them: (0, 0) without an order, (+infinity, -infinity) where only NaNs are left.
#[must_use]
pub fn range<V: Value>(values: &[V], order: Order) -> (V, V) {
    match order {
        Order::None => (V::default(), V::default()),
        Order::Unsigned => extremes(values, |value| value),
        Order::Signed => {
            let (min, max) = extremes(values, V::flip_sign);
            (min.flip_sign(), max.flip_sign())
        }
        Order::Float => float_range(values),
    }
}

/// Both ranges' union by `order`.
#[must_use]
pub fn union<V: Value>(left: (V, V), right: (V, V), order: Order) -> (V, V) {
    match order {
        Order::None => (V::default(), V::default()),
        Order::Unsigned => (left.0.min(right.0), left.1.max(right.1)),
        Order::Signed => {
            let (min, max) =
                (left.0.flip_sign().min(right.0.flip_sign()), left.1.flip_sign().max(right.1.flip_sign()));
            (min.flip_sign(), max.flip_sign())
        }
        Order::Float => {
            let min = if total_order(left.0) <= total_order(right.0) { left.0 } else { right.0 };
            let max = if total_order(left.1) >= total_order(right.1) { left.1 } else { right.1 };
            (min, max)
        }
    }
}

/// Whether the bits are a NaN of their width. There are no floats of 8 bits.
#[must_use]
pub fn is_nan<V: Value>(value: V) -> bool {
    value.to_u64() & (sign_bit::<V>() - 1) > infinity::<V>()
}

fn extremes<V: Value>(values: &[V], key: impl Fn(V) -> V) -> (V, V) {
    vectors::run(Extremes { values, key })
}

struct Extremes<'a, V, K> {
    values: &'a [V],
    key: K,
}

impl<V: Value, K: Fn(V) -> V> Kernel for Extremes<'_, V, K> {
    type Output = (V, V);

    #[inline(always)]
    fn run(self) -> (V, V) {
        let first = self.values.first().map_or_else(V::default, |&value| (self.key)(value));
        // Two running extremes without a branch: the compiler turns this into vector minima and maxima.
        self.values.iter().fold((first, first), |(min, max), &value| {
            let value = (self.key)(value);
            (if value < min { value } else { min }, if value > max { value } else { max })
        })
    }
}

fn float_range<V: Value>(values: &[V]) -> (V, V) {
    vectors::run(FloatRange { values })
}

struct FloatRange<'a, V> {
    values: &'a [V],
}

impl<V: Value> Kernel for FloatRange<'_, V> {
    type Output = (V, V);

    #[inline(always)]
    fn run(self) -> (V, V) {
        let (least, most) = (V::from_u64(infinity::<V>() | sign_bit::<V>()), V::from_u64(infinity::<V>()));
        let (lowest, highest) = (total_order(least), total_order(most));
        let (mut min, mut max) = (highest, lowest);
        for &value in self.values {
            let key = total_order(value);
            // All that is beyond the infinities is NaN; an infinity in its place changes nothing.
            let is_number = key >= lowest && key <= highest;
            let (low, high) = (if is_number { key } else { highest }, if is_number { key } else { lowest });
            min = if low < min { low } else { min };
            max = if high > max { high } else { max };
        }
        (of_total_order(min), of_total_order(max))
    }
}

/// The bits of a float as an unsigned integer that ascends as IEEE 754 totalOrder does.
#[inline(always)]
fn total_order<V: Value>(value: V) -> u64 {
    let (bits, sign) = (value.to_u64(), sign_bit::<V>());
    if bits & sign == 0 { bits | sign } else { !bits & (sign | (sign - 1)) }
}

/// The float that [`total_order`] made `key` of.
fn of_total_order<V: Value>(key: u64) -> V {
    let sign = sign_bit::<V>();
    V::from_u64(if key & sign == 0 { !key } else { key ^ sign })
}

fn sign_bit<V: Value>() -> u64 {
    1 << (V::WIDTH - 1)
}

/// The bits of +infinity: all ones in the exponent, of 5, 8 or 11 bits.
fn infinity<V: Value>() -> u64 {
    match V::WIDTH {
        16 => 0x7C00,
        32 => 0x7F80_0000,
        _ => 0x7FF0_0000_0000_0000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packing::vectors::tests::at_every_level;

    /// Value by value.
    fn obvious<V: Value>(values: &[V], order: Order) -> (V, V) {
        let empty = (V::from_u64(infinity::<V>()), V::from_u64(infinity::<V>() | sign_bit::<V>()));
        let mut numbers = values.iter().filter(|&&value| order != Order::Float || !is_nan(value));
        let first =
            if order == Order::Float { Some(empty) } else { numbers.next().map(|&value| (value, value)) };
        numbers.fold(first.unwrap_or_default(), |range, &value| union(range, (value, value), order))
    }

    fn check<V: Value>(orders: &[Order]) {
        for length in [1, 2, 33, 1000] {
            for (name, values) in crate::conformance::named_distributions::<V>(length) {
                for &order in orders {
                    assert_eq!(range(&values, order), obvious(&values, order), "{name} {order:?}");
                }
            }
        }
    }

    #[test]
    fn ranges_are_those_found_value_by_value() {
        at_every_level(|| {
            check::<u8>(&[Order::Unsigned, Order::Signed]);
            check::<u16>(&[Order::Unsigned, Order::Signed, Order::Float]);
            check::<u32>(&[Order::Unsigned, Order::Signed, Order::Float]);
            check::<u64>(&[Order::Unsigned, Order::Signed, Order::Float]);
        });
    }

    #[test]
    fn signed_values_compare_signed() {
        let values = [(-3_i32).cast_unsigned(), 7, i32::MIN.cast_unsigned()];
        assert_eq!(range(&values, Order::Signed), (i32::MIN.cast_unsigned(), 7));
        assert_eq!(range(&values, Order::Unsigned), (7, (-3_i32).cast_unsigned()));
    }

    #[test]
    fn nan_is_left_out_and_zeros_keep_their_sign() {
        let values = [f64::NAN, 0.0, -0.0, 2.5].map(f64::to_bits);
        assert_eq!(range(&values, Order::Float), ((-0.0_f64).to_bits(), 2.5_f64.to_bits()));
    }

    #[test]
    fn only_nan_gives_the_empty_range() {
        let values = [f32::NAN.to_bits(), (-f32::NAN).to_bits()];
        assert_eq!(range(&values, Order::Float), (f32::INFINITY.to_bits(), f32::NEG_INFINITY.to_bits()));
    }

    #[test]
    fn infinities_are_values() {
        let values = [f32::INFINITY, 1.0].map(f32::to_bits);
        assert_eq!(range(&values, Order::Float), (1.0_f32.to_bits(), f32::INFINITY.to_bits()));
    }
}
