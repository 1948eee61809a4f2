//! The block: header, tile tables, tiles.

use std::ops::Range;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{
    CONSTANT_BLOCK, FORMAT_VERSION, FormatError, Kind, Layout, Order, align, checksum, checksum_of,
    is_tile_size, is_zero,
};

/// Tiles and the tables before them begin at multiples of this many bytes.
pub const TILE_ALIGNMENT: u64 = 16;

/// No block is longer than this.
pub const MAX_BLOCK_BYTES: u64 = 1 << 31;

const WHAT: &str = "block";

/// The first 64 bytes of a block, as SPEC.md section 5 lays them out.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BlockHeader {
    /// [`BlockHeader::MAGIC`].
    pub magic: [u8; 4],
    /// [`FORMAT_VERSION`].
    pub format_version: U16,
    /// Which codec wrote the tiles; 0 in a constant block.
    pub codec_id: U16,
    /// [`Kind`] as a number.
    pub kind: u8,
    /// Bits a value.
    pub value_width: u8,
    /// [`Order`] as a number.
    pub order: u8,
    /// Zero.
    pub reserved: u8,
    /// Values a tile.
    pub tile_size: U32,
    /// Values in the block.
    pub value_count: U32,
    /// Tiles in the block; 0 in a constant block.
    pub tile_count: U32,
    /// Bytes that the codec keeps for all tiles.
    pub shared_bytes: U32,
    /// Length of the block.
    pub block_bytes: U32,
    /// Smallest stored value.
    pub min: U64,
    /// Largest stored value.
    pub max: U64,
    /// The value of a constant block.
    pub constant: U64,
    /// Zero.
    pub reserved_end: U32,
    /// Over the header without this field and the tables up to the first tile.
    pub header_checksum: U32,
}

impl BlockHeader {
    /// The first four bytes of every block.
    pub const MAGIC: [u8; 4] = *b"CB2B";
    /// Length of the header in bytes.
    pub const BYTES: usize = size_of::<Self>();

    /// Where the first tile begins: the length of header and tables. Nothing is proven of it before the block's head is.
    #[must_use]
    pub fn head_bytes(&self) -> u64 {
        let tile_count = u64::from(self.tile_count.get());
        let offset_count = if self.codec_id.get() == CONSTANT_BLOCK { 0 } else { tile_count + 1 };
        let has_statistics = u64::from(self.order != Order::None as u8);
        let stat_bytes = has_statistics * tile_count * u64::from(self.value_width / 8);
        let tables =
            [self.shared_bytes.get().into(), offset_count * 4, tile_count * 4, stat_bytes, stat_bytes];
        // Counts of 32 bits: no sum overflows.
        tables
            .iter()
            .fold(Self::BYTES as u64, |sum, bytes: &u64| sum + bytes.next_multiple_of(TILE_ALIGNMENT))
    }
}

/// The checksum of a block's header and tables: everything before the first tile, which begins at byte `first_tile`.
/// `None` where the block is shorter than that.
#[must_use]
pub fn block_checksum(block: &[u8], first_tile: usize) -> Option<u32> {
    Some(checksum_of(&[block.get(..60)?, block.get(BlockHeader::BYTES..first_tile)?]))
}

/// A block whose header and tables are proven to agree with each other and with the bytes. What is *in* the tiles is for the codec to check. Of a block that is read in
/// parts only those tiles are here that were asked for.
#[derive(Debug, Clone, Copy)]
pub struct BlockView<'a> {
    /// The header as stored.
    pub header: &'a BlockHeader,
    layout: Layout,
    order: Order,
    /// The whole block, or nothing of one that is read in parts.
    bytes: &'a [u8],
    /// What is here of the tiles.
    tiles: &'a [u8],
    /// Where that begins in the block.
    tiles_start: u64,
    shared: &'a [u8],
    tile_offsets: &'a [U32],
    tile_checksums: &'a [U32],
    tile_minima: &'a [u8],
    tile_maxima: &'a [u8],
}

impl<'a> BlockView<'a> {
    /// Proves header, tables and their checksum; the tiles' own checksums are [`BlockView::verify_tile`]'s.
    ///
    /// # Errors
    /// Whatever SPEC.md section 5 forbids.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let view = Self::parse_head(bytes, bytes.len() as u64)?;
        Ok(Self { bytes, tiles: bytes, ..view })
    }

    /// Proves header, tables and their checksum of a block of `block_bytes` bytes that begins with `head`; see [`BlockHeader::head_bytes`]. Its tiles come by
    /// [`BlockView::with_tiles`].
    ///
    /// # Errors
    /// As [`BlockView::parse`].
    pub fn parse_head(head: &'a [u8], block_bytes: u64) -> Result<Self, FormatError> {
        let (header, rest) = BlockHeader::ref_from_prefix(head).map_err(|_| FormatError::Truncated {
            what: WHAT,
            needed_bytes: BlockHeader::BYTES as u64,
            found_bytes: head.len() as u64,
        })?;
        let (layout, order) = check_header(header, block_bytes)?;
        let tile_count = u64::from(header.tile_count.get());
        let stat_bytes = if order == Order::None { 0 } else { tile_count * layout.value_bytes() };

        let mut tables = Tables { rest, offset_bytes: BlockHeader::BYTES as u64 };
        let shared = tables.take(header.shared_bytes.get().into())?;
        let constant = header.codec_id.get() == CONSTANT_BLOCK;
        let offset_count = if constant { 0 } else { tile_count + 1 };
        let tile_offsets = words(tables.take(offset_count * 4)?)?;
        let tile_checksums = words(tables.take(tile_count * 4)?)?;
        let tile_minima = tables.take(stat_bytes)?;
        let tile_maxima = tables.take(stat_bytes)?;

        let first_tile = tables.offset_bytes;
        let computed = checksum_of(&[
            header.as_bytes().get(..60).unwrap_or_default(),
            head.get(BlockHeader::BYTES..usize::try_from(first_tile).unwrap_or(usize::MAX))
                .unwrap_or_default(),
        ]);
        let stored = header.header_checksum.get();
        if stored != computed {
            return Err(FormatError::Checksum { what: "block header", stored, computed });
        }
        if constant {
            if block_bytes != first_tile {
                return Err(wrong_length(first_tile, block_bytes));
            }
        } else {
            check_offsets(tile_offsets, first_tile, block_bytes)?;
        }
        Ok(Self {
            header,
            layout,
            order,
            bytes: &[],
            tiles: &[],
            tiles_start: 0,
            shared,
            tile_offsets,
            tile_checksums,
            tile_minima,
            tile_maxima,
        })
    }

    /// The same block with other bytes for its tiles: those from byte `start` of the block on. It is no longer whole.
    #[must_use]
    pub fn with_tiles(self, start: u64, tiles: &'a [u8]) -> Self {
        Self { bytes: &[], tiles, tiles_start: start, ..self }
    }

    /// Kind and width of the values.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// How the statistics compare.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// The whole block; nothing where it is read in parts.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What the codec keeps for all tiles.
    #[must_use]
    pub fn shared(&self) -> &'a [u8] {
        self.shared
    }

    /// Number of values.
    #[must_use]
    pub fn value_count(&self) -> u32 {
        self.header.value_count.get()
    }

    /// Number of tiles; 0 in a constant block.
    #[must_use]
    pub fn tile_count(&self) -> u32 {
        self.header.tile_count.get()
    }

    /// Values a tile; the last may have fewer.
    #[must_use]
    pub fn tile_size(&self) -> u32 {
        self.header.tile_size.get()
    }

    /// The value of a constant block, else `None`.
    #[must_use]
    pub fn constant(&self) -> Option<u64> {
        (self.header.codec_id.get() == CONSTANT_BLOCK).then(|| self.header.constant.get())
    }

    /// Values in tile `tile_index`; 0 past the last tile.
    #[must_use]
    pub fn tile_value_count(&self, tile_index: u32) -> u32 {
        let start = u64::from(tile_index) * u64::from(self.tile_size());
        let left = u64::from(self.value_count()).saturating_sub(start);
        u32::try_from(left).map_or(self.tile_size(), |left| left.min(self.tile_size()))
    }

    /// Where the tiles of `tiles` are in the block; `None` past the last tile and without tiles.
    #[must_use]
    pub fn tiles_extent(&self, tiles: Range<u32>) -> Option<Range<u64>> {
        let offset = |index: u32| Some(u64::from(self.tile_offsets.get(usize::try_from(index).ok()?)?.get()));
        Some(offset(tiles.start)?..offset(tiles.end)?)
    }

    /// The bytes of tile `tile_index`, up to 15 bytes of padding included; `None` past the last tile and where its bytes are not here.
    #[must_use]
    pub fn tile(&self, tile_index: u32) -> Option<&'a [u8]> {
        let extent = self.tiles_extent(tile_index..tile_index.checked_add(1)?)?;
        let place = |offset: u64| usize::try_from(offset.checked_sub(self.tiles_start)?).ok();
        self.tiles.get(place(extent.start)?..place(extent.end)?)
    }

    /// Smallest and largest stored value of tile `tile_index`, zero-extended; `None` without statistics.
    #[must_use]
    pub fn tile_range(&self, tile_index: u32) -> Option<(u64, u64)> {
        let width = usize::from(self.layout.value_width / 8);
        let start = usize::try_from(tile_index).ok()?.checked_mul(width)?;
        let read = |table: &[u8]| {
            let stored = table.get(start..start.checked_add(width)?)?;
            let mut value = [0; 8];
            value.get_mut(..width)?.copy_from_slice(stored);
            Some(u64::from_le_bytes(value))
        };
        Some((read(self.tile_minima)?, read(self.tile_maxima)?))
    }

    /// Compares the checksum of tile `tile_index` with its bytes.
    ///
    /// # Errors
    /// A checksum that differs, or no such tile.
    pub fn verify_tile(&self, tile_index: u32) -> Result<(), FormatError> {
        let index = usize::try_from(tile_index).unwrap_or(usize::MAX);
        let (Some(tile), Some(stored)) = (self.tile(tile_index), self.tile_checksums.get(index)) else {
            return Err(FormatError::Field { what: WHAT, field: "tile_index", found: tile_index.into() });
        };
        let (stored, computed) = (stored.get(), checksum(tile));
        if stored == computed {
            Ok(())
        } else {
            Err(FormatError::TileChecksum { tile_index, stored, computed })
        }
    }
}

/// The tables between a block's header and its first tile, taken one after the other.
struct Tables<'a> {
    rest: &'a [u8],
    offset_bytes: u64,
}

impl<'a> Tables<'a> {
    /// The next `table_bytes` bytes; the padding behind them is passed over and must be zero.
    fn take(&mut self, table_bytes: u64) -> Result<&'a [u8], FormatError> {
        let truncated = FormatError::Truncated {
            what: "block's tile tables",
            needed_bytes: self.offset_bytes.saturating_add(table_bytes),
            found_bytes: self.offset_bytes + self.rest.len() as u64,
        };
        let padded_bytes = align(table_bytes, TILE_ALIGNMENT).ok_or(truncated.clone())?;
        let (Ok(table_len), Ok(padded_len)) = (usize::try_from(table_bytes), usize::try_from(padded_bytes))
        else {
            return Err(truncated);
        };
        let (padded, rest) = self.rest.split_at_checked(padded_len).ok_or(truncated.clone())?;
        let (table, padding) = padded.split_at_checked(table_len).ok_or(truncated)?;
        if !is_zero(padding) {
            return Err(FormatError::NotZero { what: "block's tile tables" });
        }
        self.rest = rest;
        self.offset_bytes += padded_bytes;
        Ok(table)
    }
}

fn words(bytes: &[u8]) -> Result<&[U32], FormatError> {
    <[U32]>::ref_from_bytes(bytes).map_err(|_| wrong_length(0, bytes.len() as u64))
}

fn wrong_length(needed_bytes: u64, found_bytes: u64) -> FormatError {
    FormatError::WrongLength { what: WHAT, needed_bytes, found_bytes }
}

fn check_header(header: &BlockHeader, found_bytes: u64) -> Result<(Layout, Order), FormatError> {
    let field = |field, found: u64| FormatError::Field { what: WHAT, field, found };
    if header.magic != BlockHeader::MAGIC {
        return Err(FormatError::Magic { what: WHAT });
    }
    let found = header.format_version.get();
    if found != FORMAT_VERSION {
        return Err(FormatError::Version { what: WHAT, found, known: FORMAT_VERSION });
    }
    if header.reserved != 0 || header.reserved_end.get() != 0 {
        return Err(FormatError::NotZero { what: WHAT });
    }
    let layout = Layout::parse(WHAT, header.kind, header.value_width)?;
    let order = Order::parse(WHAT, header.order, layout)?;
    let (value_count, tile_size) = (header.value_count.get(), header.tile_size.get());
    if !is_tile_size(layout.kind, tile_size) {
        return Err(field("tile_size", tile_size.into()));
    }
    if value_count == 0 {
        return Err(field("value_count", 0));
    }
    let constant = header.codec_id.get() == CONSTANT_BLOCK;
    let expected = if constant { 0 } else { value_count.div_ceil(tile_size) };
    let found = header.tile_count.get();
    if found != expected {
        let (found, expected) = (found.into(), expected.into());
        return Err(FormatError::Mismatch { what: WHAT, field: "tile_count", found, expected });
    }
    if constant && header.shared_bytes.get() != 0 {
        return Err(field("shared_bytes", header.shared_bytes.get().into()));
    }
    if !constant && header.constant.get() != 0 {
        return Err(field("constant", header.constant.get()));
    }
    let outside = |value: u64| layout.value_width < 64 && value >> layout.value_width != 0;
    for (name, value) in
        [("min", header.min.get()), ("max", header.max.get()), ("constant", header.constant.get())]
    {
        let unordered = order == Order::None && value != 0 && name != "constant";
        if outside(value) || unordered {
            return Err(field(name, value));
        }
    }
    if u64::from(header.block_bytes.get()) != found_bytes || found_bytes > MAX_BLOCK_BYTES {
        return Err(wrong_length(header.block_bytes.get().into(), found_bytes));
    }
    Ok((layout, order))
}

/// Tile offsets start at `first_tile`, ascend strictly in steps of 16 and end with the block.
fn check_offsets(tile_offsets: &[U32], first_tile: u64, block_bytes: u64) -> Result<(), FormatError> {
    let mut least = first_tile;
    for (tile_index, offset) in (0_u32..).zip(tile_offsets) {
        let offset = offset.get();
        let wide = u64::from(offset);
        let misplaced = if tile_index == 0 { wide != first_tile } else { wide < least };
        if misplaced || wide > block_bytes || !wide.is_multiple_of(TILE_ALIGNMENT) {
            return Err(FormatError::TileOffset { tile_index, offset });
        }
        least = wide + TILE_ALIGNMENT;
    }
    match tile_offsets.last() {
        Some(last) if u64::from(last.get()) == block_bytes => Ok(()),
        _ => Err(wrong_length(tile_offsets.last().map_or(0, |last| last.get().into()), block_bytes)),
    }
}

impl Kind {
    /// The tile size that writers use unless told otherwise: 1024 values, 16384 bytes.
    #[must_use]
    pub const fn default_tile_size(self) -> u32 {
        match self {
            Self::Values => 1024,
            Self::Bytes => 16384,
        }
    }
}
