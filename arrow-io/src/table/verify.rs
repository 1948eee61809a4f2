//! Proves all of a file: every byte under its checksum, every value decoded, every statistic true.

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::Schema;
use codec_core::statistics::{range, union};
use codec_core::{Block, BlockError, BufferError, Value};
use format_spec::{BufferEntry, Kind, NodeChunk, Order, Role};
use rayon::prelude::*;

use super::reader::{ReadOptions, Table, batch};
use crate::columns::build::{Coding, NodeBuilder};
use crate::columns::read::{Budget, ChunkReader, LoadedColumn, role_name};
use crate::columns::statistics::{are_short, compare, value_extremes};
use crate::columns::tree::{Node, Shape};
use crate::error::TableError;

/// What was proven.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verified {
    /// Rows decoded.
    pub row_count: u64,
    /// Blocks proven.
    pub block_count: u64,
    /// Tiles proven.
    pub tile_count: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

impl Table {
    /// Proves the whole file: structures that tile it, all checksums, all tiles, all values, and that the statistics of tiles, blocks and row groups are those of the
    /// values. `progress` hears after each row group of a column how many of all there are.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn verify(&self, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Verified, TableError> {
        let column_count = self.schema().fields().len();
        let columns: Vec<&LoadedColumn> =
            (0..column_count).into_par_iter().map(|index| self.column(index)).collect::<Result<_, _>>()?;
        let sections: Vec<_> = columns.iter().map(|column| column.section.clone()).collect();
        self.container().verify_extents(&sections)?;
        let steps = column_count as u64 * self.row_groups().len() as u64;
        let done = std::sync::atomic::AtomicU64::new(0);
        let counted: Vec<(u64, u64)> = columns
            .par_iter()
            .map(|column| {
                let counts = self.verify_blocks(column)?;
                // A column of its own, whose decoded dictionaries go when it is proven.
                let column = &LoadedColumn::new(column.node.clone(), column.section.clone())?;
                for (row_group, _, rows) in self.row_group_starts() {
                    self.verify_chunk(column, row_group, rows)?;
                    progress(done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1, steps);
                }
                self.verify_dictionaries(column)?;
                Ok(counts)
            })
            .collect::<Result<_, TableError>>()?;
        Ok(Verified {
            row_count: self.row_count(),
            block_count: counted.iter().map(|(blocks, _)| blocks).sum(),
            tile_count: counted.iter().map(|(_, tiles)| tiles).sum(),
            file_bytes: self.container().file_bytes(),
        })
    }

    /// Proves every block of a column, and counts blocks and tiles. Their order is that of their buffer.
    fn verify_blocks(&self, column: &LoadedColumn) -> Result<(u64, u64), TableError> {
        let (mut block_count, mut tile_count) = (0, 0);
        let orders = buffer_orders(column);
        for ((buffer_index, entry), order) in (0_u32..).zip(&column.section.buffers).zip(orders) {
            for (block_index, block) in (0_u32..).zip(column.section.buffer_blocks(entry)) {
                let failed = |source| block_error(column, buffer_index, entry, source);
                let bytes = self
                    .container()
                    .block(block)
                    .map_err(|source| failed(BufferError::Read { block_index, source }))?;
                let tiles = verify_block(bytes.as_ref(), self.registry(), order)
                    .map_err(|source| failed(BufferError::Block { block_index, source }))?;
                block_count += 1;
                tile_count += u64::from(tiles);
            }
        }
        Ok((block_count, tile_count))
    }

    /// Decodes a column's row group, some rows at once, and compares the counts and statistics of all its nodes with the values.
    fn verify_chunk(&self, column: &LoadedColumn, row_group: u32, rows: u64) -> Result<(), TableError> {
        let nodes = column.node.preorder();
        let schema = Arc::new(Schema::new(vec![column.node.field.clone()]));
        let mut totals = vec![Totals::default(); nodes.len()];
        // Columns are proven in parallel, and what is decoded is collected a second time for its statistics.
        let memory = ReadOptions::default().memory_bytes / 2;
        let share = (memory / rayon::current_num_threads() as u64).max(LEAST_SHARE);
        let mut window = rows.min((share / 4 / arrow_bytes_per_row(column, row_group, rows)).max(1));
        let mut start = 0;
        while start < rows {
            let budget = Budget::new(if window == 1 { memory } else { share });
            let reader = ChunkReader {
                container: self.container(),
                registry: self.registry(),
                column,
                row_group,
                budget: &budget,
                memory: self.memory(),
            };
            let end = rows.min(start + window);
            match reader.read(&[start..end], rows) {
                Err(error) if error.wants_fewer_rows() && window > 1 => window = window.div_ceil(4),
                Err(error) => return Err(error),
                Ok(array) => {
                    batch(&schema, vec![array.clone()], array.len())?;
                    let mut builder = NodeBuilder::new(&column.node, &mut |_| Coding::Direct);
                    builder.append(&column.node, &array)?;
                    add(&column.node, &builder, &mut totals);
                    start = end;
                }
            }
        }
        for (node, totals) in nodes.into_iter().zip(&totals) {
            let Some(chunk) = column.section.node_chunk(row_group, node.index) else { continue };
            if let Some(what) = totals.lie(chunk, column.section.statistics(chunk)) {
                let reason = format!("its {what} in the file is not that of the values");
                let place = format!("row group {row_group}");
                return Err(TableError::Values { column: node.path.clone(), place, reason });
            }
        }
        Ok(())
    }

    fn verify_dictionaries(&self, column: &LoadedColumn) -> Result<(), TableError> {
        let nodes = column.node.preorder();
        for (index, entry) in (0_u32..).zip(&column.section.dictionaries) {
            let node = usize::try_from(entry.node.get()).ok().and_then(|index| nodes.get(index));
            let Some(node) = node else { continue };
            let budget = Budget::new(ReadOptions::default().memory_bytes);
            let reader = ChunkReader {
                container: self.container(),
                registry: self.registry(),
                column,
                row_group: 0,
                budget: &budget,
                memory: self.memory(),
            };
            reader.check_dictionary_order(node, index)?;
        }
        Ok(())
    }
}

/// Memory that a column's rows may take at least, however many columns are proven at once.
const LEAST_SHARE: u64 = 16 << 20;

/// Arrow bytes of a row of a column in a row group, as the file reports them; at least 1.
fn arrow_bytes_per_row(column: &LoadedColumn, row_group: u32, rows: u64) -> u64 {
    let chunks = (0..column.section.node_count).filter_map(|node| column.section.node_chunk(row_group, node));
    let bytes = chunks.fold(0_u64, |sum, chunk| sum.saturating_add(chunk.arrow_bytes.get()));
    (bytes / rows.max(1)).max(1)
}

/// What the values of a node in one row group add up to.
#[derive(Debug, Clone, Default)]
struct Totals {
    slot_count: u64,
    null_count: u64,
    nan_count: u64,
    extremes: Extremes,
}

/// Smallest and largest of the values so far, as the file stores them where they are short enough.
#[derive(Debug, Clone, Default)]
enum Extremes {
    /// There was no value.
    #[default]
    None,
    Known(Vec<u8>, Vec<u8>),
    /// The type has none.
    Unknown,
}

/// Adds what `builder` has collected of `node` and all below it; `totals` are in preorder.
fn add(node: &Node, builder: &NodeBuilder, totals: &mut [Totals]) {
    if let Some(totals) = usize::try_from(node.index).ok().and_then(|index| totals.get_mut(index)) {
        totals.add(node, builder);
    }
    for (child, builder) in node.children.iter().zip(&builder.children) {
        add(child, builder, totals);
    }
}

impl Totals {
    fn add(&mut self, node: &Node, builder: &NodeBuilder) {
        self.slot_count += builder.slot_count;
        self.null_count += builder.null_count;
        self.nan_count += builder.nan_count;
        if builder.slot_count == builder.null_count + builder.nan_count {
            return;
        }
        self.extremes = match (std::mem::take(&mut self.extremes), value_extremes(node, builder)) {
            (Extremes::None, Some((min, max))) => Extremes::Known(min, max),
            (Extremes::Known(low, high), Some((min, max))) => Extremes::Known(
                if compare(node, &min, &low).is_lt() { min } else { low },
                if compare(node, &max, &high).is_gt() { max } else { high },
            ),
            _ => Extremes::Unknown,
        };
    }

    /// Which count or statistic of a chunk is not that of the values, if one is not.
    fn lie(&self, chunk: &NodeChunk, stored: Option<(&[u8], &[u8])>) -> Option<&'static str> {
        if self.slot_count != chunk.slot_count.get() {
            return Some("slot_count");
        }
        if self.null_count != chunk.null_count.get() {
            return Some("null_count");
        }
        if self.nan_count != chunk.nan_count.get() {
            return Some("nan_count");
        }
        match (stored, &self.extremes) {
            (None, _) => None,
            (Some(_), Extremes::Known(min, max)) if !are_short(min, max) => Some("statistics"),
            (Some((min, _)), Extremes::Known(true_min, _)) if min != true_min => Some("min"),
            (Some((_, max)), Extremes::Known(_, true_max)) if max != true_max => Some("max"),
            (Some(_), Extremes::Known(..)) => None,
            (Some(_), Extremes::None | Extremes::Unknown) => Some("statistics"),
        }
    }
}

/// The order that the blocks of each buffer must have: SPEC.md section 6.
fn buffer_orders(column: &LoadedColumn) -> Vec<Order> {
    let by_role =
        |entry: &BufferEntry| if entry.kind == Kind::Bytes as u8 { Order::None } else { Order::Unsigned };
    let mut orders: Vec<Order> = column.section.buffers.iter().map(by_role).collect();
    let nodes = column.node.preorder();
    for (index, chunk) in column.section.node_chunks.iter().enumerate() {
        let Some(Shape::Limbs(limbs)) = nodes.get(index % nodes.len().max(1)).map(|node| &node.shape) else {
            continue;
        };
        let first = usize::try_from(chunk.first_buffer.get()).unwrap_or(usize::MAX);
        let places =
            orders.iter_mut().zip(&column.section.buffers).skip(first).take(chunk.buffer_count.get().into());
        for (order, entry) in places.filter(|(_, entry)| entry.role == Role::Values as u8) {
            *order = limbs.get(usize::from(entry.limb)).map_or(*order, |limb| limb.order);
        }
    }
    orders
}

/// Proves a block, its tiles and their statistics; returns the number of tiles.
fn verify_block(bytes: &[u8], registry: &codec_core::Registry, order: Order) -> Result<u32, BlockError> {
    let block = Block::parse(bytes, registry)?;
    if block.view().order() != order {
        let (found, expected) = (block.view().order() as u64, order as u64);
        return Err(BlockError::Unexpected { field: "order", found, expected });
    }
    let checked = block.check()?;
    if block.view().order() == Order::None {
        // Nothing claims anything about the values; decoding them is the column's proof.
        return Ok(block.view().tile_count());
    }
    match block.layout().value_width {
        8 => verify_ranges::<u8>(checked.block())?,
        16 => verify_ranges::<u16>(checked.block())?,
        32 => verify_ranges::<u32>(checked.block())?,
        _ => verify_ranges::<u64>(checked.block())?,
    }
    Ok(block.view().tile_count())
}

/// Compares the ranges of tiles and block with the values: a tile at a time, so that what a block claims to hold is never in memory at once.
fn verify_ranges<V: Value>(block: &Block<'_>) -> Result<(), BlockError> {
    let (view, order) = (block.view(), block.view().order());
    let mut values = vec![V::default(); block.tile_size()];
    let mut whole: Option<(V, V)> = view.constant().map(|constant| range(&[V::from_u64(constant)], order));
    for tile_index in 0..view.tile_count() {
        let count = usize::try_from(view.tile_value_count(tile_index)).unwrap_or_default();
        let tile = values.get_mut(..count).unwrap_or_default();
        block.decode_tile(tile_index, tile)?;
        let found = range(tile, order);
        compare_range(found, view.tile_range(tile_index).unwrap_or_default())?;
        whole = Some(whole.map_or(found, |whole| union(whole, found, order)));
    }
    compare_range(whole.unwrap_or_default(), (view.header.min.get(), view.header.max.get()))
}

fn compare_range<V: Value>(
    (min, max): (V, V),
    (stored_min, stored_max): (u64, u64),
) -> Result<(), BlockError> {
    for (field, found, expected) in [("min", stored_min, min.to_u64()), ("max", stored_max, max.to_u64())] {
        if found != expected {
            return Err(BlockError::Unexpected { field, found, expected });
        }
    }
    Ok(())
}

fn block_error(
    column: &LoadedColumn,
    buffer_index: u32,
    entry: &BufferEntry,
    source: BufferError<container::ContainerError>,
) -> TableError {
    let role = Role::parse(entry.role).map_or("buffer", role_name);
    let (path, place) = owner(column, buffer_index);
    TableError::Buffer { column: path, place, role, source: Box::new(source) }
}

/// The node that a buffer belongs to, and its row group, or that it is the dictionary's.
fn owner(column: &LoadedColumn, buffer_index: u32) -> (String, String) {
    let section = &column.section;
    let holds = |first: u32, count: u32| (first..first.saturating_add(count)).contains(&buffer_index);
    let nodes = column.node.preorder();
    let path = |index: usize| nodes.get(index).map_or(&column.node, |node| node).path.clone();
    let chunk = section
        .node_chunks
        .iter()
        .position(|chunk| holds(chunk.first_buffer.get(), chunk.buffer_count.get().into()));
    if let Some(index) = chunk {
        let row_group = index / nodes.len().max(1);
        return (path(index % nodes.len().max(1)), format!("row group {row_group}"));
    }
    let dictionary = section
        .dictionaries
        .iter()
        .find(|dictionary| holds(dictionary.first_buffer.get(), dictionary.buffer_count.get()));
    match dictionary {
        Some(dictionary) => {
            let node = usize::try_from(dictionary.node.get()).unwrap_or(usize::MAX);
            (path(node), "dictionary".to_owned())
        }
        None => (column.node.path.clone(), "no row group".to_owned()),
    }
}
