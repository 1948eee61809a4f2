//! Columns to measure and to check with, made from a seed.

use codec_core::Value;
use rayon::prelude::*;

/// Values in the pieces that are made independently: the largest tile of values, so that a property of tiles holds for all tile sizes.
const PIECE: usize = 1024;

/// What a column's values are like.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Random values of exactly so many bits in every tile, over one base.
    Uniform {
        /// Bits, 0 to the values' width.
        bits: u8,
    },
    /// Random values whose bits change at random from tile to tile, over random bases.
    MixedWidths,
    /// Random values of 16 bits (8 for narrow values) in runs of random lengths from 1 to twice the average less 1.
    Runs {
        /// Average run length.
        average: u32,
    },
    /// Ascending, with random gaps of 0 to 7.
    Sorted,
    /// Floats of two decimal digits up to 200, and some random bits among them. The bits of floats are values of 32 or 64 bits.
    Decimals {
        /// How many of a thousand are random bits.
        odd: u16,
    },
    /// Floats of the unit interval, with all digits that they can have.
    Reals,
}

impl std::fmt::Display for Data {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Uniform { bits } => write!(formatter, "uniform, {bits} bits"),
            Self::MixedWidths => formatter.write_str("widths mixed over tiles"),
            Self::Runs { average } => write!(formatter, "runs of {average} on average"),
            Self::Sorted => formatter.write_str("sorted"),
            Self::Decimals { odd } => write!(formatter, "decimals, {odd} of 1000 odd"),
            Self::Reals => formatter.write_str("reals"),
        }
    }
}

impl Data {
    /// `count` values, the same for the same seed.
    #[must_use]
    pub fn generate<V: Value>(self, count: usize, seed: u64) -> Vec<V> {
        let mut values = vec![V::default(); count];
        let pieces = values.par_chunks_mut(PIECE).enumerate();
        pieces.for_each(|(piece, values)| self.fill(piece as u64, values, seed));
        values
    }

    fn fill<V: Value>(self, piece: u64, values: &mut [V], seed: u64) {
        let mut random = Random(Random(seed).draw() ^ piece.wrapping_mul(0xD1B5_4A32_D192_ED03));
        match self {
            Self::Uniform { bits } => {
                fill_bits(values, u32::from(bits), Random(seed ^ 1).draw() >> 40, &mut random)
            }
            Self::MixedWidths => {
                let bits = random.draw() % (u64::from(V::WIDTH) + 1);
                fill_bits(values, u32::try_from(bits).unwrap_or(0), random.draw(), &mut random);
            }
            Self::Runs { average } => {
                let mut rest = values;
                while !rest.is_empty() {
                    let length = 1 + random.draw() % (2 * u64::from(average.max(1)) - 1);
                    let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
                    let (run, behind) = rest.split_at_mut(length);
                    run.fill(V::from_u64(random.draw() & 0xFFFF));
                    rest = behind;
                }
            }
            Self::Sorted => {
                let mut value = piece * PIECE as u64 * 8;
                for target in values {
                    *target = V::from_u64(value);
                    value += random.draw() % 8;
                }
            }
            Self::Decimals { odd } => {
                for target in values {
                    let (draw, is_odd) = (random.draw(), random.draw() % 1000 < u64::from(odd));
                    *target = if is_odd { V::from_u64(draw) } else { quotient(draw % 20_000, 100.0) };
                }
            }
            Self::Reals => {
                for target in values {
                    *target = quotient(random.draw() >> 11, 9_007_199_254_740_992.0);
                }
            }
        }
    }
}

/// The bits of the nearest float to the quotient.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn quotient<V: Value>(dividend: u64, divisor: f64) -> V {
    match V::WIDTH {
        64 => V::from_u64((dividend as f64 / divisor).to_bits()),
        _ => V::from_u64((dividend as f32 / divisor as f32).to_bits().into()),
    }
}

/// Both ends of the range occur in each piece, so that its width is exactly `bits`.
fn fill_bits<V: Value>(values: &mut [V], bits: u32, base: u64, random: &mut Random) {
    let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits.min(64)) };
    for value in values.iter_mut() {
        *value = V::from_u64(base.wrapping_add(random.draw() & mask));
    }
    let middle = values.len() / 2;
    for (place, residual) in [(0, 0), (1, mask), (middle, mask), (middle + 1, 0)] {
        if let Some(value) = values.get_mut(place) {
            *value = V::from_u64(base.wrapping_add(residual));
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}
