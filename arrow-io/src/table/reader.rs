//! A `.cb2t` file opened as a table.

use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow::array::{
    ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array, new_empty_array,
};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use codec_core::Registry;
use container::{ContainerReader, Source};
use format_spec::NO_DICTIONARY;
use rayon::prelude::*;

use super::writer::no_column;
use crate::columns::gather::{joined_slots, take_slots};
use crate::columns::read::{Budget, ChunkReader, LoadedColumn, Memory};
use crate::columns::schema::decode_schema;
use crate::columns::tree::Node;
use crate::error::TableError;

/// An open table. Opening reads the schema and where the columns are; a column's own metadata is read when the column is.
#[derive(Debug)]
pub struct Table {
    container: ContainerReader,
    registry: &'static Registry,
    schema: SchemaRef,
    /// Boxed: a wide table has thousands, of which most are never asked for.
    columns: Vec<OnceLock<Box<LoadedColumn>>>,
    /// The first row behind each row group: a file can have a million of them, and none may cost a search through all.
    row_group_ends: Vec<u64>,
    memory: Arc<Memory>,
}

/// What to read of a table, and how.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The columns by index, in the order wanted; `None` for all.
    pub columns: Option<Vec<usize>>,
    /// The rows; `None` for all.
    pub rows: Option<Range<u64>>,
    /// Most rows of a batch.
    pub batch_rows: usize,
    /// Bytes that decoding may take at once. Where it is too little for many rows, fewer are decoded at once; where it is too little for one, that is an error.
    pub memory_bytes: u64,
}

impl Default for ReadOptions {
    /// Everything, in batches of 65,536 rows, within 512 MiB.
    fn default() -> Self {
        Self { columns: None, rows: None, batch_rows: 65_536, memory_bytes: 512 << 20 }
    }
}

/// Arrow bytes that are decoded at once for each thread, where nothing asks for less. A window's memory is used again for the next where the caller drops its batches; fresh
/// memory of a whole row group cost more than decoding into it.
const WINDOW_BYTES: u64 = 8 << 20;

impl Table {
    /// Opens a file; blocks are read when needed and copied before they are proven, so the file may change meanwhile.
    ///
    /// # Errors
    /// The file cannot be read, or is no cb2t file of this version.
    pub fn open(path: &Path, registry: &'static Registry) -> Result<Self, TableError> {
        Self::from_source(Source::open(path)?, registry)
    }

    /// Opens a table wherever its bytes come from.
    ///
    /// # Errors
    /// As [`Table::open`].
    pub fn from_source(source: Source, registry: &'static Registry) -> Result<Self, TableError> {
        let container = ContainerReader::open(source)?;
        let schema = decode_schema(container.schema())?;
        let (found, expected) = (container.column_count(), schema.fields().len());
        if found != expected {
            let reason = format!("it has {expected} columns, the footer {found}");
            return Err(TableError::Schema { reason });
        }
        let columns = (0..found).map(|_| OnceLock::new()).collect();
        // The footer is proven: the sum does not overflow.
        let row_group_ends = container
            .row_groups()
            .iter()
            .scan(0_u64, |end, rows| {
                *end = end.saturating_add(*rows);
                Some(*end)
            })
            .collect();
        Ok(Self {
            container,
            registry,
            schema: Arc::new(schema),
            columns,
            row_group_ends,
            memory: Arc::default(),
        })
    }

    /// The schema, exactly as it was written.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows of the table.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.container.row_count()
    }

    /// Rows of each row group.
    #[must_use]
    pub fn row_groups(&self) -> &[u64] {
        self.container.row_groups()
    }

    /// The file as a container of blocks.
    #[must_use]
    pub fn container(&self) -> &ContainerReader {
        &self.container
    }

    /// The codecs that the table is read with.
    #[must_use]
    pub fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// The index of the column with this name.
    ///
    /// # Errors
    /// There is none; the message names those that there are.
    pub fn column_index(&self, name: &str) -> Result<usize, TableError> {
        self.schema.index_of(name).map_err(|_| no_column(&self.schema, name))
    }

    /// The metadata of column `index`, read when first asked for.
    ///
    /// # Errors
    /// There is no such column, or its section cannot be read or is damaged.
    pub fn column(&self, index: usize) -> Result<&LoadedColumn, TableError> {
        let (Some(cell), Some(field)) = (self.columns.get(index), self.schema.fields().get(index)) else {
            return Err(no_column(&self.schema, &format!("number {index}")));
        };
        if let Some(column) = cell.get() {
            return Ok(column);
        }
        let node = Node::column(field)?;
        let section = self
            .container
            .section(index)
            .map_err(|source| TableError::Section { column: field.name().clone(), source })?;
        let column = LoadedColumn::new(node, section)?;
        Ok(cell.get_or_init(|| Box::new(column)))
    }

    /// The entries of the dictionary of column `index`, in the order of their codes, as an array of the column's plain type. `None` unless every row group that has rows stores the
    /// column as codes.
    ///
    /// # Errors
    /// As [`Table::column`], or a dictionary that is damaged.
    pub fn dictionary(&self, index: usize) -> Result<Option<ArrayRef>, TableError> {
        let column = self.column(index)?;
        let mut found = None;
        for (row_group, _, rows) in self.row_group_starts() {
            let chunk = column.section.node_chunk(row_group, 0).filter(|_| rows > 0);
            match chunk.map(|chunk| chunk.dictionary.get()) {
                Some(NO_DICTIONARY) => return Ok(None),
                Some(_) if found.is_none() => found = Some(row_group),
                _ => {}
            }
        }
        let Some(row_group) = found else { return Ok(None) };
        let budget = &Budget::new(ReadOptions::default().memory_bytes);
        let (container, registry, memory) = (&self.container, self.registry, &self.memory);
        ChunkReader { container, registry, column, row_group, budget, memory }.column_dictionary().map(Some)
    }

    /// The batches of the rows and columns that `options` name, in order.
    ///
    /// # Errors
    /// A column or row that does not exist, or a column whose metadata is damaged.
    pub fn read(&self, options: &ReadOptions) -> Result<TableBatches<&Self>, TableError> {
        TableBatches::new(self, options)
    }

    /// As [`Table::read`], of a table that the batches own.
    ///
    /// # Errors
    /// As [`Table::read`].
    pub fn into_batches(self, options: &ReadOptions) -> Result<TableBatches<Box<Self>>, TableError> {
        TableBatches::new(Box::new(self), options)
    }

    /// As [`Table::read`], of a shared table.
    ///
    /// # Errors
    /// As [`Table::read`].
    pub fn shared_batches(
        self: &Arc<Self>,
        options: &ReadOptions,
    ) -> Result<TableBatches<Arc<Self>>, TableError> {
        TableBatches::new(Arc::clone(self), options)
    }

    /// The rows `indexes`, in that order, of the columns given (`None`: all). A row may be asked for more than once. Only the tiles that hold the rows are decoded.
    ///
    /// # Errors
    /// As [`Table::read`], or what is wrong with a block.
    pub fn take(&self, indexes: &[u64], columns: Option<Vec<usize>>) -> Result<RecordBatch, TableError> {
        let columns = columns.unwrap_or_else(|| (0..self.columns.len()).collect());
        let schema = self.projected(&columns)?;
        let mut ascending = indexes.to_vec();
        ascending.sort_unstable();
        ascending.dedup();
        if let Some(&row) = ascending.last().filter(|&&row| row >= self.row_count()) {
            return Err(TableError::NoRow { row, row_count: self.row_count() });
        }
        let budget = Budget::new(ReadOptions::default().memory_bytes);
        let mut batches = Vec::new();
        let mut rest = ascending.as_slice();
        for (row_group, start, rows) in self.row_group_starts() {
            let (mine, behind) = rest.split_at(rest.partition_point(|&row| row < start + rows));
            rest = behind;
            if !mine.is_empty() {
                let ranges = joined(mine.iter().map(|row| row - start));
                batches.push(self.decode(&schema, &columns, row_group, &ranges, &budget)?);
            }
        }
        // Every index is among the ascending ones.
        let places: UInt64Array =
            indexes.iter().map(|row| ascending.binary_search(row).unwrap_or_default() as u64).collect();
        let gather = |(index, field): (usize, &FieldRef)| {
            let arrays: Vec<ArrayRef> = batches.iter().map(|batch| batch.column(index).clone()).collect();
            joined_slots(&arrays)
                .and_then(|array| take_slots(&array, &places))
                .map_err(|source| TableError::Arrow { column: field.name().clone(), source })
        };
        let arrays = if batches.is_empty() {
            schema.fields().iter().map(|field| new_empty_array(field.data_type())).collect()
        } else {
            schema.fields().iter().enumerate().map(gather).collect::<Result<_, _>>()?
        };
        batch(&schema, arrays, indexes.len())
    }

    /// What large arrays are decoded into.
    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Index, first row and number of rows of each row group.
    pub(super) fn row_group_starts(&self) -> impl Iterator<Item = (u32, u64, u64)> + '_ {
        let groups = (0_u32..).zip(self.row_groups()).zip(&self.row_group_ends);
        groups.map(|((index, &rows), end)| (index, end - rows, rows))
    }

    /// Index, first row and number of rows of the row group that holds `row`.
    fn row_group_of(&self, row: u64) -> Option<(u32, u64, u64)> {
        let index = self.row_group_ends.partition_point(|&end| end <= row);
        let rows = *self.row_groups().get(index)?;
        // The footer counts row groups in 32 bits.
        Some((u32::try_from(index).ok()?, self.row_group_ends.get(index)? - rows, rows))
    }

    /// Decodes slots of one row group: columns in parallel.
    pub(super) fn decode(
        &self,
        schema: &SchemaRef,
        columns: &[usize],
        row_group: u32,
        ranges: &[Range<u64>],
        budget: &Budget,
    ) -> Result<RecordBatch, TableError> {
        let slot_count = usize::try_from(row_group).ok().and_then(|index| self.row_groups().get(index));
        let slot_count = slot_count.copied().unwrap_or_default();
        let decode = |&column: &usize| {
            let column = self.column(column)?;
            let reader = ChunkReader {
                container: &self.container,
                registry: self.registry,
                column,
                row_group,
                budget,
                memory: &self.memory,
            };
            reader.read(ranges, slot_count)
        };
        // One column needs no other thread.
        let arrays: Result<Vec<ArrayRef>, TableError> = match columns {
            [column] => decode(column).map(|array| vec![array]),
            columns => columns.par_iter().map(decode).collect(),
        };
        let length: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        batch(schema, arrays?, usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn projected(&self, columns: &[usize]) -> Result<SchemaRef, TableError> {
        let fields = columns.iter().map(|&index| {
            let field = self.schema.fields().get(index).cloned();
            field.ok_or_else(|| no_column(&self.schema, &format!("number {index}")))
        });
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        Ok(Arc::new(Schema::new_with_metadata(fields, self.schema.metadata().clone())))
    }

    /// Arrow bytes of a row of the given columns in a row group, as the file reports them.
    fn row_bytes(&self, columns: &[usize], row_group: u32, rows: u64) -> Result<u64, TableError> {
        let mut bytes = 0_u64;
        for &index in columns {
            let section = &self.column(index)?.section;
            for node in 0..section.node_count {
                let chunk = section.node_chunk(row_group, node);
                bytes = bytes.saturating_add(chunk.map_or(0, |chunk| chunk.arrow_bytes.get()));
            }
        }
        Ok((bytes / rows.max(1)).max(1))
    }
}

/// Ascending indexes as ranges, neighbours joined.
fn joined(indexes: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for index in indexes {
        match ranges.last_mut() {
            Some(last) if last.end == index => last.end += 1,
            _ => ranges.push(index..index + 1),
        }
    }
    ranges
}

/// A batch of decoded columns: Arrow refuses nulls where the schema allows none.
pub(super) fn batch(
    schema: &SchemaRef,
    arrays: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, TableError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
        .map_err(|source| TableError::Arrow { column: "*".into(), source })
}

/// The batches of a table, decoded as they are asked for: some rows of a row group at once, columns and blocks in parallel. `T` is a [`Table`], borrowed or boxed.
#[derive(Debug)]
pub struct TableBatches<T> {
    table: T,
    schema: SchemaRef,
    columns: Vec<usize>,
    position: u64,
    end: u64,
    batch_rows: usize,
    memory_bytes: u64,
    /// Decoded rows that were not given out yet.
    window: Option<RecordBatch>,
}

impl<T: Deref<Target = Table>> TableBatches<T> {
    fn new(table: T, options: &ReadOptions) -> Result<Self, TableError> {
        let row_count = table.row_count();
        let rows = options.rows.clone().unwrap_or(0..row_count);
        if rows.end > row_count || rows.start > rows.end {
            return Err(TableError::NoRow { row: rows.end.max(rows.start).saturating_sub(1), row_count });
        }
        let columns = options.columns.clone().unwrap_or_else(|| (0..table.columns.len()).collect());
        let schema = table.projected(&columns)?;
        let inner: &Table = &table;
        columns.par_iter().try_for_each(|&column| inner.column(column).map(drop))?;
        Ok(Self {
            schema,
            columns,
            position: rows.start,
            end: rows.end,
            batch_rows: options.batch_rows.max(1),
            memory_bytes: options.memory_bytes,
            window: None,
            table,
        })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, TableError> {
        let window = match self.window.take() {
            Some(window) => window,
            None if self.position < self.end => self.next_window()?,
            None => return Ok(None),
        };
        if window.num_rows() <= self.batch_rows {
            return Ok(Some(window));
        }
        let first = window.slice(0, self.batch_rows);
        self.window = Some(window.slice(self.batch_rows, window.num_rows() - self.batch_rows));
        Ok(Some(first))
    }

    fn next_window(&mut self) -> Result<RecordBatch, TableError> {
        let Some((row_group, start, rows)) = self.table.row_group_of(self.position) else {
            return Err(TableError::NoRow { row: self.position, row_count: self.table.row_count() });
        };
        let left = self.end.min(start + rows) - self.position;
        let row_bytes = self.table.row_bytes(&self.columns, row_group, rows)?;
        let window_bytes = WINDOW_BYTES.saturating_mul(rayon::current_num_threads() as u64);
        let window_rows = (window_bytes.min(self.memory_bytes / 4) / row_bytes).max(1);
        // Whole batches, of which none is shorter than the others but the last.
        let batch_rows = self.batch_rows as u64;
        let whole = window_rows / batch_rows * batch_rows;
        let mut window_rows = if whole > 0 { whole } else { window_rows }.min(left);
        let first = self.position - start;
        loop {
            let range = first..first + window_rows;
            let budget = Budget::new(self.memory_bytes);
            let ranges = std::slice::from_ref(&range);
            match self.table.decode(&self.schema, &self.columns, row_group, ranges, &budget) {
                Err(error) if error.wants_fewer_rows() && window_rows > 1 => {
                    window_rows = window_rows.div_ceil(4)
                }
                Err(error) => return Err(error),
                Ok(window) => {
                    self.position += window_rows;
                    return Ok(window);
                }
            }
        }
    }
}

impl<T: Deref<Target = Table>> Iterator for TableBatches<T> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_batch() {
            Ok(batch) => batch.map(Ok),
            Err(error) => {
                // Nothing sensible follows an error.
                self.position = self.end;
                self.window = None;
                Some(Err(ArrowError::from_external_error(Box::new(error))))
            }
        }
    }
}

impl<T: Deref<Target = Table>> RecordBatchReader for TableBatches<T> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
