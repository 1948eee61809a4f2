//! Integers of b bits, packed in the two ways of SPEC.md section 8.

// Bit arithmetic: what a cast drops here has been masked away, or is a shift below 128.
#![allow(clippy::cast_possible_truncation)]

pub mod lanes;
pub mod sequence;
pub mod vectors;

use crate::{Value, Values, with_values};
use vectors::Kernel;

/// Bits that the largest of `values` needs; 0 for only zeros.
#[must_use]
pub fn bit_width<V: Value>(values: &[V]) -> u32 {
    // One or over all values instead of a maximum: the same highest bit, and cheaper.
    let bits = values.iter().fold(0, |bits, value| bits | value.to_u64());
    u64::BITS - bits.leading_zeros()
}

/// The reference that makes `value - reference` narrowest modulo 2^WIDTH, and the bits that these residuals need: the unsigned or the signed minimum,
/// whichever is better (the unsigned where both are). Values must not be empty; of none it is (0, 0).
#[must_use]
pub fn best_reference<V: Value>(values: &[V]) -> (V, u32) {
    let (reference, bit_width) = best_reference_of(V::erase(values));
    (V::from_u64(reference), bit_width)
}

/// Compiled here once for all codecs.
fn best_reference_of(values: Values<'_>) -> (u64, u32) {
    with_values!(Values, values, values => {
        let (reference, bit_width) = narrowest(values);
        (reference.to_u64(), bit_width)
    })
}

fn narrowest<V: Value>(values: &[V]) -> (V, u32) {
    let ranges = vectors::run(Extremes { values });
    let (min, max) = ranges.plain;
    let (flipped_min, flipped_max) = ranges.flipped;
    let width = |low: V, high: V| u64::BITS - high.wrapping_sub(low).to_u64().leading_zeros();
    let (unsigned_width, signed_width) = (width(min, max), width(flipped_min, flipped_max));
    if signed_width < unsigned_width {
        (flipped_min.flip_sign(), signed_width)
    } else {
        (min, unsigned_width)
    }
}

/// Finds the smallest and the largest value in both orders in one pass.
struct Extremes<'a, V> {
    values: &'a [V],
}

/// Minimum and maximum.
struct Ranges<V> {
    /// Of the values.
    plain: (V, V),
    /// Of the values with their sign bits flipped: unsigned order of these is signed order.
    flipped: (V, V),
}

impl<V: Value> Kernel for Extremes<'_, V> {
    type Output = Ranges<V>;

    #[inline(always)]
    fn run(self) -> Ranges<V> {
        let first = self.values.first().copied().unwrap_or_default();
        let (mut min, mut max) = (first, first);
        let (mut flipped_min, mut flipped_max) = (first.flip_sign(), first.flip_sign());
        // Without branches, for the compiler to find vector minima and maxima.
        for &value in self.values {
            let flipped = value.flip_sign();
            min = if value < min { value } else { min };
            max = if value > max { value } else { max };
            flipped_min = if flipped < flipped_min { flipped } else { flipped_min };
            flipped_max = if flipped > flipped_max { flipped } else { flipped_max };
        }
        Ranges { plain: (min, max), flipped: (flipped_min, flipped_max) }
    }
}

#[cfg(test)]
mod tests {
    use super::vectors::tests::at_every_level;
    use super::*;
    use crate::statistics::range;
    use format_spec::Order;

    fn obvious<V: Value>(values: &[V]) -> (V, u32) {
        let width = |(low, high): (V, V)| u64::BITS - high.wrapping_sub(low).to_u64().leading_zeros();
        let (unsigned, signed) = (range(values, Order::Unsigned), range(values, Order::Signed));
        if width(signed) < width(unsigned) {
            (signed.0, width(signed))
        } else {
            (unsigned.0, width(unsigned))
        }
    }

    fn check<V: Value>() {
        for length in [1, 2, 33, 1000, 1024] {
            for (name, values) in crate::conformance::named_distributions::<V>(length) {
                assert_eq!(best_reference(&values), obvious(&values), "{name}");
            }
        }
    }

    #[test]
    fn the_best_reference_is_the_better_minimum() {
        at_every_level(|| {
            check::<u8>();
            check::<u16>();
            check::<u32>();
            check::<u64>();
        });
        assert_eq!(best_reference::<u32>(&[]), (0, 0));
    }
}
