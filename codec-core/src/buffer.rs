//! A buffer: many blocks. Encoded and decoded in parallel; read whole, by range, or single values.

use std::ops::Range;

use format_spec::{BlockHeader, FormatError, Kind, Layout, Order};
use rayon::prelude::*;
use zerocopy::FromBytes;

use crate::{
    Block, BlockError, BufferError, Choice, EncodeError, EncodedBlock, Registry, Value, Values, encode_block,
};

/// How values become blocks.
#[derive(Debug, Clone, Copy)]
pub struct EncodeOptions {
    /// Uncompressed bytes of a block, at most 2^30.
    pub block_bytes: u32,
    /// Values a tile: 512 or 1024.
    pub tile_size: u32,
    /// Bytes a tile of the kind bytes: 4096, 8192, 16384, 32768 or 65536.
    pub bytes_tile_size: u32,
    /// How each block's codec is chosen.
    pub choice: Choice,
}

impl Default for EncodeOptions {
    /// Blocks of 2 MiB, tiles of 1024 values or 16 KiB, automatic choice.
    fn default() -> Self {
        Self {
            block_bytes: 2 << 20,
            tile_size: Kind::Values.default_tile_size(),
            bytes_tile_size: Kind::Bytes.default_tile_size(),
            choice: Choice::Auto,
        }
    }
}

impl EncodeOptions {
    /// Values a tile for buffers of `kind`.
    #[must_use]
    pub fn tile_size(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Values => self.tile_size,
            Kind::Bytes => self.bytes_tile_size,
        }
    }
}

/// Values in every block but the last: as many whole tiles as `block_bytes` holds, at least one.
#[must_use]
pub fn values_per_block(options: &EncodeOptions, layout: Layout) -> u32 {
    let tile_size = options.tile_size(layout.kind).max(1);
    let values = options.block_bytes / u32::from(layout.value_width.max(8) / 8);
    (values / tile_size).max(1) * tile_size
}

/// Encodes `values` as blocks of [`values_per_block`] values, in parallel.
///
/// # Errors
/// As [`encode_block`].
pub fn encode_values(
    values: Values<'_>,
    kind: Kind,
    order: Order,
    registry: &Registry,
    options: &EncodeOptions,
) -> Result<Vec<EncodedBlock>, EncodeError> {
    let layout = Layout { kind, value_width: values.value_width() };
    let block_len = values_per_block(options, layout) as usize;
    let starts: Vec<usize> = (0..values.len()).step_by(block_len).collect();
    starts
        .into_par_iter()
        .map(|start| {
            let block = values.slice(start..values.len().min(start + block_len));
            encode_block(block, kind, order, options.tile_size(kind), registry, options.choice)
        })
        .collect()
}

/// Where the blocks of a buffer come from.
pub trait BlockSource: Sync {
    /// Why a block's bytes cannot be had.
    type Error: std::error::Error + Send + 'static;
    /// A block's bytes, borrowed where they are in memory.
    type Bytes<'a>: AsRef<[u8]>
    where
        Self: 'a;

    /// Kind and width of the values.
    fn layout(&self) -> Layout;
    /// Values of all blocks.
    fn value_count(&self) -> u64;
    /// Values of every block but the last; not 0 unless there are no values.
    fn values_per_block(&self) -> u32;
    /// Length of a block in bytes.
    ///
    /// # Errors
    /// There is no such block.
    fn block_bytes(&self, block_index: u32) -> Result<u64, Self::Error>;
    /// Some bytes of a block, within its length.
    ///
    /// # Errors
    /// The bytes cannot be read.
    fn read(&self, block_index: u32, bytes: Range<u64>) -> Result<Self::Bytes<'_>, Self::Error>;
}

/// Decodes the values of `ranges`, one after the other, in parallel over blocks. Of each block its head and the tiles that hold the values are read. `values` has as many values.
///
/// # Errors
/// A range beyond the values, another type than theirs, or a block that cannot be read or decoded.
pub fn decode_ranges<V: Value, S: BlockSource>(
    source: &S,
    registry: &Registry,
    ranges: &[Range<u64>],
    values: &mut [V],
) -> Result<(), BufferError<S::Error>> {
    let wanted =
        ranges.iter().fold(0, |sum: u64, range| sum.saturating_add(range.end.saturating_sub(range.start)));
    let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
    check_request::<V, S>(source, end)?;
    if wanted != values.len() as u64 {
        return Err(BufferError::OutOfRange { index: wanted, value_count: values.len() as u64 });
    }
    let mut parts = split_by_blocks(source, ranges, values);
    let mut by_block: Vec<&mut [Part<'_, V>]> =
        parts.chunk_by_mut(|left, right| left.block_index == right.block_index).collect();
    match by_block.as_mut_slice() {
        // Values of one block, the most common, need no other thread.
        [parts] => decode_parts(parts, source, registry),
        by_block => by_block.par_iter_mut().try_for_each(|parts| decode_parts(parts, source, registry)),
    }
}

/// Decodes single values: `values[i]` becomes the buffer's value `indexes[i]`, in parallel over blocks. Each tile is read and decoded once where `indexes` ascend.
///
/// # Errors
/// An index beyond the values, another type than theirs, or a block that cannot be read or decoded.
pub fn take<V: Value, S: BlockSource>(
    source: &S,
    registry: &Registry,
    indexes: &[u64],
    values: &mut [V],
) -> Result<(), BufferError<S::Error>> {
    check_request::<V, S>(source, indexes.iter().max().map_or(0, |max| max.saturating_add(1)))?;
    if indexes.len() != values.len() {
        return Err(BufferError::OutOfRange {
            index: indexes.len() as u64,
            value_count: values.len() as u64,
        });
    }
    let block_len = u64::from(source.values_per_block().max(1));
    let mut rest = values;
    let mut runs: Vec<(&[u64], &mut [V])> = Vec::new();
    for run in indexes.chunk_by(|left, right| left / block_len == right / block_len) {
        let (target, behind) = std::mem::take(&mut rest).split_at_mut(run.len());
        rest = behind;
        runs.push((run, target));
    }
    match runs.as_mut_slice() {
        [(run, target)] => take_of_block(source, registry, run, target),
        runs => {
            runs.par_iter_mut().try_for_each(|(run, target)| take_of_block(source, registry, run, target))
        }
    }
}

/// Decodes single values of one block.
fn take_of_block<V: Value, S: BlockSource>(
    source: &S,
    registry: &Registry,
    indexes: &[u64],
    values: &mut [V],
) -> Result<(), BufferError<S::Error>> {
    let block_len = u64::from(source.values_per_block().max(1));
    let block_index = block_number(indexes.first().map_or(0, |index| index / block_len));
    let local: Vec<usize> = indexes.iter().map(|index| within_block(index % block_len)).collect();
    with_block(source, registry, block_index, |block| {
        let mut rest = values;
        for near in local.chunk_by(|&left, &right| are_near(&block, left, right)) {
            let (target, behind) = std::mem::take(&mut rest).split_at_mut(near.len());
            rest = behind;
            let (Some(&first), Some(&last)) = (near.first(), near.last()) else { continue };
            with_tiles(source, block_index, &block, first..last + 1, |block| block.take(near, target))?;
        }
        Ok(())
    })
}

/// Whether the second value's tile is the first's, or follows so soon that reading what is between costs less than another read.
fn are_near(block: &Block<'_>, left: usize, right: usize) -> bool {
    const LARGEST_GAP_BYTES: u64 = 4096;
    let extent = |index: usize| block.tiles_extent(index..index + 1);
    match (extent(left), extent(right)) {
        (Ok(before), Ok(after)) => {
            left <= right && after.start.saturating_sub(before.end) <= LARGEST_GAP_BYTES
        }
        _ => false,
    }
}

/// The part of a request that lies in one block.
struct Part<'v, V> {
    block_index: u32,
    wanted: Range<usize>,
    values: &'v mut [V],
}

/// Decodes parts of one block.
fn decode_parts<V: Value, S: BlockSource>(
    parts: &mut [Part<'_, V>],
    source: &S,
    registry: &Registry,
) -> Result<(), BufferError<S::Error>> {
    let Some(block_index) = parts.first().map(|part| part.block_index) else { return Ok(()) };
    with_block(source, registry, block_index, |block| {
        parts.iter_mut().try_for_each(|part| {
            with_tiles(source, block_index, &block, part.wanted.clone(), |block| {
                block.decode_range(part.wanted.clone(), part.values)
            })
        })
    })
}

fn split_by_blocks<'v, V: Value, S: BlockSource>(
    source: &S,
    ranges: &[Range<u64>],
    values: &'v mut [V],
) -> Vec<Part<'v, V>> {
    let block_len = u64::from(source.values_per_block().max(1));
    let mut parts = Vec::new();
    let mut rest = values;
    for range in ranges {
        let mut position = range.start;
        while position < range.end {
            let block_start = position / block_len * block_len;
            let end = range.end.min(block_start.saturating_add(block_len));
            let (target, behind) = std::mem::take(&mut rest).split_at_mut(within_block(end - position));
            rest = behind;
            parts.push(Part {
                block_index: block_number(position / block_len),
                wanted: within_block(position - block_start)..within_block(end - block_start),
                values: target,
            });
            position = end;
        }
    }
    parts
}

/// Reads and proves the head of a block.
fn with_block<S: BlockSource>(
    source: &S,
    registry: &Registry,
    block_index: u32,
    decode: impl FnOnce(Block<'_>) -> Result<(), BufferError<S::Error>>,
) -> Result<(), BufferError<S::Error>> {
    let failed = |source| BufferError::Read { block_index, source };
    let block_bytes = source.block_bytes(block_index).map_err(failed)?;
    let header = source.read(block_index, 0..block_bytes.min(BlockHeader::BYTES as u64)).map_err(failed)?;
    // A block too short for a header is refused when it is parsed.
    let head_bytes =
        BlockHeader::ref_from_prefix(header.as_ref()).map_or(0, |(header, _)| header.head_bytes());
    let head = source.read(block_index, 0..block_bytes.min(head_bytes)).map_err(failed)?;
    let block = Block::parse_head(head.as_ref(), block_bytes, registry).and_then(|block| {
        let (found, expected) = (block.layout(), source.layout());
        if found != expected {
            let field = "kind and value_width";
            let (found, expected) = (found.value_width.into(), expected.value_width.into());
            return Err(BlockError::Unexpected { field, found, expected });
        }
        check_tile_size(&block, source.values_per_block())?;
        Ok(block)
    });
    decode(block.map_err(|source| BufferError::Block { block_index, source })?)
}

/// Reads the tiles that hold the values `wanted` of a block.
fn with_tiles<S: BlockSource>(
    source: &S,
    block_index: u32,
    block: &Block<'_>,
    wanted: Range<usize>,
    decode: impl FnOnce(Block<'_>) -> Result<(), BlockError>,
) -> Result<(), BufferError<S::Error>> {
    let failed = |source| BufferError::Block { block_index, source };
    let extent = block.tiles_extent(wanted).map_err(failed)?;
    let start = extent.start;
    let tiles =
        source.read(block_index, extent).map_err(|source| BufferError::Read { block_index, source })?;
    decode(block.with_tiles(start, tiles.as_ref())).map_err(failed)
}

/// Tiles never reach across blocks: every block but the last is full of whole tiles.
fn check_tile_size(block: &Block<'_>, values_per_block: u32) -> Result<(), BlockError> {
    if values_per_block.is_multiple_of(block.view().tile_size()) {
        return Ok(());
    }
    let (what, field) = ("buffer", "values_per_block");
    Err(FormatError::Field { what, field, found: values_per_block.into() }.into())
}

fn check_request<V: Value, S: BlockSource>(source: &S, end: u64) -> Result<(), BufferError<S::Error>> {
    let (layout, value_count) = (source.layout(), source.value_count());
    if layout.value_width != V::WIDTH {
        return Err(BufferError::Layout { layout, asked_width: V::WIDTH });
    }
    if end > value_count || (source.values_per_block() == 0 && end > 0) {
        return Err(BufferError::OutOfRange { index: end.saturating_sub(1), value_count });
    }
    Ok(())
}

/// A block's number as stored: a buffer has fewer than 2^32 blocks, so past that none has the number.
fn block_number(block_index: u64) -> u32 {
    u32::try_from(block_index).unwrap_or(u32::MAX)
}

/// A count of values within one block, less than 2^32.
fn within_block(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
