//! Integers of b bits, packed in the two ways of SPEC.md section 8.

// Bit arithmetic: what a cast drops here has been masked away, or is a shift below 128.
#![allow(clippy::cast_possible_truncation)]

pub mod lanes;
pub mod sequence;

use crate::Value;

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
    let (min, max) = crate::statistics::range(values, format_spec::Order::Unsigned);
    let (signed_min, signed_max) = crate::statistics::range(values, format_spec::Order::Signed);
    let width = |low: V, high: V| u64::BITS - high.wrapping_sub(low).to_u64().leading_zeros();
    let (unsigned_width, signed_width) = (width(min, max), width(signed_min, signed_max));
    if signed_width < unsigned_width { (signed_min, signed_width) } else { (min, unsigned_width) }
}
