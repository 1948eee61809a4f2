//! A column for queries: blocks of several row groups, in which every tile decodes as a whole one, so that kernels need no code for ends.
//!
//! A block's partial last tile is decoded here, padded with copies of its last value, and encoded again by the block's own codec; its entry keeps the true number of values.
//! A block whose codec has no device half, or whose values are narrower than the column's, is decoded here and encoded again as a whole.

use std::borrow::Cow;

use codec_core::{
    AnyCodec, CheckedBlock, Choice, DeviceParameters, Kind, Layout, OwnedValues, Registry, Tile, Value,
    Values, choose, encode_block, with_values,
};
use format_spec::Order;

use crate::GpuError;
use crate::column::{BLOCK_ALIGNMENT, CODEC_SHIFT, TileEntry, few, parameters_of, union, units};
use crate::source::{CodecInUse, ColumnType};

/// Tiles of one column for queries: far beyond any device's memory, and a bound on what a file of few bytes can ask for.
const MAX_TILES: usize = 1 << 26;
/// Tiles that are encoded to find the smallest codec.
const SAMPLED_TILES: usize = 8;
const TILE_ALIGNMENT: usize = 16;

/// What a column for queries is to be.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// Bits a value: 8, 16, 32 or 64.
    pub value_width: u8,
    /// Whether values are in two's complement; their minima and maxima are given as such.
    pub signed: bool,
    /// Values a tile.
    pub tile_size: u32,
    /// Which blocks are encoded again.
    pub recode: Recode,
}

/// Which blocks are encoded again on their way to a device, besides those that no kernel decodes or whose values are too narrow.
#[derive(Clone, Copy, Default)]
pub enum Recode {
    /// None.
    Never,
    /// Those that cost a scan more time than their size saves it: a file is small for its own sake, a column on a device to be read fast. What a scan would choose is [`Choice::Speed`].
    #[default]
    Slow,
    /// All that have another codec, with this one.
    With(&'static dyn AnyCodec),
}

impl std::fmt::Debug for Recode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Never => formatter.write_str("Never"),
            Self::Slow => formatter.write_str("Slow"),
            Self::With(codec) => formatter.debug_tuple("With").field(&codec.name()).finish(),
        }
    }
}

impl Recode {
    /// A number that tells two of them apart.
    #[must_use]
    pub fn key(self) -> u32 {
        match self {
            Self::Never => 0,
            Self::Slow => 1,
            Self::With(codec) => 2 + u32::from(codec.id()),
        }
    }
}

/// A proven block whose tiles all decode as whole ones, not yet at its place in a column.
pub struct TileBlock<'a> {
    bytes: Cow<'a, [u8]>,
    /// What follows the block: its last tile as a whole one.
    extra: Vec<u8>,
    codec: Option<&'static dyn AnyCodec>,
    parameters: DeviceParameters,
    shared: bool,
    value_count: u64,
    /// Where each tile begins; of a constant block there is one place for all.
    offsets: Vec<usize>,
    tile_bytes: u64,
    /// Of each tile, or of all.
    ranges: Vec<(i64, i64)>,
    tile_size: u32,
}

/// The range of a tile of which nothing is known.
const UNKNOWN: (i64, i64) = (i64::MIN, i64::MAX);

impl<'a> TileBlock<'a> {
    /// Proves the block that `bytes` are and makes it one of the column `wanted`.
    ///
    /// # Errors
    /// A block that is wrong, of other tiles or wider values than wanted, or one that no codec with a device half can encode.
    pub fn new(bytes: &'a [u8], wanted: Wanted, registry: &Registry) -> Result<Self, GpuError> {
        let block = CheckedBlock::parse(bytes, registry)?;
        let view = *block.block().view();
        let found = block.block().layout();
        if found.kind != Kind::Values {
            return Err(GpuError::Layout { layout: found });
        }
        let differs = |field, found: u64, expected: u64| {
            Err(GpuError::Mismatch { block_index: 0, field, found, expected })
        };
        if found.value_width > wanted.value_width {
            return differs("value_width", found.value_width.into(), wanted.value_width.into());
        }
        if view.tile_size() != wanted.tile_size {
            return differs("tile_size", view.tile_size().into(), wanted.tile_size.into());
        }
        let codec = registry.by_id(view.header.codec_id.get());
        if let Some(constant) = view.constant() {
            let value = widened(constant, found, wanted.value_width, view.order());
            return Ok(Self::constant(value, view.value_count().into(), wanted));
        }
        let kept = |codec: &'static dyn AnyCodec| match wanted.recode {
            Recode::With(wanted) => wanted.id() == codec.id(),
            Recode::Never | Recode::Slow => codec.device_source().is_some(),
        };
        match codec {
            Some(codec) if found.value_width == wanted.value_width && kept(codec) => {
                let slow = matches!(wanted.recode, Recode::Slow) && codec.decode_bits(found) > 0;
                match if slow { faster(&block, codec, wanted, registry)? } else { None } {
                    None => Self::kept(&block, codec, wanted),
                    Some(faster) => {
                        Self::again(&block, Wanted { recode: Recode::With(faster), ..wanted }, registry)
                    }
                }
            }
            _ => Self::again(&block, wanted, registry),
        }
    }

    /// `value_count` times `value`, whose lowest bits count.
    #[must_use]
    pub fn constant(value: u64, value_count: u64, wanted: Wanted) -> Self {
        let mut bytes = vec![0; TILE_ALIGNMENT];
        bytes.splice(..8, value.to_le_bytes());
        Self {
            bytes: Cow::Owned(bytes),
            extra: Vec::new(),
            codec: None,
            parameters: DeviceParameters::default(),
            shared: false,
            value_count,
            offsets: vec![0],
            tile_bytes: 0,
            ranges: vec![{
                let value = as_integer(value, wanted);
                value.map_or(UNKNOWN, |value| (value, value))
            }],
            tile_size: wanted.tile_size,
        }
    }

    /// The block as it is, but for its last tile.
    fn kept(
        block: &CheckedBlock<'a>,
        codec: &'static dyn AnyCodec,
        wanted: Wanted,
    ) -> Result<Self, GpuError> {
        let view = *block.block().view();
        let tile_count = view.tile_count();
        let place = |tile: &[u8]| tile.as_ptr().addr() - view.bytes().as_ptr().addr();
        let tiles = || (0..tile_count).filter_map(|tile_index| view.tile(tile_index));
        let mut kept = Self {
            bytes: Cow::Borrowed(view.bytes()),
            extra: Vec::new(),
            codec: Some(codec),
            parameters: DeviceParameters::default(),
            shared: !view.shared().is_empty(),
            value_count: view.value_count().into(),
            offsets: tiles().map(place).collect(),
            tile_bytes: tiles().map(|tile| tile.len() as u64).sum(),
            ranges: (0..tile_count)
                .map(|index| range(view.tile_range(index), view.order(), wanted))
                .collect(),
            tile_size: wanted.tile_size,
        };
        let last = tile_count.saturating_sub(1);
        if view.tile_value_count(last) == view.tile_size() {
            kept.parameters = parameters_of(codec, block, tile_count);
            return Ok(kept);
        }
        let whole = whole_tile(block, codec, last)?;
        let (layout, value_count) = (block.block().layout(), view.tile_size() as usize);
        let tile = Tile { bytes: &whole, shared: view.shared(), value_count };
        codec.check_tile(tile, layout).map_err(|source| codec_core::BlockError::Tile {
            tile_index: last,
            codec: codec.name(),
            source,
        })?;
        kept.parameters = codec.device_parameters(tile, layout);
        if last > 0 {
            kept.parameters = union(kept.parameters, parameters_of(codec, block, last));
        }
        kept.tile_bytes += whole.len() as u64;
        kept.tile_bytes -= view.tile(last).unwrap_or_default().len() as u64;
        if let Some(offset) = kept.offsets.last_mut() {
            *offset = view.bytes().len().next_multiple_of(TILE_ALIGNMENT);
        }
        kept.extra = whole;
        Ok(kept)
    }

    /// The block's values, encoded with a codec that decodes on a device.
    fn again(block: &CheckedBlock<'_>, wanted: Wanted, registry: &Registry) -> Result<Self, GpuError> {
        let order = block.block().view().order();
        let values = block.decode()?;
        let values = with_values!(OwnedValues, &values, values => widen(values, wanted.value_width, order));
        let codec = match wanted.recode {
            Recode::With(codec) => Some(codec),
            Recode::Never | Recode::Slow => smallest(values.as_values(), order, wanted.tile_size, registry),
        };
        let layout = Layout::values(wanted.value_width);
        let no_codec = || GpuError::NoDeviceCode { codec: block.block().codec_name() };
        let codec = codec.filter(|codec| codec.supports(layout) && codec.device_source().is_some());
        let codec = codec.ok_or_else(no_codec)?;
        let choice = Choice::Prefer(codec);
        // Floats and unordered values keep no statistics: nobody asks for them.
        let order = if matches!(order, Order::Signed | Order::Unsigned) { order } else { Order::None };
        let encoded =
            encode_block(values.as_values(), Kind::Values, order, wanted.tile_size, registry, choice)?;
        let block =
            TileBlock::new(&encoded.bytes, Wanted { recode: Recode::With(codec), ..wanted }, registry)?;
        Ok(block.into_owned())
    }

    /// Number of values.
    #[must_use]
    pub fn value_count(&self) -> u64 {
        self.value_count
    }

    fn into_owned(self) -> TileBlock<'static> {
        let Self {
            bytes,
            extra,
            codec,
            parameters,
            shared,
            value_count,
            offsets,
            tile_bytes,
            ranges,
            tile_size,
        } = self;
        let bytes = Cow::Owned(bytes.into_owned());
        TileBlock {
            bytes,
            extra,
            codec,
            parameters,
            shared,
            value_count,
            offsets,
            tile_bytes,
            ranges,
            tile_size,
        }
    }
}

/// The codec that a scan of the block would rather have than its own; `None` where that is its own.
fn faster(
    block: &CheckedBlock<'_>,
    codec: &'static dyn AnyCodec,
    wanted: Wanted,
    registry: &Registry,
) -> Result<Option<&'static dyn AnyCodec>, GpuError> {
    let (layout, order) = (block.block().layout(), block.block().view().order());
    let values = block.decode()?;
    let tile_len = wanted.tile_size as usize;
    let best = choose(registry, Choice::Speed, layout, order, values.as_values(), tile_len);
    let best = best.map(|(best, _)| best).filter(|best| best.device_source().is_some());
    Ok(best.filter(|best| best.id() != codec.id()))
}

/// A column for queries, before a byte is copied. Needs no device.
pub struct WholeTiles<'a> {
    blocks: Vec<TileBlock<'a>>,
    bytes: usize,
    tiles: Vec<TileEntry>,
    shared_offsets: Vec<u32>,
    ranges: Vec<(i64, i64)>,
    column_type: ColumnType,
    value_count: u64,
    tile_bytes: u64,
}

impl<'a> WholeTiles<'a> {
    /// A column of `blocks`, in this order.
    ///
    /// # Errors
    /// More tiles, bytes or codecs than a device column can have.
    pub fn new(wanted: Wanted, blocks: Vec<TileBlock<'a>>) -> Result<Self, GpuError> {
        let column_type = ColumnType {
            value_width: wanted.value_width,
            tile_size: wanted.tile_size,
            codecs: Vec::new(),
            shared: false,
        };
        let mut column = Self {
            blocks: Vec::new(),
            bytes: 0,
            tiles: Vec::new(),
            shared_offsets: Vec::new(),
            ranges: Vec::new(),
            column_type,
            value_count: 0,
            tile_bytes: 0,
        };
        for (block_index, block) in blocks.iter().enumerate() {
            let (found, expected) = (block.tile_size.into(), wanted.tile_size.into());
            if found != expected {
                return Err(GpuError::Mismatch { block_index, field: "tile_size", found, expected });
            }
            column.add(block)?;
        }
        if column.column_type.codecs.is_empty() {
            // No rows: kernels compile all the same.
            column
                .column_type
                .codecs
                .push(CodecInUse { codec: None, parameters: DeviceParameters::default() });
        }
        for codec in &mut column.column_type.codecs {
            codec.parameters = few(codec.parameters);
        }
        column.blocks = blocks;
        Ok(column)
    }

    fn add(&mut self, block: &TileBlock<'_>) -> Result<(), GpuError> {
        let start = self.bytes;
        let tile_size = u64::from(self.column_type.tile_size);
        let tile_count = usize::try_from(block.value_count.div_ceil(tile_size)).unwrap_or(usize::MAX);
        if self.tiles.len().saturating_add(tile_count) > MAX_TILES {
            return Err(GpuError::TooManyTiles { max_tiles: MAX_TILES as u64 });
        }
        self.bytes += block.padded_bytes();
        let max_bytes = u64::from(u32::MAX) * TILE_ALIGNMENT as u64;
        if self.bytes as u64 > max_bytes {
            return Err(GpuError::TooLarge { bytes: self.bytes as u64, max_bytes });
        }
        let codec_number = self.column_type.codec_number(block.codec, block.parameters)?;
        self.column_type.shared |= block.shared;
        let shared_offset = units(start + format_spec::BlockHeader::BYTES);
        let mut left = block.value_count;
        for tile_index in 0..tile_count {
            let value_count = left.min(tile_size);
            left -= value_count;
            let of_tile = |index: usize| block.offsets.get(index).or(block.offsets.first());
            self.tiles.push(TileEntry {
                offset_16: units(start + of_tile(tile_index).copied().unwrap_or(0)),
                codec_and_value_count: codec_number << CODEC_SHIFT | u32::try_from(value_count).unwrap_or(0),
            });
            self.shared_offsets.push(shared_offset);
            let range = block.ranges.get(tile_index).or(block.ranges.first());
            self.ranges.push(range.copied().unwrap_or(UNKNOWN));
        }
        self.value_count += block.value_count;
        self.tile_bytes += block.tile_bytes;
        Ok(())
    }

    /// The tiles' entries, as the device reads them.
    #[must_use]
    pub fn tiles(&self) -> &[TileEntry] {
        &self.tiles
    }

    /// Smallest and largest value of each tile; all integers where nothing is known.
    #[must_use]
    pub fn ranges(&self) -> &[(i64, i64)] {
        &self.ranges
    }

    /// Where each tile's block keeps its shared bytes, in units of 16 bytes.
    #[must_use]
    pub fn shared_offsets(&self) -> &[u32] {
        &self.shared_offsets
    }

    /// What kernels are specialized for.
    #[must_use]
    pub fn column_type(&self) -> &ColumnType {
        &self.column_type
    }

    /// Number of values, padding not counted.
    #[must_use]
    pub fn value_count(&self) -> u64 {
        self.value_count
    }

    /// Bytes that all blocks take together, each aligned.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of all tiles.
    #[must_use]
    pub fn tile_bytes(&self) -> u64 {
        self.tile_bytes
    }

    /// The column's bytes in order, each piece followed by zeros up to the next multiple of [`BLOCK_ALIGNMENT`] or, within a block, of 16.
    pub fn pieces(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.blocks.iter().flat_map(|block| {
            [(block.bytes.as_ref(), TILE_ALIGNMENT), (block.extra.as_slice(), BLOCK_ALIGNMENT)]
        })
    }
}

impl TileBlock<'_> {
    fn padded_bytes(&self) -> usize {
        let block = self.bytes.len().next_multiple_of(TILE_ALIGNMENT);
        (block + self.extra.len()).next_multiple_of(BLOCK_ALIGNMENT)
    }
}

/// The last tile, `tile_index`, with copies of its last value up to the tile size, encoded by its own codec.
fn whole_tile(
    block: &CheckedBlock<'_>,
    codec: &'static dyn AnyCodec,
    tile_index: u32,
) -> Result<Vec<u8>, GpuError> {
    let view = block.block().view();
    let (tile_size, present) = (view.tile_size() as usize, view.tile_value_count(tile_index) as usize);
    let unknown = GpuError::Layout { layout: view.layout() };
    let mut values = OwnedValues::zeros(view.layout().value_width, tile_size).ok_or(unknown)?;
    with_values!(OwnedValues, &mut values, values => {
        block.block().decode_tile(tile_index, values.get_mut(..present).unwrap_or_default())?;
        let last = values.get(present.saturating_sub(1)).copied().unwrap_or_default();
        values.get_mut(present..).unwrap_or_default().fill(last);
    });
    let mut tile = Vec::new();
    codec.encode_tile(view.shared(), values.as_values(), &mut tile);
    tile.resize(tile.len().max(1).next_multiple_of(TILE_ALIGNMENT), 0);
    Ok(tile)
}

/// The codec with a device half whose tiles are smallest.
fn smallest(
    values: Values<'_>,
    order: Order,
    tile_size: u32,
    registry: &Registry,
) -> Option<&'static dyn AnyCodec> {
    let tile_len = tile_size as usize;
    let step = values.len().div_ceil(tile_len).div_ceil(SAMPLED_TILES).max(1) * tile_len;
    let suits =
        |codec: &&dyn AnyCodec| codec.device_source().is_some() && codec.suits(values.layout(), order);
    let candidates = registry.supporting(values.layout()).filter(suits);
    candidates.min_by_key(|codec| {
        let shared = codec.encode_shared(values);
        let mut tile = Vec::new();
        let mut sampled_bytes = shared.len() * SAMPLED_TILES * tile_len / values.len().max(1);
        for start in (0..values.len()).step_by(step) {
            tile.clear();
            codec.encode_tile(&shared, values.slice(start..values.len().min(start + tile_len)), &mut tile);
            sampled_bytes += tile.len();
        }
        sampled_bytes
    })
}

/// The values in `value_width` bits, which are no fewer than they have.
fn widen<V: Value>(values: &[V], value_width: u8, order: Order) -> OwnedValues {
    fn all<V: Value, W: Value>(values: &[V], wider: impl Fn(u64) -> u64) -> OwnedValues {
        W::own(values.iter().map(|&value| W::from_u64(wider(value.to_u64()))).collect())
    }
    let (layout, width) = (Layout::values(V::WIDTH), value_width);
    let wider = |value| widened(value, layout, width, order);
    match value_width {
        8 => all::<V, u8>(values, wider),
        16 => all::<V, u16>(values, wider),
        32 => all::<V, u32>(values, wider),
        _ => all::<V, u64>(values, wider),
    }
}

/// `value`, stored zero-extended, in `value_width` bits.
fn widened(value: u64, stored: Layout, value_width: u8, order: Order) -> u64 {
    if order != Order::Signed {
        return value;
    }
    let extended = sign_extended(value, stored.value_width);
    extended.cast_unsigned() & (u64::MAX >> (64 - value_width.clamp(1, 64)))
}

fn sign_extended(value: u64, value_width: u8) -> i64 {
    let shift = 64 - value_width.clamp(1, 64);
    (value << shift).cast_signed() >> shift
}

/// The integer that the stored bits are; `None` beyond 63 bits.
fn as_integer(value: u64, wanted: Wanted) -> Option<i64> {
    if wanted.signed { Some(sign_extended(value, wanted.value_width)) } else { i64::try_from(value).ok() }
}

/// A tile's range as integers.
fn range(stored: Option<(u64, u64)>, order: Order, wanted: Wanted) -> (i64, i64) {
    let fits = order == if wanted.signed { Order::Signed } else { Order::Unsigned };
    let range = stored.filter(|_| fits).and_then(|(min, max)| {
        let (min, max) = (as_integer(min, wanted)?, as_integer(max, wanted)?);
        (min <= max).then_some((min, max))
    });
    range.unwrap_or(UNKNOWN)
}
