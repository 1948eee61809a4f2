//! A column on a device: proven blocks, and one table of where their tiles are.

use codec_core::{AnyCodec, CheckedBlock, DeviceParameters, Registry, Tile};
use format_spec::{BlockHeader, Kind, Layout};
use zerocopy::IntoBytes;

use crate::memory::Upload;
use crate::source::{CodecInUse, ColumnType};
use crate::tiles::WholeTiles;
use crate::{Device, DeviceMemory, GpuError};

/// Blocks begin at multiples of this, as in a file: tiles are aligned for the widest loads.
pub const BLOCK_ALIGNMENT: usize = 64;
/// Unit of tile offsets.
const OFFSET_UNIT: usize = 16;
/// Tiles that kernels' 32-bit indexes reach, with room for the stride of a grid.
const MAX_TILES: usize = 1 << 31;
/// Codec numbers stand above this bit of a tile's entry, its value_count below.
pub(crate) const CODEC_SHIFT: u32 = 24;

/// `cb2t::ColumnView` of cuda/column.cuh: device addresses.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ColumnView {
    bytes: u64,
    tiles: u64,
    shared_offsets_16: u64,
}

/// `cb2t::TileEntry` of cuda/column.cuh.
#[derive(Debug, Clone, Copy, IntoBytes, zerocopy::Immutable)]
#[repr(C)]
pub struct TileEntry {
    pub(crate) offset_16: u32,
    pub(crate) codec_and_value_count: u32,
}

impl TileEntry {
    /// Values in the tile, padding not counted.
    #[must_use]
    pub fn value_count(self) -> u32 {
        self.codec_and_value_count & ((1 << CODEC_SHIFT) - 1)
    }
}

impl ColumnView {
    /// The addresses of the blocks, of the tiles' entries and of the shared offsets: the structure as words.
    #[must_use]
    pub fn words(self) -> [u64; 3] {
        [self.bytes, self.tiles, self.shared_offsets_16]
    }
}

/// A column of fixed-width values on a device. Everything that a kernel reads through [`DeviceColumn::view`] was proven by [`CheckedBlock`].
#[derive(Debug)]
pub struct DeviceColumn {
    bytes: DeviceMemory,
    tiles: DeviceMemory,
    shared_offsets: DeviceMemory,
    column_type: ColumnType,
    value_count: u64,
    block_bytes: u64,
    tile_bytes: u64,
}

impl DeviceColumn {
    /// Uploads `blocks`, consecutive blocks of one column: all but the last have whole tiles. `registry` is the one that checked them.
    ///
    /// # Errors
    /// No blocks, blocks that differ in layout or tile size, a codec without device code, or too little device memory.
    pub fn upload(
        device: &Device,
        blocks: &[CheckedBlock<'_>],
        registry: &Registry,
    ) -> Result<Self, GpuError> {
        let plan = Plan::new(blocks, registry)?;
        let mut bytes = DeviceMemory::allocate(device, plan.bytes)?;
        let mut upload = Upload::to(&mut bytes)?;
        for block in blocks {
            upload.push(block.bytes())?;
            upload.align(BLOCK_ALIGNMENT)?;
        }
        upload.finish()?;
        let table = |bytes: &[u8]| -> Result<DeviceMemory, GpuError> {
            let mut memory = DeviceMemory::allocate(device, bytes.len())?;
            memory.write(0, bytes)?;
            Ok(memory)
        };
        Ok(Self {
            tiles: table(plan.tiles.as_bytes())?,
            shared_offsets: table(plan.shared_offsets.as_bytes())?,
            column_type: plan.column_type,
            value_count: plan.value_count,
            tile_bytes: plan.tile_bytes,
            block_bytes: blocks.iter().map(|block| block.bytes().len() as u64).sum(),
            bytes,
        })
    }

    /// Uploads a column for queries: its tiles all decode as whole ones, and count as such.
    ///
    /// # Errors
    /// Too little device memory, or an error of the device.
    pub fn upload_tiles(device: &Device, column: &WholeTiles<'_>) -> Result<Self, GpuError> {
        let mut bytes = DeviceMemory::allocate(device, column.bytes())?;
        let mut upload = Upload::to(&mut bytes)?;
        for (piece, alignment) in column.pieces() {
            upload.push(piece)?;
            upload.align(alignment)?;
        }
        upload.finish()?;
        let table = |bytes: &[u8]| -> Result<DeviceMemory, GpuError> {
            let mut memory = DeviceMemory::allocate(device, bytes.len())?;
            memory.write(0, bytes)?;
            Ok(memory)
        };
        let column_type = column.column_type().clone();
        Ok(Self {
            tiles: table(column.tiles().as_bytes())?,
            shared_offsets: table(column.shared_offsets().as_bytes())?,
            value_count: column.tiles().len() as u64 * u64::from(column_type.tile_size),
            column_type,
            tile_bytes: column.tile_bytes(),
            block_bytes: column.bytes() as u64,
            bytes,
        })
    }

    /// The kernels' argument.
    #[must_use]
    pub fn view(&self) -> ColumnView {
        ColumnView {
            bytes: self.bytes.address(),
            tiles: self.tiles.address(),
            shared_offsets_16: self.shared_offsets.address(),
        }
    }

    /// What kernels are specialized for.
    #[must_use]
    pub fn column_type(&self) -> &ColumnType {
        &self.column_type
    }

    /// Number of values.
    #[must_use]
    pub fn value_count(&self) -> u64 {
        self.value_count
    }

    /// Bytes of the blocks as in a file.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Bytes of device memory that the column takes.
    #[must_use]
    pub fn device_bytes(&self) -> u64 {
        (self.bytes.len() + self.tiles.len() + self.shared_offsets.len()) as u64
    }

    /// Bytes that a decode of all values reads: tiles and the table of their places, not the blocks' own tables.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.tile_bytes + self.tiles.len() as u64
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.bytes.device()
    }
}

/// Where everything will be and what it needs, before a byte is copied. Needs no device.
#[derive(Debug)]
pub struct Plan {
    bytes: usize,
    tiles: Vec<TileEntry>,
    shared_offsets: Vec<u32>,
    column_type: ColumnType,
    value_count: u64,
    tile_bytes: u64,
}

impl Plan {
    /// The plan for `blocks`.
    ///
    /// # Errors
    /// As [`DeviceColumn::upload`], without those of the device.
    pub fn new(blocks: &[CheckedBlock<'_>], registry: &Registry) -> Result<Self, GpuError> {
        let empty = GpuError::Mismatch { block_index: 0, field: "block count", found: 0, expected: 1 };
        let first = blocks.first().ok_or(empty)?.block();
        let (layout, tile_size) = (first.layout(), first.tile_size());
        if layout.kind != Kind::Values {
            return Err(GpuError::Layout { layout });
        }
        let column_type = ColumnType {
            value_width: layout.value_width,
            tile_size: u32::try_from(tile_size).unwrap_or(u32::MAX),
            codecs: Vec::new(),
            shared: false,
        };
        let mut plan = Self {
            bytes: 0,
            tiles: Vec::new(),
            shared_offsets: Vec::new(),
            column_type,
            value_count: 0,
            tile_bytes: 0,
        };
        for (block_index, block) in blocks.iter().enumerate() {
            plan.check(blocks.len(), block_index, block, layout)?;
            plan.add(block, registry)?;
        }
        for codec in &mut plan.column_type.codecs {
            codec.parameters = few(codec.parameters);
        }
        Ok(plan)
    }

    /// The tiles' entries, as the device reads them.
    #[must_use]
    pub fn tiles(&self) -> &[TileEntry] {
        &self.tiles
    }

    /// What kernels are specialized for.
    #[must_use]
    pub fn column_type(&self) -> &ColumnType {
        &self.column_type
    }

    /// Bytes that the blocks take together, each aligned.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where each tile's block keeps its shared bytes, in units of 16 bytes.
    #[must_use]
    pub fn shared_offsets(&self) -> &[u32] {
        &self.shared_offsets
    }

    fn check(
        &self,
        block_count: usize,
        block_index: usize,
        block: &CheckedBlock<'_>,
        layout: Layout,
    ) -> Result<(), GpuError> {
        let block = block.block();
        let differs = |field, found: u64, expected: u64| {
            Err(GpuError::Mismatch { block_index, field, found, expected })
        };
        let (found, tile_size) = (block.layout(), u64::from(self.column_type.tile_size));
        if found != layout {
            return differs("value_width", found.value_width.into(), layout.value_width.into());
        }
        if block.tile_size() as u64 != tile_size {
            return differs("tile_size", block.tile_size() as u64, tile_size);
        }
        let partial = block.value_count() as u64 % tile_size;
        if partial != 0 && block_index + 1 < block_count {
            return differs("value_count modulo tile_size", partial, 0);
        }
        Ok(())
    }

    fn add(&mut self, block: &CheckedBlock<'_>, registry: &Registry) -> Result<(), GpuError> {
        let view = block.block().view();
        let start = self.bytes;
        self.bytes += view.bytes().len().next_multiple_of(BLOCK_ALIGNMENT);
        let max_bytes = u64::from(u32::MAX) * OFFSET_UNIT as u64;
        if self.bytes as u64 > max_bytes {
            return Err(GpuError::TooLarge { bytes: self.bytes as u64, max_bytes });
        }
        let codec = registry.by_id(view.header.codec_id.get());
        let parameters =
            codec.map_or(DeviceParameters::default(), |codec| parameters_of(codec, block, view.tile_count()));
        let codec_number = self.column_type.codec_number(codec, parameters)?;
        self.column_type.shared |= !view.shared().is_empty();
        self.value_count += block.block().value_count() as u64;
        let shared_offset = units(start + BlockHeader::BYTES);
        let tile_count = block.block().value_count().div_ceil(block.block().tile_size());
        for tile_index in 0..u32::try_from(tile_count).unwrap_or(u32::MAX) {
            // A constant block has one tile, its header's field, which stands for all.
            let offset = match view.tile(tile_index) {
                Some(tile) => {
                    self.tile_bytes += tile.len() as u64;
                    tile.as_ptr().addr() - view.bytes().as_ptr().addr()
                }
                None => CONSTANT_OFFSET,
            };
            let entry = TileEntry {
                offset_16: units(start + offset),
                codec_and_value_count: codec_number << CODEC_SHIFT | view.tile_value_count(tile_index),
            };
            if self.tiles.len() >= MAX_TILES {
                return Err(GpuError::TooManyTiles { max_tiles: MAX_TILES as u64 });
            }
            self.tiles.push(entry);
            self.shared_offsets.push(shared_offset);
        }
        Ok(())
    }
}

impl ColumnType {
    /// The place of the codec in the column's list, with `parameters` added to what it is specialized for. The empty set stands for anything, so it takes all.
    pub(crate) fn codec_number(
        &mut self,
        codec: Option<&'static dyn AnyCodec>,
        parameters: DeviceParameters,
    ) -> Result<u32, GpuError> {
        let in_use = match codec {
            None => CodecInUse { codec: None, parameters },
            Some(codec) => {
                let name = codec.name();
                let source = codec.device_source().ok_or(GpuError::NoDeviceCode { codec: name })?;
                CodecInUse { codec: Some((name, source)), parameters }
            }
        };
        let codecs = &mut self.codecs;
        let index = codecs.iter().position(|known| known.name() == in_use.name());
        let index = if let Some(index) = index {
            if let Some(known) = codecs.get_mut(index) {
                known.parameters = union(known.parameters, parameters);
            }
            index
        } else {
            codecs.push(in_use);
            codecs.len() - 1
        };
        Ok(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// Offset of the header's field `constant`.
const CONSTANT_OFFSET: usize = 48;
const _: () = assert!(
    std::mem::offset_of!(BlockHeader, constant) == CONSTANT_OFFSET
        && CONSTANT_OFFSET.is_multiple_of(OFFSET_UNIT)
);

pub(crate) fn units(offset_bytes: usize) -> u32 {
    // Callers have checked that the column is not too large.
    u32::try_from(offset_bytes / OFFSET_UNIT).unwrap_or(u32::MAX)
}

/// Members up to which code is specialized: beyond, it would be long to compile and no faster.
const MAX_MEMBERS: u32 = 17;

pub(crate) fn few(parameters: DeviceParameters) -> DeviceParameters {
    let members = parameters.low.count_ones() + parameters.high.count_ones();
    if members <= MAX_MEMBERS { parameters } else { DeviceParameters::default() }
}

pub(crate) fn union(left: DeviceParameters, right: DeviceParameters) -> DeviceParameters {
    if left.is_empty() || right.is_empty() { DeviceParameters::default() } else { left.union(right) }
}

/// The union over the first `tile_count` tiles of a block.
pub(crate) fn parameters_of(
    codec: &'static dyn AnyCodec,
    block: &CheckedBlock<'_>,
    tile_count: u32,
) -> DeviceParameters {
    let (block, view) = (block.block(), block.block().view());
    let of_tile = |tile_index| {
        let bytes = view.tile(tile_index).unwrap_or_default();
        let value_count = view.tile_value_count(tile_index) as usize;
        codec.device_parameters(Tile { bytes, shared: view.shared(), value_count }, block.layout())
    };
    (0..tile_count).map(of_tile).reduce(union).unwrap_or_default()
}
