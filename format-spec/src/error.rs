//! What can be wrong with a file's bytes.

/// Why bytes are not what SPEC.md describes. Offsets and lengths are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A structure does not fit into the bytes that are there.
    #[error("{what} needs {needed_bytes} bytes but has {found_bytes}")]
    Truncated {
        /// The structure.
        what: &'static str,
        /// Bytes that it needs.
        needed_bytes: u64,
        /// Bytes that are there.
        found_bytes: u64,
    },
    /// A structure is longer or shorter than its parts.
    #[error("{what} has {found_bytes} bytes but its parts add up to {needed_bytes}")]
    WrongLength {
        /// The structure.
        what: &'static str,
        /// The sum of the parts.
        needed_bytes: u64,
        /// Its length as stored.
        found_bytes: u64,
    },
    /// The bytes do not begin or end with the structure's magic.
    #[error("{what} has a wrong magic: this is not a cb2t file, or it is damaged")]
    Magic {
        /// The structure.
        what: &'static str,
    },
    /// The file was written by another version of the format.
    #[error("{what} has format version {found}, this reader knows version {known}")]
    Version {
        /// The structure.
        what: &'static str,
        /// The version stored.
        found: u16,
        /// The version that this crate reads.
        known: u16,
    },
    /// Stored and computed checksum differ.
    #[error("{what} has checksum {computed:08x} but {stored:08x} is stored: the bytes are damaged")]
    Checksum {
        /// The structure.
        what: &'static str,
        /// The checksum in the file.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// A block is not the one that its entry in the column section names.
    #[error(
        "block: its header_checksum is {found:08x}, but its entry names {expected:08x}: this block does not belong here, or its header is damaged"
    )]
    ForeignBlock {
        /// The checksum at the end of the block's header.
        found: u32,
        /// The checksum in the block's entry.
        expected: u32,
    },
    /// Reserved bytes or padding are not zero.
    #[error("{what} has reserved or padding bytes that are not zero")]
    NotZero {
        /// The structure.
        what: &'static str,
    },
    /// A field has a value that the format does not allow there.
    #[error("{what}: {field} is {found}")]
    Field {
        /// The structure.
        what: &'static str,
        /// The field's name in SPEC.md.
        field: &'static str,
        /// The value stored.
        found: u64,
    },
    /// Two fields contradict each other.
    #[error("{what}: {field} is {found}, expected {expected}")]
    Mismatch {
        /// The structure.
        what: &'static str,
        /// The field's name in SPEC.md.
        field: &'static str,
        /// The value stored.
        found: u64,
        /// The value that the other fields demand.
        expected: u64,
    },
    /// The tile table of a block points out of order or outside the block.
    #[error("tile {tile_index}: its offset {offset} is not aligned, not ascending or outside the block")]
    TileOffset {
        /// Index of the tile in its block.
        tile_index: u32,
        /// The offset stored.
        offset: u32,
    },
    /// The checksum of one tile differs.
    #[error("tile {tile_index}: checksum {computed:08x} but {stored:08x} is stored: the bytes are damaged")]
    TileChecksum {
        /// Index of the tile in its block.
        tile_index: u32,
        /// The checksum in the block.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
}
