//! What can go wrong with tiles, blocks and buffers.

use format_spec::{FormatError, Layout};

/// Why a codec refuses a tile. Counts are of values, lengths in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TileError {
    /// The tile ends before its encoding does.
    #[error("tile needs {needed_bytes} bytes but has {found_bytes}")]
    Truncated {
        /// Bytes that the metadata demands.
        needed_bytes: u64,
        /// Bytes that are there.
        found_bytes: u64,
    },
    /// A bit width is wider than the values.
    #[error("bit width {bit_width} is wider than the values' {value_width}")]
    BitWidth {
        /// The width stored.
        bit_width: u32,
        /// Bits a value.
        value_width: u32,
    },
    /// Run lengths do not add up to the tile, or there are more runs than values.
    #[error("{run_count} runs cover {covered} values of a tile of {value_count}")]
    Runs {
        /// Runs stored.
        run_count: u64,
        /// Values that they cover.
        covered: u64,
        /// Values of the tile.
        value_count: u64,
    },
    /// A metadata field has a value that the codec does not allow.
    #[error("metadata: {field} is {found}")]
    Field {
        /// The field's name in the codec's SPEC.md.
        field: &'static str,
        /// The value stored.
        found: u64,
    },
    /// What the block keeps for all tiles is not what the codec expects.
    #[error("the block's shared bytes: {reason}")]
    Shared {
        /// What is wrong.
        reason: &'static str,
    },
    /// The codec does not know such values.
    #[error("codec {codec} has no tiles of kind {:?} and {} bits", layout.kind, layout.value_width)]
    Layout {
        /// The codec's name.
        codec: &'static str,
        /// Kind and width asked for.
        layout: Layout,
    },
    /// The caller's buffer has another length than the tile.
    #[error("a tile of {value_count} values was to be decoded into room for {room}")]
    Room {
        /// Values of the tile.
        value_count: u64,
        /// Values that the caller's buffer holds.
        room: u64,
    },
}

/// Why a block cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The container part of the block is wrong.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// No codec of the registry has this id.
    #[error(
        "unknown codec id {codec_id}: written by a newer program, or by a private codec that this one lacks"
    )]
    UnknownCodec {
        /// The id stored.
        codec_id: u16,
    },
    /// The codec refuses what is kept for all tiles.
    #[error("codec {codec}: {source}")]
    Shared {
        /// The codec's name.
        codec: &'static str,
        /// Why.
        source: TileError,
    },
    /// The codec refuses a tile.
    #[error("tile {tile_index}, codec {codec}: {source}")]
    Tile {
        /// Index of the tile in its block.
        tile_index: u32,
        /// The codec's name.
        codec: &'static str,
        /// Why.
        source: TileError,
    },
    /// The block holds other values than its user expects.
    #[error("the block's {field} is {found}, expected {expected}")]
    Unexpected {
        /// What differs.
        field: &'static str,
        /// As the block has it.
        found: u64,
        /// As its user has it.
        expected: u64,
    },
    /// A range or an index beyond the values.
    #[error("value {index} of a block of {value_count}")]
    OutOfRange {
        /// The first value that does not exist.
        index: u64,
        /// Values that do.
        value_count: u64,
    },
}

/// Why values cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A block would be empty or longer than the format allows.
    #[error(
        "a block of {value_count} values and {block_bytes} bytes is not possible: choose another block size"
    )]
    BlockSize {
        /// Values of the block.
        value_count: u64,
        /// Bytes that it would take.
        block_bytes: u64,
    },
    /// No tile of this size exists.
    #[error("tile size {tile_size} does not exist: use 512 or 1024 values, for bytes 4096 to 65536")]
    TileSize {
        /// The size asked for.
        tile_size: u32,
    },
    /// No codec of the registry can encode such values.
    #[error("no codec encodes kind {:?} of {} bits", layout.kind, layout.value_width)]
    NoCodec {
        /// Kind and width of the values.
        layout: Layout,
    },
    /// The statistics cannot compare such values.
    #[error("values of {} bits have no such order", layout.value_width)]
    Order {
        /// Kind and width of the values.
        layout: Layout,
    },
}

/// Why values of a buffer cannot be decoded: the block, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum BufferError<E: std::error::Error + 'static> {
    /// A block's bytes could not be read.
    #[error("block {block_index}: {source}")]
    Read {
        /// Index of the block in its buffer.
        block_index: u32,
        /// What the source of the blocks says.
        source: E,
    },
    /// A block's bytes are wrong.
    #[error("block {block_index}: {source}")]
    Block {
        /// Index of the block in its buffer.
        block_index: u32,
        /// What is wrong.
        source: BlockError,
    },
    /// A range or an index beyond the values.
    #[error("value {index} of {value_count}")]
    OutOfRange {
        /// The first value that does not exist.
        index: u64,
        /// Values that do.
        value_count: u64,
    },
    /// The values are asked for in another type than they have.
    #[error("values of {} bits asked for as {asked_width} bits", layout.value_width)]
    Layout {
        /// Kind and width of the buffer.
        layout: Layout,
        /// Bits of the type asked for.
        asked_width: u8,
    },
}
