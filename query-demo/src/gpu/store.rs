//! The columns that are on devices, kept for the next query.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_io::table::Table;
use gpu_decode::tiles::Recode;
use gpu_decode::{Device, DeviceColumn, GpuError};

use crate::QueryError;
use crate::gpu::columns::{ReadColumn, useful_ranges};
use crate::plan::{Buffer, Input, Pipeline};

/// A column on a device.
#[derive(Debug)]
pub struct QueryColumn {
    /// Its blocks, in which every tile decodes as a whole one.
    pub column: DeviceColumn,
    /// Smallest and largest value of each tile, where a query may leave tiles out by them.
    pub ranges: Option<Vec<(i64, i64)>>,
    /// Number of tiles.
    pub tile_count: u32,
    /// Keeps the table's address from being another's.
    _table: Arc<Table>,
}

/// Which buffer of which rows, encoded how, on which device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    device: usize,
    table: usize,
    column: usize,
    buffer: Buffer,
    value_width: u8,
    row_groups: Range<usize>,
    recode: u32,
}

/// The columns on all devices.
#[derive(Debug, Default)]
pub struct Store {
    columns: Mutex<HashMap<Key, Arc<QueryColumn>>>,
}

/// Part of a table, on its way to a device.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The device.
    pub device: &'a Device,
    /// The table's name, for messages.
    pub name: &'a str,
    /// The table.
    pub table: &'a Arc<Table>,
    /// First row group.
    pub first_row_group: usize,
    /// The row group behind the last.
    pub row_group_end: usize,
    /// Which blocks are encoded again.
    pub recode: Recode,
}

impl Store {
    /// The columns of the pipeline's inputs in their order: those that are not there yet are uploaded.
    ///
    /// # Errors
    /// Blocks that cannot be read or are wrong, columns whose tiles differ, or too little device memory.
    pub fn columns(&self, part: Part<'_>, pipeline: &Pipeline) -> Result<Vec<Arc<QueryColumn>>, QueryError> {
        let mut columns: Vec<Option<Arc<QueryColumn>>> =
            pipeline.inputs.iter().map(|input| self.find(part, input)).collect();
        let mut tile_size =
            columns.iter().flatten().map(|column| column.column.column_type().tile_size).next();
        // A validity that no row group stores has no tiles of its own: it gets those of the values.
        for buffer in [Buffer::Values, Buffer::Validity] {
            for (column, input) in columns.iter_mut().zip(&pipeline.inputs) {
                if column.is_some() || input.buffer != buffer {
                    continue;
                }
                // It may have been uploaded for another input of this pipeline.
                let uploaded = match self.find(part, input) {
                    Some(found) => found,
                    None => self.upload(part, input, tile_size)?,
                };
                tile_size = tile_size.or(Some(uploaded.column.column_type().tile_size));
                *column = Some(uploaded);
            }
        }
        let columns: Vec<Arc<QueryColumn>> = columns.into_iter().flatten().collect();
        let first = columns.first().map(|column| (column.column.column_type().tile_size, column.tile_count));
        for (column, input) in columns.iter().zip(&pipeline.inputs) {
            if first.is_some_and(|first| first != (column.column.column_type().tile_size, column.tile_count))
            {
                return Err(QueryError::unsupported(format!(
                    "{}.{}, whose tiles are not those of the table's other columns",
                    part.name, input.name
                )));
            }
        }
        Ok(columns)
    }

    fn key(part: Part<'_>, input: &Input) -> Key {
        Key {
            device: part.device.info().ordinal,
            table: Arc::as_ptr(part.table).addr(),
            column: input.column,
            buffer: input.buffer,
            value_width: input.value_width,
            row_groups: part.first_row_group..part.row_group_end,
            recode: part.recode.key(),
        }
    }

    fn find(&self, part: Part<'_>, input: &Input) -> Option<Arc<QueryColumn>> {
        self.known().get(&Self::key(part, input)).cloned()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<QueryColumn>>> {
        self.columns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn upload(
        &self,
        part: Part<'_>,
        input: &Input,
        tile_size: Option<u32>,
    ) -> Result<Arc<QueryColumn>, QueryError> {
        let row_groups = part.first_row_group..part.row_group_end;
        let read = ReadColumn::read(part.name, part.table, input, row_groups)?;
        let tile_size = tile_size.or_else(|| read.tile_size()).unwrap_or(1024);
        let tiles = read.tiles(tile_size, part.recode, part.table.registry())?;
        let column = match DeviceColumn::upload_tiles(part.device, &tiles) {
            Err(GpuError::OutOfMemory { .. }) => {
                self.drop_unused(part.device);
                DeviceColumn::upload_tiles(part.device, &tiles)?
            }
            uploaded => uploaded?,
        };
        let column = Arc::new(QueryColumn {
            column,
            ranges: useful_ranges(&tiles),
            tile_count: u32::try_from(tiles.tiles().len()).unwrap_or(u32::MAX),
            _table: Arc::clone(part.table),
        });
        self.known().insert(Self::key(part, input), Arc::clone(&column));
        Ok(column)
    }

    /// Frees the columns of `device` that no query holds.
    pub fn drop_unused(&self, device: &Device) {
        let ordinal = device.info().ordinal;
        self.known().retain(|key, column| key.device != ordinal || Arc::strong_count(column) > 1);
    }
}
