//! Columns on their way to a device: blocks read, proven, and made of whole tiles; and which tiles a query can leave out.

use std::ops::Range;

use format_spec::BlockHeader;
use gpu_decode::GpuError;
use gpu_decode::tiles::{Recode, TileBlock, Wanted, WholeTiles};
use rayon::prelude::*;
use zerocopy::FromBytes;

use crate::QueryError;
use crate::plan::{Buffer, Input, Pipeline};
use crate::scan::{InputBlocks, read_blocks};
use arrow_io::table::Table;

/// The blocks of one input, read but not yet proven.
#[derive(Debug)]
pub struct ReadColumn<'t> {
    table: String,
    input: Input,
    /// Of each row group: its number, its rows, and its blocks where it has any.
    row_groups: Vec<(u32, u64, Option<InputBlocks<'t>>)>,
}

impl<'t> ReadColumn<'t> {
    /// Reads the blocks of `input` in `row_groups` of `table`, which queries call `name`.
    ///
    /// # Errors
    /// The blocks cannot be read, or the column is not stored as the plan says.
    pub fn read(
        name: &str,
        table: &'t Table,
        input: &Input,
        row_groups: Range<usize>,
    ) -> Result<Self, QueryError> {
        let rows: Vec<(u32, u64)> = (0_u32..).zip(table.row_groups().iter().copied()).collect();
        let rows = rows.get(row_groups).unwrap_or_default();
        let read = |&(row_group, rows): &(u32, u64)| {
            Ok((row_group, rows, read_blocks(name, table, input, row_group)?))
        };
        let row_groups = rows.par_iter().map(read).collect::<Result<_, QueryError>>()?;
        Ok(Self { table: name.to_owned(), input: input.clone(), row_groups })
    }

    /// Values a tile, as the first block says; `None` where no block says.
    #[must_use]
    pub fn tile_size(&self) -> Option<u32> {
        let blocks = self.row_groups.iter().filter_map(|(_, _, blocks)| blocks.as_ref());
        let first = blocks.flat_map(|blocks| &blocks.blocks).next()?;
        BlockHeader::ref_from_prefix(first.as_ref()).ok().map(|(header, _)| header.tile_size.get())
    }

    /// The column in whole tiles of `tile_size`, with the blocks encoded again that `recode` says.
    ///
    /// # Errors
    /// A block that is wrong, or one that the plan does not expect: other tiles, wider values, another number of rows.
    pub fn tiles(
        &self,
        tile_size: u32,
        recode: Recode,
        registry: &codec_core::Registry,
    ) -> Result<WholeTiles<'_>, QueryError> {
        let wanted =
            Wanted { value_width: self.input.value_width, signed: self.input.signed, tile_size, recode };
        let blocks = self.row_groups.par_iter().map(|(row_group, rows, blocks)| {
            let Some(blocks) = blocks else { return self.absent(*row_group, *rows, wanted) };
            let prove = |(block_index, bytes)| self.prove(*row_group, block_index, bytes, wanted, registry);
            let blocks: Vec<(u32, &[u8])> = (0..).zip(blocks.blocks.iter().map(AsRef::as_ref)).collect();
            let blocks: Vec<TileBlock<'_>> = blocks.into_par_iter().map(prove).collect::<Result<_, _>>()?;
            self.check_borders(*row_group, *rows, tile_size, &blocks)?;
            Ok(blocks)
        });
        let blocks: Vec<Vec<TileBlock<'_>>> = blocks.collect::<Result<_, QueryError>>()?;
        Ok(WholeTiles::new(wanted, blocks.into_iter().flatten().collect())?)
    }

    fn prove<'b>(
        &self,
        row_group: u32,
        block_index: u32,
        bytes: &'b [u8],
        wanted: Wanted,
        registry: &codec_core::Registry,
    ) -> Result<TileBlock<'b>, QueryError> {
        TileBlock::new(bytes, wanted, registry).map_err(|error| self.failed(row_group, block_index, error))
    }

    /// A row group that does not store the buffer: every value is valid, or there is none.
    fn absent(
        &self,
        row_group: u32,
        rows: u64,
        wanted: Wanted,
    ) -> Result<Vec<TileBlock<'static>>, QueryError> {
        match self.input.buffer {
            _ if rows == 0 => Ok(Vec::new()),
            Buffer::Validity => Ok(vec![TileBlock::constant(1, rows, wanted)]),
            Buffer::Values => Err(QueryError::unsupported(format!(
                "{}.{} as it is stored in row group {row_group}",
                self.table, self.input.name
            ))),
        }
    }

    /// Tiles of all columns have the same borders: a row group's tiles are whole but for its last.
    fn check_borders(
        &self,
        row_group: u32,
        rows: u64,
        tile_size: u32,
        blocks: &[TileBlock<'_>],
    ) -> Result<(), QueryError> {
        let found: u64 = blocks.iter().map(TileBlock::value_count).sum();
        let before_last = blocks.split_last().map_or(blocks, |(_, before)| before);
        let whole = before_last.iter().all(|block| block.value_count().is_multiple_of(tile_size.into()));
        if found == rows && whole {
            return Ok(());
        }
        let (table, column) = (self.table.clone(), self.input.name.clone());
        let field = "value_count";
        let source = codec_core::BlockError::Unexpected { field, found, expected: rows };
        Err(QueryError::Block { table, column, row_group, block_index: 0, source: Box::new(source) })
    }

    fn failed(&self, row_group: u32, block_index: u32, error: GpuError) -> QueryError {
        let (table, column) = (self.table.clone(), self.input.name.clone());
        match error {
            GpuError::Block(source) => {
                QueryError::Block { table, column, row_group, block_index, source: Box::new(source) }
            }
            GpuError::Mismatch { field, found, expected, .. } => QueryError::unsupported(format!(
                "{table}.{column}, whose {field} is {found} in row group {row_group} and {expected} elsewhere"
            )),
            other => other.into(),
        }
    }
}

/// Values a tile of the pipeline whose inputs these are.
#[must_use]
pub fn tile_size(columns: &[ReadColumn<'_>]) -> u32 {
    columns.iter().find_map(ReadColumn::tile_size).unwrap_or(1024)
}

/// The ranges of a column's tiles where a query may leave tiles out by them: where tiles are much narrower than the column.
#[must_use]
pub fn useful_ranges(tiles: &WholeTiles<'_>) -> Option<Vec<(i64, i64)>> {
    let ranges = tiles.ranges();
    let span = |(min, max): (i64, i64)| i128::from(max) - i128::from(min);
    let whole = ranges.iter().copied().reduce(|left, right| (left.0.min(right.0), left.1.max(right.1)))?;
    let sum: i128 = ranges.iter().copied().map(span).sum();
    let average = sum / i128::try_from(ranges.len()).ok()?;
    (ranges.len() > 1 && average * 4 < span(whole)).then(|| ranges.to_vec())
}

/// The tiles of which a row may pass all of the pipeline's tests; `None` where these are all. `ranges` are those of the inputs' tiles, where they are known.
#[must_use]
pub fn tile_list(pipeline: &Pipeline, tile_count: u32, ranges: &[Option<&[(i64, i64)]>]) -> Option<Vec<u32>> {
    let tests: Vec<_> = pipeline
        .row_tests()
        .into_iter()
        .filter_map(|(input, low, high)| Some((ranges.get(input).copied().flatten()?, low, high)))
        .collect();
    if tests.is_empty() {
        return None;
    }
    let passes = |tile: &u32| {
        let tile = usize::try_from(*tile).unwrap_or(usize::MAX);
        tests
            .iter()
            .all(|(ranges, low, high)| ranges.get(tile).is_none_or(|(min, max)| max >= low && min <= high))
    };
    let list: Vec<u32> = (0..tile_count).filter(passes).collect();
    (list.len() < usize::try_from(tile_count).unwrap_or(0)).then_some(list)
}
