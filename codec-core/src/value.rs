//! The four value types, and runs of them whose type is only known at run time.

use std::fmt::Debug;
use std::hash::Hash;

use format_spec::Layout;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// An unsigned integer of 8, 16, 32 or 64 bits: all that a tile can hold. Signed integers, floats and codes are stored as their bits; arithmetic wraps.
pub trait Value:
    Copy + Default + Ord + Hash + Debug + Send + Sync + FromBytes + IntoBytes + Immutable + KnownLayout + 'static
{
    /// Bits a value.
    const WIDTH: u8;
    /// Bytes a value.
    const BYTES: usize = size_of::<Self>();

    /// Zero-extended.
    fn to_u64(self) -> u64;
    /// The low bits of `bits`.
    fn from_u64(bits: u64) -> Self;
    /// The low 32 bits, zero-extended: all of a value of at most 32 bits.
    fn to_u32(self) -> u32;
    /// The low bits of `bits`, zero-extended.
    fn from_u32(bits: u32) -> Self;
    /// Sum modulo 2^WIDTH.
    #[must_use]
    fn wrapping_add(self, other: Self) -> Self;
    /// Difference modulo 2^WIDTH.
    #[must_use]
    fn wrapping_sub(self, other: Self) -> Self;
    /// The same values with their type as an enum.
    fn erase(values: &[Self]) -> Values<'_>;
    /// The same room with its type as an enum.
    fn erase_mut(values: &mut [Self]) -> ValuesMut<'_>;
    /// The values, if they are of this type.
    fn restore(values: Values<'_>) -> Option<&[Self]>;
    /// The same vector with its type as an enum.
    fn own(values: Vec<Self>) -> OwnedValues;

    /// The value as two's complement: with the sign bit flipped, unsigned order is signed order.
    #[must_use]
    fn flip_sign(self) -> Self {
        self.wrapping_add(Self::from_u64(1 << (Self::WIDTH - 1)))
    }
}

macro_rules! value {
    ($type:ty, $variant:ident) => {
        impl Value for $type {
            #[allow(clippy::cast_possible_truncation)]
            const WIDTH: u8 = size_of::<$type>() as u8 * 8;

            fn to_u64(self) -> u64 {
                self.into()
            }

            // Dropping the high bits is what the trait promises.
            #[allow(clippy::cast_possible_truncation)]
            fn from_u64(bits: u64) -> Self {
                bits as Self
            }

            #[allow(clippy::cast_possible_truncation, clippy::cast_lossless)]
            fn to_u32(self) -> u32 {
                self as u32
            }

            #[allow(clippy::cast_possible_truncation, clippy::cast_lossless)]
            fn from_u32(bits: u32) -> Self {
                bits as Self
            }

            fn wrapping_add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn wrapping_sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            fn erase(values: &[Self]) -> Values<'_> {
                Values::$variant(values)
            }

            fn erase_mut(values: &mut [Self]) -> ValuesMut<'_> {
                ValuesMut::$variant(values)
            }

            fn restore(values: Values<'_>) -> Option<&[Self]> {
                match values {
                    Values::$variant(values) => Some(values),
                    _ => None,
                }
            }

            fn own(values: Vec<Self>) -> OwnedValues {
                OwnedValues::$variant(values)
            }
        }
    };
}

value!(u8, U8);
value!(u16, U16);
value!(u32, U32);
value!(u64, U64);

/// A run of values of one width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values<'a> {
    /// 8 bits each.
    U8(&'a [u8]),
    /// 16 bits each.
    U16(&'a [u16]),
    /// 32 bits each.
    U32(&'a [u32]),
    /// 64 bits each.
    U64(&'a [u64]),
}

/// Room for values of one width.
#[derive(Debug)]
pub enum ValuesMut<'a> {
    /// 8 bits each.
    U8(&'a mut [u8]),
    /// 16 bits each.
    U16(&'a mut [u16]),
    /// 32 bits each.
    U32(&'a mut [u32]),
    /// 64 bits each.
    U64(&'a mut [u64]),
}

/// Values of one width that own their memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedValues {
    /// 8 bits each.
    U8(Vec<u8>),
    /// 16 bits each.
    U16(Vec<u16>),
    /// 32 bits each.
    U32(Vec<u32>),
    /// 64 bits each.
    U64(Vec<u64>),
}

/// Runs `$body` with `$values` bound to the typed slice of whatever variant `$erased` is.
#[macro_export]
macro_rules! with_values {
    ($enum:ident, $erased:expr, $values:ident => $body:expr) => {
        match $erased {
            $crate::$enum::U8($values) => $body,
            $crate::$enum::U16($values) => $body,
            $crate::$enum::U32($values) => $body,
            $crate::$enum::U64($values) => $body,
        }
    };
}

impl Values<'_> {
    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        with_values!(Values, self, values => values.len())
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

    /// The layout of these as fixed-width values.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout::values(self.value_width())
    }

    /// The values of `range`; nothing where the range is not within them.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        match self {
            Self::U8(values) => Self::U8(values.get(range).unwrap_or_default()),
            Self::U16(values) => Self::U16(values.get(range).unwrap_or_default()),
            Self::U32(values) => Self::U32(values.get(range).unwrap_or_default()),
            Self::U64(values) => Self::U64(values.get(range).unwrap_or_default()),
        }
    }
}

impl ValuesMut<'_> {
    /// Number of values that fit.
    #[must_use]
    pub fn len(&self) -> usize {
        with_values!(ValuesMut, self, values => values.len())
    }

    /// Whether there is no room.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl OwnedValues {
    /// The values.
    #[must_use]
    pub fn as_values(&self) -> Values<'_> {
        with_values!(OwnedValues, self, values => Value::erase(values))
    }

    /// The values, to be written.
    #[must_use]
    pub fn as_values_mut(&mut self) -> ValuesMut<'_> {
        with_values!(OwnedValues, self, values => Value::erase_mut(values))
    }

    /// `count` zeros of `value_width` bits; `None` for another width than 8, 16, 32 and 64.
    #[must_use]
    pub fn zeros(value_width: u8, count: usize) -> Option<Self> {
        Some(match value_width {
            8 => Self::U8(vec![0; count]),
            16 => Self::U16(vec![0; count]),
            32 => Self::U32(vec![0; count]),
            64 => Self::U64(vec![0; count]),
            _ => return None,
        })
    }
}
