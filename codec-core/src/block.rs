//! One block: encoded from values, proven from bytes, decoded tile by tile.

use std::ops::Range;

use format_spec::{
    BlockHeader, BlockView, CONSTANT_BLOCK, FORMAT_VERSION, Kind, Layout, MAX_BLOCK_BYTES, Order,
    TILE_ALIGNMENT, block_checksum, checksum, is_tile_size,
};
use zerocopy::IntoBytes;

use crate::choose::{Chosen, chosen};
use crate::statistics::{range, union};
use crate::{
    AnyCodec, BlockError, Choice, EncodeError, OwnedValues, Registry, Tile, Trial, Value, Values, with_values,
};

/// A block as it goes into a file, and how it came about.
#[derive(Debug, Clone)]
pub struct EncodedBlock {
    /// The block.
    pub bytes: Vec<u8>,
    /// Values in it.
    pub value_count: u32,
    /// Name of its codec, "constant" for a constant block.
    pub codec: &'static str,
    /// What was tried; empty for a constant block and where the codec was given.
    pub trials: Vec<Trial>,
}

/// Encodes `values` as one block of tiles of `tile_size`. Equal values give a constant block whatever the choice.
///
/// # Errors
/// No values or too many for a block, a tile size that does not exist, no codec for the layout, or an order that the values do not have.
pub fn encode_block(
    values: Values<'_>,
    kind: Kind,
    order: Order,
    tile_size: u32,
    registry: &Registry,
    choice: Choice,
) -> Result<EncodedBlock, EncodeError> {
    let layout = Layout { kind, value_width: values.value_width() };
    if Layout::parse("block", kind as u8, layout.value_width).is_err()
        || Order::parse("block", order as u8, layout).is_err()
    {
        return Err(EncodeError::Order { layout });
    }
    let tile_len = usize::try_from(tile_size).ok().filter(|_| is_tile_size(kind, tile_size));
    let tile_len = tile_len.ok_or(EncodeError::TileSize { tile_size })?;
    let too_large = |block_bytes| EncodeError::BlockSize { value_count: values.len() as u64, block_bytes };
    let value_count = u32::try_from(values.len()).ok().filter(|&count| count > 0).ok_or(too_large(0))?;

    let statistics = Statistics::of(values, order, tile_len);
    let mut header = BlockHeader {
        magic: BlockHeader::MAGIC,
        format_version: FORMAT_VERSION.into(),
        codec_id: CONSTANT_BLOCK.into(),
        kind: kind as u8,
        value_width: layout.value_width,
        order: order as u8,
        reserved: 0,
        tile_size: tile_size.into(),
        value_count: value_count.into(),
        tile_count: 0.into(),
        shared_bytes: 0.into(),
        block_bytes: 0.into(),
        min: statistics.min.into(),
        max: statistics.max.into(),
        constant: 0.into(),
        reserved_end: 0.into(),
        header_checksum: 0.into(),
    };
    if let Some(constant) = constant(values) {
        header.constant = constant.into();
        let bytes = seal(header, vec![0; BlockHeader::BYTES], BlockHeader::BYTES).ok_or(too_large(0))?;
        return Ok(EncodedBlock { bytes, value_count, codec: "constant", trials: Vec::new() });
    }

    let Chosen { codec, shared, trials } =
        chosen(registry, choice, layout, order, values, tile_len).ok_or(EncodeError::NoCodec { layout })?;
    let tile_count = values.len().div_ceil(tile_len);
    header.codec_id = codec.id().into();
    header.tile_count = u32::try_from(tile_count).map_err(|_| too_large(0))?.into();
    header.shared_bytes = u32::try_from(shared.len()).map_err(|_| too_large(shared.len() as u64))?.into();

    let first_tile = usize::try_from(header.head_bytes()).map_err(|_| too_large(header.head_bytes()))?;
    let tiles = Tiles::encode(codec, &shared, layout, values, tile_len, first_tile);
    let Tiles { mut bytes, offsets, checksums } = tiles;
    let block_bytes = bytes.len() as u64;
    if block_bytes > MAX_BLOCK_BYTES {
        return Err(too_large(block_bytes));
    }
    // Within the limit, all offsets fit.
    let offsets: Vec<u32> =
        offsets.into_iter().map(|offset| u32::try_from(offset).unwrap_or(u32::MAX)).collect();
    let mut place = BlockHeader::BYTES;
    let tables = [&shared, offsets.as_bytes(), checksums.as_bytes(), &statistics.minima, &statistics.maxima];
    for table in tables {
        bytes.get_mut(place..place + table.len()).ok_or(too_large(block_bytes))?.copy_from_slice(table);
        place += padded(table.len());
    }
    let bytes = seal(header, bytes, first_tile).ok_or(too_large(block_bytes))?;
    Ok(EncodedBlock { bytes, value_count, codec: codec.name(), trials })
}

/// The block `bytes`, of which only the header is missing.
fn seal(mut header: BlockHeader, mut bytes: Vec<u8>, first_tile: usize) -> Option<Vec<u8>> {
    header.block_bytes = u32::try_from(bytes.len()).ok()?.into();
    bytes.get_mut(..BlockHeader::BYTES)?.copy_from_slice(header.as_bytes());
    let checksum = block_checksum(&bytes, first_tile)?;
    bytes.get_mut(60..64)?.copy_from_slice(&checksum.to_le_bytes());
    Some(bytes)
}

fn padded(bytes: usize) -> usize {
    const ALIGNMENT: usize = 16;
    const { assert!(ALIGNMENT as u64 == TILE_ALIGNMENT) };
    bytes.next_multiple_of(ALIGNMENT)
}

/// The value that all of `values` have, zero-extended.
fn constant(values: Values<'_>) -> Option<u64> {
    with_values!(Values, values, values => {
        let first = *values.first()?;
        values.iter().all(|&value| value == first).then(|| first.to_u64())
    })
}

/// A block without its header and tables.
struct Tiles {
    /// Room for header and tables, then the tiles, each padded, one after the other.
    bytes: Vec<u8>,
    /// Where each tile begins, and where the last ends.
    offsets: Vec<usize>,
    checksums: Vec<u32>,
}

impl Tiles {
    fn encode(
        codec: &dyn AnyCodec,
        shared: &[u8],
        layout: Layout,
        values: Values<'_>,
        tile_len: usize,
        first_tile: usize,
    ) -> Self {
        let mut tiles = Self { bytes: vec![0; first_tile], offsets: vec![first_tile], checksums: Vec::new() };
        let mut encode = codec.encoder(shared, layout);
        let mut tile = Vec::new();
        for start in (0..values.len()).step_by(tile_len) {
            tile.clear();
            encode(values.slice(start..values.len().min(start + tile_len)), &mut tile);
            // An empty encoding would not ascend in the table of offsets.
            tile.resize(padded(tile.len().max(1)), 0);
            tiles.checksums.push(checksum(&tile));
            tiles.bytes.extend_from_slice(&tile);
            tiles.offsets.push(tiles.bytes.len());
        }
        tiles
    }
}

/// Minima and maxima of the tiles as stored, and of all.
struct Statistics {
    min: u64,
    max: u64,
    minima: Vec<u8>,
    maxima: Vec<u8>,
}

impl Statistics {
    fn of(values: Values<'_>, order: Order, tile_len: usize) -> Self {
        with_values!(Values, values, values => Self::of_tiles(values, order, tile_len))
    }

    fn of_tiles<V: Value>(values: &[V], order: Order, tile_len: usize) -> Self {
        if order == Order::None {
            return Self { min: 0, max: 0, minima: Vec::new(), maxima: Vec::new() };
        }
        let ranges: Vec<(V, V)> = values.chunks(tile_len).map(|tile| range(tile, order)).collect();
        let whole =
            ranges.iter().copied().reduce(|left, right| union(left, right, order)).unwrap_or_default();
        let table = |side: fn(&(V, V)) -> V| ranges.iter().map(side).collect::<Vec<V>>().as_bytes().to_vec();
        Self {
            min: whole.0.to_u64(),
            max: whole.1.to_u64(),
            minima: table(|range| range.0),
            maxima: table(|range| range.1),
        }
    }
}

/// A block whose header and tables are proven and whose codec is known. Each tile is proven when it is decoded: checksum first, then by its codec.
#[derive(Clone, Copy)]
pub struct Block<'a> {
    view: BlockView<'a>,
    /// None in a constant block.
    codec: Option<&'static dyn AnyCodec>,
}

impl std::fmt::Debug for Block<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Block")
            .field("codec", &self.codec_name())
            .field("header", self.view.header)
            .finish()
    }
}

impl<'a> Block<'a> {
    /// Proves header and tables of the block that `bytes` are.
    ///
    /// # Errors
    /// Whatever SPEC.md section 5 forbids, a codec that `registry` lacks or that does not support the layout, or shared bytes that the codec refuses.
    pub fn parse(bytes: &'a [u8], registry: &Registry) -> Result<Self, BlockError> {
        Self::of_view(BlockView::parse(bytes)?, registry)
    }

    /// Proves header and tables of a block of `block_bytes` bytes that begins with `head`. Its tiles come by [`Block::with_tiles`].
    ///
    /// # Errors
    /// As [`Block::parse`].
    pub fn parse_head(head: &'a [u8], block_bytes: u64, registry: &Registry) -> Result<Self, BlockError> {
        Self::of_view(BlockView::parse_head(head, block_bytes)?, registry)
    }

    fn of_view(view: BlockView<'a>, registry: &Registry) -> Result<Self, BlockError> {
        let codec_id = view.header.codec_id.get();
        if codec_id == CONSTANT_BLOCK {
            return Ok(Self { view, codec: None });
        }
        let codec = registry.by_id(codec_id).ok_or(BlockError::UnknownCodec { codec_id })?;
        let layout = view.layout();
        let refused = |source| BlockError::Shared { codec: codec.name(), source };
        if !codec.supports(layout) {
            return Err(refused(crate::TileError::Layout { codec: codec.name(), layout }));
        }
        codec.check_shared(view.shared(), layout).map_err(refused)?;
        Ok(Self { view, codec: Some(codec) })
    }

    /// The same block with other bytes for its tiles: those from byte `start` of the block on.
    #[must_use]
    pub fn with_tiles(self, start: u64, tiles: &'a [u8]) -> Self {
        Self { view: self.view.with_tiles(start, tiles), ..self }
    }

    /// Where the tiles of the values `wanted` are in the block; nothing of a constant block.
    ///
    /// # Errors
    /// A range beyond the values.
    pub fn tiles_extent(&self, wanted: Range<usize>) -> Result<Range<u64>, BlockError> {
        if wanted.is_empty() || self.view.constant().is_some() {
            return Ok(0..0);
        }
        let tiles = wanted.start / self.tile_size()..wanted.end.div_ceil(self.tile_size());
        let extent = self.view.tiles_extent(tile_number(tiles.start)..tile_number(tiles.end));
        let (index, value_count) = (wanted.end as u64 - 1, self.value_count() as u64);
        extent.ok_or(BlockError::OutOfRange { index, value_count })
    }

    /// Header and tables.
    #[must_use]
    pub fn view(&self) -> &BlockView<'a> {
        &self.view
    }

    /// The codec's name, "constant" for a constant block.
    #[must_use]
    pub fn codec_name(&self) -> &'static str {
        self.codec.map_or("constant", AnyCodec::name)
    }

    /// Kind and width of the values.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.view.layout()
    }

    /// Number of values.
    #[must_use]
    pub fn value_count(&self) -> usize {
        self.view.value_count() as usize
    }

    /// Values a tile.
    #[must_use]
    pub fn tile_size(&self) -> usize {
        self.view.tile_size() as usize
    }

    /// Decodes one tile into `values`, which has room for exactly its values.
    ///
    /// # Errors
    /// A checksum that differs, a tile that its codec refuses, or a type or room that does not fit.
    pub fn decode_tile<V: Value>(&self, tile_index: u32, values: &mut [V]) -> Result<(), BlockError> {
        if let Some(constant) = self.view.constant() {
            values.fill(V::from_u64(constant));
            return Ok(());
        }
        self.view.verify_tile(tile_index)?;
        self.decode_verified_tile(tile_index, values)
    }

    /// Decodes the values of `wanted`, which has as many values as `values`. Whole tiles go straight to their place.
    ///
    /// # Errors
    /// As [`Block::decode_tile`], or a range beyond the values.
    pub fn decode_range<V: Value>(&self, wanted: Range<usize>, values: &mut [V]) -> Result<(), BlockError> {
        self.check_request::<V>(wanted.end, wanted.len(), values.len())?;
        let tile_len = self.tile_size();
        let mut scratch = Vec::new();
        let mut rest = values;
        let mut position = wanted.start;
        while position < wanted.end {
            let tile_index = position / tile_len;
            let tile_start = tile_index * tile_len;
            let tile_end = self.value_count().min(tile_start + tile_len);
            let end = tile_end.min(wanted.end);
            let (target, behind) = std::mem::take(&mut rest).split_at_mut(end - position);
            if target.len() == tile_end - tile_start {
                self.decode_tile(tile_number(tile_index), target)?;
            } else {
                scratch.resize(tile_end - tile_start, V::default());
                self.decode_tile(tile_number(tile_index), &mut scratch)?;
                let part = position - tile_start..end - tile_start;
                target.copy_from_slice(scratch.get(part).unwrap_or_default());
            }
            rest = behind;
            position = end;
        }
        Ok(())
    }

    /// Decodes single values: `values[i]` becomes the block's value `indexes[i]`. A tile is decoded once for neighbouring indexes of the same tile.
    ///
    /// # Errors
    /// As [`Block::decode_tile`], or an index beyond the values.
    pub fn take<V: Value>(&self, indexes: &[usize], values: &mut [V]) -> Result<(), BlockError> {
        let end = indexes.iter().max().map_or(0, |max| max.saturating_add(1));
        self.check_request::<V>(end, indexes.len(), values.len())?;
        let tile_len = self.tile_size();
        let mut decoded: Vec<V> = Vec::new();
        let mut decoded_index = None;
        for (&index, value) in indexes.iter().zip(values) {
            let tile_index = index / tile_len;
            if decoded_index != Some(tile_index) {
                decoded.resize((self.value_count() - tile_index * tile_len).min(tile_len), V::default());
                self.decode_tile(tile_number(tile_index), &mut decoded)?;
                decoded_index = Some(tile_index);
            }
            *value = decoded.get(index % tile_len).copied().unwrap_or_default();
        }
        Ok(())
    }

    /// Proves every tile: its checksum and its codec's check.
    ///
    /// # Errors
    /// The first tile that is wrong, or a block that was parsed without its tiles.
    pub fn check(self) -> Result<CheckedBlock<'a>, BlockError> {
        let (found, expected) = (self.view.bytes().len() as u64, self.view.header.block_bytes.get().into());
        if found != expected {
            return Err(BlockError::Unexpected { field: "bytes", found, expected });
        }
        for tile_index in 0..self.view.tile_count() {
            self.view.verify_tile(tile_index)?;
            self.check_tile(tile_index)?;
        }
        Ok(CheckedBlock { block: self })
    }

    fn check_request<V: Value>(&self, end: usize, wanted: usize, room: usize) -> Result<(), BlockError> {
        let (found, expected) = (self.layout().value_width.into(), V::WIDTH.into());
        if found != expected {
            return Err(BlockError::Unexpected { field: "value_width", found, expected });
        }
        if wanted != room {
            return Err(BlockError::Unexpected {
                field: "room",
                found: wanted as u64,
                expected: room as u64,
            });
        }
        if end > self.value_count() {
            let (index, value_count) = (end as u64 - 1, self.value_count() as u64);
            return Err(BlockError::OutOfRange { index, value_count });
        }
        Ok(())
    }

    fn tile(&self, tile_index: u32) -> Tile<'a> {
        Tile {
            bytes: self.view.tile(tile_index).unwrap_or_default(),
            shared: self.view.shared(),
            value_count: self.view.tile_value_count(tile_index) as usize,
        }
    }

    fn check_tile(&self, tile_index: u32) -> Result<(), BlockError> {
        let Some(codec) = self.codec else { return Ok(()) };
        codec.check_tile(self.tile(tile_index), self.layout()).map_err(|source| BlockError::Tile {
            tile_index,
            codec: codec.name(),
            source,
        })
    }

    fn decode_verified_tile<V: Value>(&self, tile_index: u32, values: &mut [V]) -> Result<(), BlockError> {
        let Some(codec) = self.codec else { return Ok(()) };
        codec
            .decompress_tile(self.tile(tile_index), V::erase_mut(values))
            .map_err(|source| BlockError::Tile { tile_index, codec: codec.name(), source })
    }
}

fn tile_number(tile_index: usize) -> u32 {
    // A block has fewer than 2^32 values, hence tiles; past that no tile has the number.
    u32::try_from(tile_index).unwrap_or(u32::MAX)
}

/// A block of which every tile is proven: the only kind that a device may be given. Host decoding from it skips the checksums.
#[derive(Debug, Clone, Copy)]
pub struct CheckedBlock<'a> {
    block: Block<'a>,
}

impl<'a> CheckedBlock<'a> {
    /// Proves the block that `bytes` are, and all its tiles.
    ///
    /// # Errors
    /// As [`Block::parse`] and [`Block::check`].
    pub fn parse(bytes: &'a [u8], registry: &Registry) -> Result<Self, BlockError> {
        Block::parse(bytes, registry)?.check()
    }

    /// The block.
    #[must_use]
    pub fn block(&self) -> &Block<'a> {
        &self.block
    }

    /// The proven bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.block.view.bytes()
    }

    /// All values.
    ///
    /// # Errors
    /// Only where a codec refuses what it has accepted before.
    pub fn decode(&self) -> Result<OwnedValues, BlockError> {
        let (width, count) = (self.block.layout().value_width, self.block.value_count());
        let unexpected = BlockError::Unexpected { field: "value_width", found: width.into(), expected: 64 };
        let mut values = OwnedValues::zeros(width, count).ok_or(unexpected)?;
        with_values!(OwnedValues, &mut values, values => self.block.decode_range(0..count, values))?;
        Ok(values)
    }
}
