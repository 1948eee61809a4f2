//! The small enumerations of the format.

use crate::FormatError;

/// The codec id of a block that has one value and no tiles.
pub const CONSTANT_BLOCK: u16 = 0;

/// Codec ids from here on are never assigned: they are free for private codecs and tests.
pub const FIRST_PRIVATE_CODEC: u16 = 0xF000;

/// What the tiles of a buffer hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Fixed-width values.
    Values = 0,
    /// Segments of the bytes of a string or binary column.
    Bytes = 1,
}

/// Kind and width of a buffer's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout {
    /// Fixed-width values or bytes.
    pub kind: Kind,
    /// Bits a value: 8, 16, 32 or 64; bytes: 8.
    pub value_width: u8,
}

impl Layout {
    /// A run of bytes.
    pub const BYTES: Self = Self { kind: Kind::Bytes, value_width: 8 };

    /// Fixed-width values of `value_width` bits.
    #[must_use]
    pub const fn values(value_width: u8) -> Self {
        Self { kind: Kind::Values, value_width }
    }

    /// The layout that the two stored fields name.
    ///
    /// # Errors
    /// An unknown kind, or a width that the kind does not have.
    pub fn parse(what: &'static str, kind: u8, value_width: u8) -> Result<Self, FormatError> {
        match (kind, value_width) {
            (0, 8 | 16 | 32 | 64) => Ok(Self::values(value_width)),
            (1, 8) => Ok(Self::BYTES),
            (0 | 1, _) => Err(FormatError::Field { what, field: "value_width", found: value_width.into() }),
            _ => Err(FormatError::Field { what, field: "kind", found: kind.into() }),
        }
    }

    /// Bytes a value.
    #[must_use]
    pub const fn value_bytes(self) -> u64 {
        self.value_width as u64 / 8
    }
}

/// How the statistics of a buffer's stored values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Order {
    /// There are no statistics.
    None = 0,
    /// As unsigned integers.
    Unsigned = 1,
    /// As two's complement integers.
    Signed = 2,
    /// As IEEE 754 floats in totalOrder; NaNs are left out.
    Float = 3,
}

impl Order {
    /// The order that the stored field names, for values of `layout`.
    ///
    /// # Errors
    /// An unknown order, or one that the layout cannot have (bytes have none, there are no 8-bit floats).
    pub fn parse(what: &'static str, order: u8, layout: Layout) -> Result<Self, FormatError> {
        match (order, layout.kind, layout.value_width) {
            (0, ..) => Ok(Self::None),
            (1, Kind::Values, _) => Ok(Self::Unsigned),
            (2, Kind::Values, _) => Ok(Self::Signed),
            (3, Kind::Values, 16 | 32 | 64) => Ok(Self::Float),
            _ => Err(FormatError::Field { what, field: "order", found: order.into() }),
        }
    }
}

/// What a buffer is to its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// 1 where the slot is valid, 0 where it is null.
    Validity = 0,
    /// Where each slot's bytes or child slots end.
    Ends = 1,
    /// Fixed-width values, or one limb of them.
    Values = 2,
    /// The bytes of strings or binary values.
    Bytes = 3,
    /// Indexes into the node's dictionary.
    Codes = 4,
    /// Which child of a union holds the slot.
    TypeIds = 5,
    /// The place of each dictionary entry in ascending order.
    Rank = 6,
}

impl Role {
    /// The role that the stored field names.
    ///
    /// # Errors
    /// An unknown role.
    pub fn parse(role: u8) -> Result<Self, FormatError> {
        Ok(match role {
            0 => Self::Validity,
            1 => Self::Ends,
            2 => Self::Values,
            3 => Self::Bytes,
            4 => Self::Codes,
            5 => Self::TypeIds,
            6 => Self::Rank,
            _ => return Err(FormatError::Field { what: "buffer", field: "role", found: role.into() }),
        })
    }
}

/// How a node's values are stored in one row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Encoding {
    /// The values themselves.
    Direct = 0,
    /// Codes of the node's dictionary.
    Dictionary = 1,
}

impl Encoding {
    /// The encoding that the stored field names.
    ///
    /// # Errors
    /// An unknown encoding.
    pub fn parse(encoding: u8) -> Result<Self, FormatError> {
        match encoding {
            0 => Ok(Self::Direct),
            1 => Ok(Self::Dictionary),
            _ => Err(FormatError::Field { what: "node chunk", field: "encoding", found: encoding.into() }),
        }
    }
}

/// Whether tiles of this many values exist for `kind`.
#[must_use]
pub const fn is_tile_size(kind: Kind, tile_size: u32) -> bool {
    match kind {
        Kind::Values => matches!(tile_size, 512 | 1024),
        Kind::Bytes => matches!(tile_size, 4096 | 8192 | 16384 | 32768 | 65536),
    }
}
