//! One decoded buffer of a tile: room that is used again for every tile.

use codec_core::Value;

use super::rows::TILE;

/// Values of a tile in their stored width. Only the first values, as many as the tile has rows, mean anything.
#[derive(Debug)]
pub enum Lanes {
    /// 8 bits each.
    U8(Box<[u8; TILE]>),
    /// 16 bits each.
    U16(Box<[u16; TILE]>),
    /// 32 bits each.
    U32(Box<[u32; TILE]>),
    /// 64 bits each.
    U64(Box<[u64; TILE]>),
}

/// Runs `$body` with `$values` bound to the typed array of whatever variant `$lanes` is.
macro_rules! with_lanes {
    ($lanes:expr, $values:ident => $body:expr) => {
        match $lanes {
            $crate::cpu::lanes::Lanes::U8($values) => $body,
            $crate::cpu::lanes::Lanes::U16($values) => $body,
            $crate::cpu::lanes::Lanes::U32($values) => $body,
            $crate::cpu::lanes::Lanes::U64($values) => $body,
        }
    };
}
pub(crate) use with_lanes;

impl Lanes {
    /// Room for values of `value_width` bits; of 64 where that is no width.
    #[must_use]
    pub fn new(value_width: u8) -> Self {
        match value_width {
            8 => Self::U8(Box::new([0; TILE])),
            16 => Self::U16(Box::new([0; TILE])),
            32 => Self::U32(Box::new([0; TILE])),
            _ => Self::U64(Box::new([0; TILE])),
        }
    }

    /// Bits a value.
    #[must_use]
    pub fn value_width(&self) -> u8 {
        match self {
            Self::U8(_) => 8,
            Self::U16(_) => 16,
            Self::U32(_) => 32,
            Self::U64(_) => 64,
        }
    }

    /// Makes this room for values of `value_width` bits.
    pub fn resize(&mut self, value_width: u8) {
        if self.value_width() != value_width {
            *self = Self::new(value_width);
        }
    }
}

/// How stored values become integers of 64 bits: by the sign bit of those in two's complement, by 0 of others. Zero-extended, `(value ^ sign) - sign` extends the sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sign(u64);

impl Sign {
    /// Of values of `value_width` bits.
    #[must_use]
    pub fn new(signed: bool, value_width: u8) -> Self {
        Self(if signed && (1..64).contains(&value_width) { 1 << (value_width - 1) } else { 0 })
    }

    /// The value as an integer of 64 bits.
    #[inline(always)]
    pub fn widen<V: Value>(self, value: V) -> i64 {
        (value.to_u64() ^ self.0).wrapping_sub(self.0).cast_signed()
    }

    /// Smallest and largest integer that values of `value_width` bits can be. Unsigned ones of 64 bits are taken as if they were signed.
    #[must_use]
    pub fn domain(self, value_width: u8) -> (i64, i64) {
        match value_width {
            64.. => (i64::MIN, i64::MAX),
            width => {
                let values = 1_i64 << width;
                let below = self.0.cast_signed();
                (-below, values - 1 - below)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_extend() {
        let signed = |value: i8| Sign::new(true, 8).widen(value.cast_unsigned());
        assert_eq!((signed(-128), signed(-1), signed(127)), (-128, -1, 127));
        assert_eq!(Sign::new(false, 8).widen(255_u8), 255);
        assert_eq!(Sign::new(true, 64).widen(u64::MAX), -1);
        assert_eq!(Sign::new(true, 16).domain(16), (-32768, 32767));
        assert_eq!(Sign::new(false, 32).domain(32), (0, (1 << 32) - 1));
    }
}
