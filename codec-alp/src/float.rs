//! The two float types, as decimal arithmetic needs them.

use codec_core::Value;

/// A float of 32 or 64 bits.
pub trait Float: Copy {
    /// Its bits.
    type Bits: Value;
    /// The largest exponent whose power of ten is exact.
    const MAX_EXPONENT: u8;

    /// The float with these bits, widened without loss.
    fn widened(bits: Self::Bits) -> f64;
    /// The integer whose two's complement `bits` are, divided by 10^exponent or multiplied by 10^-exponent: the bits of the result.
    fn from_integer(bits: Self::Bits, power: Power<Self>) -> Self::Bits;
    /// 10^exponent, `exponent` being at most [`Float::MAX_EXPONENT`].
    fn power_of_ten(exponent: u8) -> Self;
}

/// What integers are scaled by.
#[derive(Debug, Clone, Copy)]
pub enum Power<F> {
    /// The integer is divided.
    Divide(F),
    /// The integer is multiplied.
    Multiply(F),
}

impl<F: Float> Power<F> {
    /// The power for `exponent`.
    pub fn of(exponent: i8) -> Self {
        let power = F::power_of_ten(exponent.unsigned_abs());
        if exponent < 0 { Self::Multiply(power) } else { Self::Divide(power) }
    }
}

/// 10^0 to 10^22: all powers of ten that are exact in 64 bits; the first eleven are exact in 32 bits, too.
pub const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

impl Float for f64 {
    type Bits = u64;
    const MAX_EXPONENT: u8 = 22;

    #[inline(always)]
    fn widened(bits: u64) -> f64 {
        Self::from_bits(bits)
    }

    #[inline(always)]
    fn from_integer(bits: u64, power: Power<Self>) -> u64 {
        let integer = bits.cast_signed() as Self;
        match power {
            Power::Divide(power) => integer / power,
            Power::Multiply(power) => integer * power,
        }
        .to_bits()
    }

    fn power_of_ten(exponent: u8) -> Self {
        POWERS.get(usize::from(exponent)).copied().unwrap_or(1.0)
    }
}

impl Float for f32 {
    type Bits = u32;
    const MAX_EXPONENT: u8 = 10;

    #[inline(always)]
    fn widened(bits: u32) -> f64 {
        Self::from_bits(bits).into()
    }

    #[inline(always)]
    fn from_integer(bits: u32, power: Power<Self>) -> u32 {
        let integer = bits.cast_signed() as Self;
        match power {
            Power::Divide(power) => integer / power,
            Power::Multiply(power) => integer * power,
        }
        .to_bits()
    }

    // The powers up to 10^10 are exact in 32 bits.
    #[allow(clippy::cast_possible_truncation)]
    fn power_of_ten(exponent: u8) -> Self {
        f64::power_of_ten(exponent) as Self
    }
}
