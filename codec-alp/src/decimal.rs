//! Scheme decimal: floats as integers at one exponent.

use codec_core::Value;
use codec_core::packing::vectors::{self, Kernel};
use codec_core::packing::{best_reference, lanes};
use zerocopy::IntoBytes;

use crate::exceptions::Exceptions;
use crate::float::{Float, POWERS, Power};
use crate::{DECIMAL, Header};

/// Values that are looked at to choose an exponent.
const SAMPLED_VALUES: usize = 32;
/// So many of the sample must show whether there are decimals at all.
const FIRST_VALUES: usize = 8;
/// 1.5·2^52: what is added to a float of a smaller magnitude than 2^51 leaves its nearest integer in the low bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// How a tile would be written.
#[derive(Debug)]
pub struct Plan {
    /// The exponent that serves the sample best.
    pub exponent: i8,
    /// Bits that a value takes, exceptions included, as the sample says.
    pub value_bits: f64,
    /// Whether the whole sample fits, and in so few bits that nothing else needs to be tried.
    pub is_safe: bool,
}

/// The best exponent for a sample of `values`; `None` where hardly any is a decimal.
pub fn plan<F: Float>(values: &[F::Bits]) -> Option<Plan> {
    let sample: Vec<F::Bits> = sampled(values, SAMPLED_VALUES).collect();
    let mut exponents: Vec<i8> = Vec::with_capacity(sample.len());
    for (index, &value) in sample.iter().enumerate() {
        exponents.extend(needed_exponent::<F>(value));
        if index + 1 == FIRST_VALUES && exponents.len() < FIRST_VALUES / 4 {
            return None;
        }
    }
    exponents.sort_unstable();
    exponents.dedup();
    let plans = exponents.into_iter().map(|exponent| estimate::<F>(&sample, exponent));
    plans.min_by(|left, right| left.value_bits.total_cmp(&right.value_bits))
}

/// Up to `count` of `values`, evenly spread.
pub fn sampled<V: Value>(values: &[V], count: usize) -> impl Iterator<Item = V> {
    values.iter().copied().step_by(values.len().div_ceil(count).max(1))
}

/// The smallest exponent at which the value is an integer: its decimals, or less its trailing zeros. `None` where there is none.
fn needed_exponent<F: Float>(value: F::Bits) -> Option<i8> {
    let wide = F::widened(value);
    if wide.abs() >= ROUNDER || !wide.is_finite() {
        return (-F::MAX_EXPONENT.cast_signed()..0).find(|&exponent| fits::<F>(value, exponent));
    }
    if !fits::<F>(value, 0) {
        let digits = (1..=F::MAX_EXPONENT).take_while(|&digits| {
            POWERS.get(usize::from(digits)).is_some_and(|power| wide.abs() * power < ROUNDER)
        });
        return digits.map(u8::cast_signed).find(|&exponent| fits::<F>(value, exponent));
    }
    if wide == 0.0 {
        // Zero is an integer at every exponent.
        return Some(-F::MAX_EXPONENT.cast_signed());
    }
    let mut zeros = 0;
    while zeros < F::MAX_EXPONENT.cast_signed() && fits::<F>(value, -zeros - 1) {
        zeros += 1;
    }
    Some(-zeros)
}

fn fits<F: Float>(value: F::Bits, exponent: i8) -> bool {
    F::from_integer(nearest_integer::<F>(value, exponent), Power::of(exponent)) == value
}

/// The two's complement of the integer nearest to value · 10^exponent; anything where that is too large. Whoever asks compares what comes back.
#[inline(always)]
fn nearest_integer<F: Float>(value: F::Bits, exponent: i8) -> F::Bits {
    let power = f64::power_of_ten(exponent.unsigned_abs());
    let wide = F::widened(value);
    rounded::<F>(if exponent < 0 { wide / power } else { wide * power })
}

#[inline(always)]
fn rounded<F: Float>(scaled: f64) -> F::Bits {
    F::Bits::from_u64((scaled + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()))
}

fn estimate<F: Float>(sample: &[F::Bits], exponent: i8) -> Plan {
    let (mut integers, mut fitting) = (Vec::with_capacity(sample.len()), 0_u16);
    for &value in sample {
        let integer = nearest_integer::<F>(value, exponent);
        if F::from_integer(integer, Power::of(exponent)) == value {
            integers.push(integer);
            fitting += 1;
        }
    }
    let (_, bit_width) = best_reference(&integers);
    let exceptions = (sample.len() as f64 - f64::from(fitting)) / sample.len().max(1) as f64;
    let value_bits = f64::from(bit_width) + exceptions * f64::from(exception_bits::<F::Bits>());
    let is_safe = exceptions == 0.0 && value_bits < f64::from(F::Bits::WIDTH) * 0.6;
    Plan { exponent, value_bits, is_safe }
}

fn exception_bits<V: Value>() -> u32 {
    u32::from(V::WIDTH) + u16::BITS
}

/// Turns integers at `exponent` into floats, in place.
pub fn to_floats<F: Float>(integers: &mut [F::Bits], exponent: i8) {
    vectors::run(ToFloats { integers, power: Power::<F>::of(exponent) });
}

struct ToFloats<'v, F: Float> {
    integers: &'v mut [F::Bits],
    power: Power<F>,
}

impl<F: Float> Kernel for ToFloats<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // One loop for each operation, so that none branches on a value.
        match self.power {
            Power::Divide(power) => {
                for value in self.integers {
                    *value = F::from_integer(*value, Power::Divide(power));
                }
            }
            Power::Multiply(power) => {
                for value in self.integers {
                    *value = F::from_integer(*value, Power::Multiply(power));
                }
            }
        }
    }
}

/// A tile of integers and exceptions, ready to be packed.
#[derive(Debug)]
pub struct Decimal<V> {
    exponent: i8,
    reference: V,
    bit_width: u32,
    /// One for each value; an exception's is a copy of another, so that it costs no width.
    integers: Vec<V>,
    exception_values: Vec<V>,
    exception_positions: Vec<u16>,
}

impl<V: Value> Decimal<V> {
    /// The tile of `values` at `exponent`.
    pub fn of<F: Float<Bits = V>>(values: &[V], exponent: i8) -> Self {
        let mut integers = nearest_integers::<F>(values, exponent);
        let mut restored = integers.clone();
        to_floats::<F>(&mut restored, exponent);
        let (reference, bit_width) = if restored == values {
            narrowest(&integers)
        } else {
            let all = integers.iter().zip(restored.iter().zip(values));
            let fitting: Vec<V> =
                all.filter(|(_, (left, right))| left == right).map(|(&fits, _)| fits).collect();
            narrowest(&fitting)
        };
        let mask = u64::MAX.checked_shr(u64::BITS - bit_width).unwrap_or(0);
        let (mut exception_values, mut exception_positions) = (Vec::new(), Vec::new());
        for (position, ((integer, restored), &value)) in
            (0_u16..).zip(integers.iter_mut().zip(restored).zip(values))
        {
            if restored != value || integer.wrapping_sub(reference).to_u64() > mask {
                *integer = reference;
                exception_values.push(value);
                exception_positions.push(position);
            }
        }
        Self { exponent, reference, bit_width, integers, exception_values, exception_positions }
    }

    /// Appends the tile.
    pub fn append(&self, tile: &mut Vec<u8>) {
        let header = Header {
            reference: self.reference.to_u64().into(),
            scheme: DECIMAL,
            exponent: self.exponent,
            bit_width: u8::try_from(self.bit_width).unwrap_or(u8::MAX),
            right_bits: 0,
            code_bit_width: 0,
            reserved: 0,
            exception_count: u16::try_from(self.exception_positions.len()).unwrap_or(u16::MAX).into(),
        };
        tile.extend_from_slice(header.as_bytes());
        lanes::pack(&self.integers, self.reference, self.bit_width, tile);
        Exceptions::append(&self.exception_values, &self.exception_positions, tile);
    }
}

/// [`nearest_integer`] of all values.
fn nearest_integers<F: Float>(values: &[F::Bits], exponent: i8) -> Vec<F::Bits> {
    let mut integers = values.to_vec();
    let power = f64::power_of_ten(exponent.unsigned_abs());
    vectors::run(ToIntegers::<F> { values: &mut integers, is_divided: exponent < 0, power });
    integers
}

struct ToIntegers<'v, F: Float> {
    values: &'v mut [F::Bits],
    is_divided: bool,
    power: f64,
}

impl<F: Float> Kernel for ToIntegers<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        if self.is_divided {
            for value in self.values {
                *value = rounded::<F>(F::widened(*value) / self.power);
            }
        } else {
            for value in self.values {
                *value = rounded::<F>(F::widened(*value) * self.power);
            }
        }
    }
}

/// Reference and bit width that take the fewest bits when what does not fit becomes an exception: all integers fit, or all but the largest few.
fn narrowest<V: Value>(integers: &[V]) -> (V, u32) {
    let (reference, widest) = best_reference(integers);
    let value_count = integers.len() as u64;
    let mut best = (value_count * u64::from(widest), widest);
    for bit_width in (0..widest).rev() {
        let wider = vectors::run(CountWider { integers, reference, bit_width });
        let exceptions = wider * u64::from(exception_bits::<V>());
        // Narrower still, there are only more of them.
        if exceptions >= best.0 {
            break;
        }
        best = best.min((exceptions + value_count * u64::from(bit_width), bit_width));
    }
    (reference, best.1)
}

/// How many residuals need more bits.
struct CountWider<'a, V> {
    integers: &'a [V],
    reference: V,
    bit_width: u32,
}

impl<V: Value> Kernel for CountWider<'_, V> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let Self { integers, reference, bit_width } = self;
        let residuals = integers.iter().map(|integer| integer.wrapping_sub(reference).to_u64());
        residuals.map(|residual| u64::from(residual >> bit_width != 0)).sum()
    }
}
