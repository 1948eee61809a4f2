//! Columns with the property that a codec lives from. Deterministic.

use codec_core::conformance::Random;
use codec_core::{OwnedValues, Value};

/// Values of a block of 2 MiB of 32-bit values.
pub const BLOCK_LEN: usize = 524_288;

/// A column and what to call it.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name in reports.
    pub name: String,
    /// Its values.
    pub values: OwnedValues,
}

/// Residuals of exactly `bit_width` bits over a base.
#[must_use]
pub fn uniform<V: Value>(bit_width: u32) -> Column {
    let mut random = Random(u64::from(bit_width));
    let base = V::from_u64(1_000_000 & (u64::MAX >> (64 - u32::from(V::WIDTH))));
    let mask = u64::MAX.checked_shr(64 - bit_width).unwrap_or(0);
    // Every tile spans the whole range, so that each has this bit width.
    let residual = |position: usize, draw: u64| match position % 512 {
        0 => 0,
        1 => mask,
        _ => draw & mask,
    };
    let base = if bit_width == u32::from(V::WIDTH) { V::default() } else { base };
    let values = (0..BLOCK_LEN)
        .map(|position| V::from_u64(residual(position, random.draw())).wrapping_add(base))
        .collect();
    Column { name: format!("u{} of {bit_width} bits", V::WIDTH), values: V::own(values) }
}

/// Runs of `average` equal values: half of them shorter, half longer, values of 16 bits.
#[must_use]
pub fn runs(average: u64) -> Column {
    let mut random = Random(average);
    let mut values: Vec<u32> = Vec::with_capacity(BLOCK_LEN + 2 * 1024);
    while values.len() < BLOCK_LEN {
        let length = 1 + random.draw() % (2 * average - 1);
        let value = u32::from_u64(random.draw() & 0xFFFF);
        values.extend((0..length).map(|_| value));
    }
    values.truncate(BLOCK_LEN);
    Column { name: format!("u32 in runs of {average}"), values: OwnedValues::U32(values) }
}

/// Ascending values with gaps below 2^`gap_bits`.
#[must_use]
pub fn ascending(gap_bits: u32) -> Column {
    let mut random = Random(gap_bits.into());
    let mut value = 0_u32;
    let values = (0..BLOCK_LEN)
        .map(|_| {
            value = value.wrapping_add(u32::from_u64(random.draw() & ((1 << gap_bits) - 1)));
            value
        })
        .collect();
    Column { name: format!("u32 ascending, gaps of {gap_bits} bits"), values: OwnedValues::U32(values) }
}

/// Doubles with two decimals.
#[must_use]
pub fn prices() -> Column {
    let mut random = Random(9);
    let values = (0..BLOCK_LEN).map(|_| ((random.draw() % 1_000_000) as f64 / 100.0).to_bits()).collect();
    Column { name: "f64 of two decimals".into(), values: OwnedValues::U64(values) }
}

/// Doubles of all digits between 0 and 1.
#[must_use]
pub fn fractions() -> Column {
    let mut random = Random(11);
    let values =
        (0..BLOCK_LEN).map(|_| ((random.draw() >> 11) as f64 / 9_007_199_254_740_992.0).to_bits()).collect();
    Column { name: "f64 random below 1".into(), values: OwnedValues::U64(values) }
}
