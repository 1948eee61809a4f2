//! One row group as a pipeline needs it: the blocks of its inputs, proven, and which tiles need not be looked at.

use codec_core::{Block, BlockError, Kind, Order};
use container::BlockBytes;

use super::lanes::{Lanes, Sign, with_lanes};
use super::rows::TILE;
use super::stage::Stage;
use crate::QueryError;
use crate::plan::Input;
use crate::scan::{InputBlocks, read_blocks};

/// The bytes of a row group's inputs, read but not proven.
#[derive(Debug)]
pub struct RowGroupBytes<'t> {
    /// Index of the row group.
    pub row_group: u32,
    /// Its rows.
    pub rows: u64,
    /// Of each input; `None` where nothing is stored because all is valid, or where nothing was read yet.
    inputs: Vec<Option<InputBlocks<'t>>>,
}

impl<'t> RowGroupBytes<'t> {
    /// A row group of which nothing is read yet.
    pub fn new(stage: &Stage<'t>, row_group: u32, rows: u64) -> Self {
        Self { row_group, rows, inputs: stage.pipeline.inputs.iter().map(|_| None).collect() }
    }

    /// Reads the blocks of those inputs that `wanted` holds for.
    ///
    /// # Errors
    /// As [`read_blocks`].
    pub fn read(&mut self, stage: &Stage<'t>, wanted: impl Fn(usize) -> bool) -> Result<(), QueryError> {
        for (index, (input, blocks)) in stage.pipeline.inputs.iter().zip(&mut self.inputs).enumerate() {
            if wanted(index) {
                *blocks = read_blocks(stage.name, stage.table, input, self.row_group)?;
            }
        }
        Ok(())
    }

    /// Length of what was read.
    pub fn bytes_read(&self) -> u64 {
        let blocks = self.inputs.iter().flatten().flat_map(|input| &input.blocks);
        blocks.map(|block| block.as_ref().len() as u64).sum()
    }

    /// Proves headers and tables of what was read.
    ///
    /// # Errors
    /// A damaged block, blocks that do not hold the row group's rows, or tiles whose borders differ.
    pub fn prove<'b>(&'b self, stage: &Stage<'_>) -> Result<RowGroup<'b>, QueryError> {
        let mut inputs = Vec::with_capacity(self.inputs.len());
        let mut tile_size = None;
        for (input, blocks) in stage.pipeline.inputs.iter().zip(&self.inputs) {
            let Some(blocks) = blocks else {
                inputs.push(None);
                continue;
            };
            let proven = ProvenInput::prove(stage, input, self, blocks)?;
            if *tile_size.get_or_insert(proven.tile_size) != proven.tile_size {
                return Err(QueryError::unsupported(format!(
                    "columns with other tiles than their neighbours have, as {}.{}",
                    stage.name, input.name
                )));
            }
            inputs.push(Some(proven));
        }
        let tile_size = tile_size.unwrap_or(TILE);
        Ok(RowGroup { row_group: self.row_group, rows: self.rows, tile_size, inputs })
    }
}

/// A row group whose blocks are proven, but for their tiles.
#[derive(Debug)]
pub struct RowGroup<'b> {
    row_group: u32,
    rows: u64,
    tile_size: usize,
    inputs: Vec<Option<ProvenInput<'b>>>,
}

/// The blocks of one input.
#[derive(Debug)]
struct ProvenInput<'b> {
    blocks: Vec<Block<'b>>,
    value_width: u8,
    tile_size: usize,
    tiles_per_block: u64,
}

impl<'b> ProvenInput<'b> {
    fn prove(
        stage: &Stage<'_>,
        input: &Input,
        bytes: &RowGroupBytes<'_>,
        input_blocks: &'b InputBlocks<'_>,
    ) -> Result<Self, QueryError> {
        if input_blocks.layout.kind != Kind::Values {
            return Err(QueryError::unsupported(format!(
                "{}.{}, which has no values",
                stage.name, input.name
            )));
        }
        let mut blocks = Vec::with_capacity(input_blocks.blocks.len());
        let mut rows_left = bytes.rows;
        for (block_index, block) in (0_u32..).zip(&input_blocks.blocks) {
            let values = rows_left.min(input_blocks.values_per_block.into());
            let block = prove_block(stage, input_blocks, block, values)
                .map_err(|source| stage.block_error(input, bytes.row_group, block_index, source))?;
            rows_left -= values;
            blocks.push(block);
        }
        if rows_left > 0 || blocks.is_empty() {
            let (found, expected) = (bytes.rows - rows_left, bytes.rows);
            let source = BlockError::Unexpected { field: "value_count", found, expected };
            let block_index = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
            return Err(stage.block_error(input, bytes.row_group, block_index, source));
        }
        let tile_size = blocks.first().map_or(TILE, Block::tile_size);
        let tiles_per_block = u64::from(input_blocks.values_per_block) / tile_size as u64;
        Ok(Self { blocks, value_width: input_blocks.layout.value_width, tile_size, tiles_per_block })
    }

    /// The block that holds the row group's tile `tile_index`, and the tile's index in it.
    fn locate(&self, tile_index: u64) -> Option<(u32, u32, &Block<'b>)> {
        let block_index = tile_index.checked_div(self.tiles_per_block)?;
        let block = self.blocks.get(usize::try_from(block_index).ok()?)?;
        let within = u32::try_from(tile_index % self.tiles_per_block).ok()?;
        Some((u32::try_from(block_index).ok()?, within, block))
    }
}

fn prove_block<'b>(
    stage: &Stage<'_>,
    input: &InputBlocks<'_>,
    bytes: &'b BlockBytes<'_>,
    values: u64,
) -> Result<Block<'b>, BlockError> {
    let block = Block::parse(bytes.as_ref(), stage.table.registry())?;
    let unexpected = |field, found, expected| Err(BlockError::Unexpected { field, found, expected });
    if block.layout() != input.layout {
        let (found, expected) = (block.layout().value_width.into(), input.layout.value_width.into());
        return unexpected("kind and value_width", found, expected);
    }
    if block.value_count() as u64 != values {
        return unexpected("value_count", block.value_count() as u64, values);
    }
    // Only the last block may end within a tile, and no tile is larger than the buffers.
    let tile_size = block.view().tile_size();
    if !input.values_per_block.is_multiple_of(tile_size) || block.tile_size() > TILE {
        return unexpected("tile_size", tile_size.into(), TILE as u64);
    }
    Ok(block)
}

impl RowGroup<'_> {
    /// Number of tiles.
    pub fn tile_count(&self) -> u64 {
        self.rows.div_ceil(self.tile_size as u64)
    }

    /// Whether statistics say that no row of the tile passes `tests`.
    pub fn is_excluded(&self, stage: &Stage<'_>, tests: &[(usize, i64, i64)], tile_index: u64) -> bool {
        tests.iter().any(|&(input, low, high)| {
            let signed = stage.pipeline.inputs.get(input).is_some_and(|input| input.signed);
            let range = self.tile_range(input, signed, tile_index);
            range.is_some_and(|(min, max)| max < low || min > high)
        })
    }

    /// Smallest and largest value of the tile, where statistics say.
    fn tile_range(&self, input: usize, signed: bool, tile_index: u64) -> Option<(i64, i64)> {
        let input = self.inputs.get(input)?.as_ref()?;
        let (_, tile, block) = input.locate(tile_index)?;
        let view = block.view();
        let (min, max) = match view.constant() {
            Some(constant) => (constant, constant),
            None if view.order() == (if signed { Order::Signed } else { Order::Unsigned }) => {
                view.tile_range(tile)?
            }
            None => return None,
        };
        let sign = Sign::new(signed, input.value_width);
        let (min, max) = (sign.widen(min), sign.widen(max));
        // Unsigned values from 2^63 on are taken as negative ones.
        (min <= max).then_some((min, max))
    }
}

/// A tile of a row group: of all its inputs.
#[derive(Debug, Clone, Copy)]
pub struct Tile<'b> {
    /// The row group.
    pub row_group: &'b RowGroup<'b>,
    /// Index of the tile in it.
    pub index: u64,
}

impl Tile<'_> {
    /// Its rows, at most [`TILE`].
    pub fn rows(self) -> usize {
        let RowGroup { rows, tile_size, .. } = *self.row_group;
        let start = self.index.saturating_mul(tile_size as u64);
        usize::try_from(rows.saturating_sub(start)).map_or(tile_size, |rows| rows.min(tile_size))
    }

    /// Decodes input `input` into `lanes`, which get the width of the stored values.
    ///
    /// # Errors
    /// The tile is damaged.
    pub fn decode(self, stage: &Stage<'_>, input: usize, lanes: &mut Lanes) -> Result<(), QueryError> {
        let Some(Some(proven)) = self.row_group.inputs.get(input) else {
            // Nothing is stored: all is valid.
            lanes.resize(8);
            with_lanes!(lanes, values => values.fill(1));
            return Ok(());
        };
        lanes.resize(proven.value_width);
        let rows = self.rows();
        let (block_index, decoded) = match proven.locate(self.index) {
            Some((block_index, tile_index, block)) => (
                block_index,
                with_lanes!(lanes, values => {
                    block.decode_tile(tile_index, values.get_mut(..rows).unwrap_or_default())
                }),
            ),
            None => (0, Err(BlockError::OutOfRange { index: self.index, value_count: self.row_group.rows })),
        };
        decoded.map_err(|source| match stage.pipeline.inputs.get(input) {
            Some(input) => stage.block_error(input, self.row_group.row_group, block_index, source),
            None => stage.malformed("an input"),
        })
    }
}
