//! What a file says about its columns, row groups, buffers and blocks.

use arrow::array::{ArrayData, ArrayRef, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use codec_core::{Block, BufferError, Choice, choose};
use format_spec::{BufferEntry, NodeChunk, Role};

use super::reader::Table;
use super::report::WriteReport;
use crate::columns::read::{Budget, LoadedColumn, role_name};
use crate::columns::tree::Node;
use crate::error::TableError;

/// One node (a column, or a field below it) over all row groups.
#[derive(Debug, Clone)]
pub struct NodeInfo {
    /// The column, with the path below it.
    pub path: String,
    /// The Arrow type.
    pub data_type: DataType,
    /// Whether the schema allows nulls.
    pub nullable: bool,
    /// Slots (rows, for a column).
    pub slot_count: u64,
    /// Nulls.
    pub null_count: u64,
    /// NaN values.
    pub nan_count: u64,
    /// Bytes of its Arrow buffers.
    pub arrow_bytes: u64,
    /// Entries of its dictionary, if it has one.
    pub dictionary: Option<DictionaryInfo>,
    /// Smallest value, as an array of one; `None` where it is unknown in some row group.
    pub min: Option<ArrayRef>,
    /// Largest value.
    pub max: Option<ArrayRef>,
    /// Its buffers in all row groups and in its dictionary.
    pub buffers: Vec<BufferInfo>,
}

/// A node's dictionary.
#[derive(Debug, Clone, Copy)]
pub struct DictionaryInfo {
    /// Entries.
    pub entry_count: u64,
    /// Whether they ascend, so that codes compare as values do.
    pub ordered: bool,
}

/// One buffer of a node.
#[derive(Debug, Clone)]
pub struct BufferInfo {
    /// Row group, or `None` for the dictionary.
    pub row_group: Option<u32>,
    /// What it is to its node.
    pub role: &'static str,
    /// Which limb.
    pub limb: u8,
    /// Bits a value.
    pub value_width: u8,
    /// Values.
    pub value_count: u64,
    /// Its blocks.
    pub blocks: Vec<BlockInfo>,
}

/// One block of a buffer.
#[derive(Debug, Clone)]
pub struct BlockInfo {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length.
    pub block_bytes: u64,
    /// Values in it.
    pub value_count: u32,
    /// Tiles in it.
    pub tile_count: u32,
    /// Values a tile.
    pub tile_size: u32,
    /// Its codec's name, "constant" without one.
    pub codec: &'static str,
}

impl NodeInfo {
    /// Bytes of all its blocks.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.buffers.iter().flat_map(|buffer| &buffer.blocks).map(|block| block.block_bytes).sum()
    }
}

impl Table {
    /// As [`Table::inspect`] without the buffers: from the column's section alone.
    ///
    /// # Errors
    /// As [`Table::column`].
    pub fn statistics(&self, index: usize) -> Result<Vec<NodeInfo>, TableError> {
        let column = self.column(index)?;
        Ok(column.node.preorder().into_iter().map(|node| self.node_statistics(column, node)).collect())
    }

    /// What the file says about column `index`: the column first, then the nodes below it. Reads the headers of all its blocks.
    ///
    /// # Errors
    /// As [`Table::column`], or a block that is damaged.
    pub fn inspect(&self, index: usize) -> Result<Vec<NodeInfo>, TableError> {
        let column = self.column(index)?;
        column.node.preorder().into_iter().map(|node| self.inspect_node(column, node)).collect()
    }

    /// Smallest and largest value of column `index`, each as an array of one; `None` where some row group does not know them.
    ///
    /// # Errors
    /// As [`Table::column`].
    pub fn column_range(&self, index: usize) -> Result<Option<(ArrayRef, ArrayRef)>, TableError> {
        let column = self.column(index)?;
        Ok(self.range(column, &column.node))
    }

    /// What an automatic choice finds for the blocks of column `index` as they are stored: every block is decoded and the codecs are tried on it anew. The report holds the codecs
    /// that the blocks have beside what was estimated; its totals over the file stay 0.
    ///
    /// # Errors
    /// As [`Table::inspect`], or a block that cannot be decoded within `memory_bytes`.
    pub fn trials(&self, index: usize, choice: Choice, memory_bytes: u64) -> Result<WriteReport, TableError> {
        let column = self.column(index)?;
        let mut report = WriteReport::default();
        for node in column.node.preorder() {
            for (row_group, chunk) in self.chunks(column, node) {
                for entry in column.section.chunk_buffers(chunk) {
                    self.try_buffer(column, node, Some(row_group), entry, choice, memory_bytes, &mut report)?;
                }
            }
            for dictionary in
                column.section.dictionaries.iter().filter(|entry| entry.node.get() == node.index)
            {
                for entry in column.section.dictionary_buffers(dictionary) {
                    self.try_buffer(column, node, None, entry, choice, memory_bytes, &mut report)?;
                }
            }
        }
        Ok(report)
    }

    #[allow(clippy::too_many_arguments)]
    fn try_buffer(
        &self,
        column: &LoadedColumn,
        node: &Node,
        row_group: Option<u32>,
        entry: &BufferEntry,
        choice: Choice,
        memory_bytes: u64,
        report: &mut WriteReport,
    ) -> Result<(), TableError> {
        let role = Role::parse(entry.role).map_or("buffer", role_name);
        for (block_index, block_entry) in (0_u32..).zip(column.section.buffer_blocks(entry)) {
            let failed = |source| TableError::Buffer {
                column: node.path.clone(),
                place: row_group.map_or("dictionary".to_owned(), |index| format!("row group {index}")),
                role,
                source: Box::new(source),
            };
            let refused = |source| failed(BufferError::Block { block_index, source });
            let bytes = self
                .container()
                .block(block_entry)
                .map_err(|source| failed(BufferError::Read { block_index, source }))?;
            let block = Block::parse(bytes.as_ref(), self.registry()).map_err(refused)?;
            let (value_count, block_bytes) =
                (block.view().value_count(), block_entry.block_bytes.get().into());
            if block.view().constant().is_some() {
                report.add(&node.path, role, block.codec_name(), &[], value_count, block_bytes);
                continue;
            }
            Budget::new(memory_bytes).charge(node, u64::from(value_count) * block.layout().value_bytes())?;
            let values = block.check().and_then(|checked| checked.decode()).map_err(refused)?;
            let (layout, order, tile_size) = (block.layout(), block.view().order(), block.tile_size());
            let found = choose(self.registry(), choice, layout, order, values.as_values(), tile_size);
            let trials = found.map(|(_, trials)| trials).unwrap_or_default();
            report.add(&node.path, role, block.codec_name(), &trials, value_count, block_bytes);
        }
        Ok(())
    }

    fn node_statistics(&self, column: &LoadedColumn, node: &Node) -> NodeInfo {
        let chunks = self.chunks(column, node);
        let sum = |field: fn(&NodeChunk) -> u64| {
            chunks.iter().map(|(_, chunk)| field(chunk)).fold(0, u64::saturating_add)
        };
        let range = self.range(column, node);
        let dictionary = column.section.dictionaries.iter().find(|entry| entry.node.get() == node.index);
        NodeInfo {
            path: node.path.clone(),
            data_type: node.field.data_type().clone(),
            nullable: node.field.is_nullable(),
            slot_count: sum(|chunk| chunk.slot_count.get()),
            null_count: sum(|chunk| chunk.null_count.get()),
            nan_count: sum(|chunk| chunk.nan_count.get()),
            arrow_bytes: sum(|chunk| chunk.arrow_bytes.get()),
            dictionary: dictionary.map(|entry| DictionaryInfo {
                entry_count: entry.entry_count.get(),
                ordered: entry.is_ordered(),
            }),
            min: range.clone().map(|(min, _)| min),
            max: range.map(|(_, max)| max),
            buffers: Vec::new(),
        }
    }

    fn inspect_node(&self, column: &LoadedColumn, node: &Node) -> Result<NodeInfo, TableError> {
        let mut info = self.node_statistics(column, node);
        for (row_group, chunk) in self.chunks(column, node) {
            for entry in column.section.chunk_buffers(chunk) {
                info.buffers.push(self.inspect_buffer(column, node, Some(row_group), entry)?);
            }
        }
        for dictionary in column.section.dictionaries.iter().filter(|entry| entry.node.get() == node.index) {
            for entry in column.section.dictionary_buffers(dictionary) {
                info.buffers.push(self.inspect_buffer(column, node, None, entry)?);
            }
        }
        Ok(info)
    }

    fn inspect_buffer(
        &self,
        column: &LoadedColumn,
        node: &Node,
        row_group: Option<u32>,
        entry: &BufferEntry,
    ) -> Result<BufferInfo, TableError> {
        let role = Role::parse(entry.role).map_or("buffer", role_name);
        let mut blocks = Vec::new();
        for (block_index, block) in (0_u32..).zip(column.section.buffer_blocks(entry)) {
            let place = || row_group.map_or("dictionary".to_owned(), |index| format!("row group {index}"));
            let failed = |source| TableError::Buffer {
                column: node.path.clone(),
                place: place(),
                role,
                source: Box::new(source),
            };
            let bytes = self
                .container()
                .block(block)
                .map_err(|source| failed(BufferError::Read { block_index, source }))?;
            let parsed = Block::parse(bytes.as_ref(), self.registry())
                .map_err(|source| failed(BufferError::Block { block_index, source }))?;
            blocks.push(BlockInfo {
                offset: block.offset.get(),
                block_bytes: block.block_bytes.get().into(),
                value_count: parsed.view().value_count(),
                tile_count: parsed.view().tile_count(),
                tile_size: parsed.view().tile_size(),
                codec: parsed.codec_name(),
            });
        }
        Ok(BufferInfo {
            row_group,
            role,
            limb: entry.limb,
            value_width: entry.value_width,
            value_count: entry.value_count.get(),
            blocks,
        })
    }

    fn chunks<'a>(&self, column: &'a LoadedColumn, node: &Node) -> Vec<(u32, &'a NodeChunk)> {
        let groups = (0_u32..).take(self.row_groups().len());
        groups.filter_map(|group| Some((group, column.section.node_chunk(group, node.index)?))).collect()
    }

    /// The union of the row groups' ranges; unknown where one of them has values and no range.
    fn range(&self, column: &LoadedColumn, node: &Node) -> Option<(ArrayRef, ArrayRef)> {
        let mut range: Option<(ArrayRef, ArrayRef)> = None;
        for (_, chunk) in self.chunks(column, node) {
            let values = chunk.slot_count.get() - chunk.null_count.get() - chunk.nan_count.get();
            if values == 0 {
                continue;
            }
            let (min, max) = column.section.statistics(chunk)?;
            let (min, max) = (scalar(&node.data_type, min)?, scalar(&node.data_type, max)?);
            range = Some(match range {
                None => (min, max),
                Some((low, high)) => (lesser(low, min, false)?, lesser(high, max, true)?),
            });
        }
        range
    }
}

/// The lesser, or with `reverse` the greater, of two arrays of one value.
fn lesser(left: ArrayRef, right: ArrayRef, reverse: bool) -> Option<ArrayRef> {
    let compare =
        arrow::array::make_comparator(&left, &right, arrow::compute::SortOptions::default()).ok()?;
    let left_wins = if reverse { compare(0, 0).is_ge() } else { compare(0, 0).is_le() };
    drop(compare);
    Some(if left_wins { left } else { right })
}

/// A stored statistic as an array of one value of a plain type; `None` where the bytes are not one.
fn scalar(data_type: &DataType, bytes: &[u8]) -> Option<ArrayRef> {
    let length = bytes.len();
    let narrow = || Buffer::from_vec(vec![0, i32::try_from(length).unwrap_or(i32::MAX)]);
    let wide = || Buffer::from_vec(vec![0, i64::try_from(length).unwrap_or(i64::MAX)]);
    let value = Buffer::from(bytes);
    let builder = |data_type: &DataType| ArrayData::builder(data_type.clone()).len(1).align_buffers(true);
    let data = match data_type {
        DataType::Utf8View => builder(&DataType::LargeUtf8).add_buffer(wide()).add_buffer(value),
        DataType::BinaryView => builder(&DataType::LargeBinary).add_buffer(wide()).add_buffer(value),
        DataType::Utf8 | DataType::Binary => builder(data_type).add_buffer(narrow()).add_buffer(value),
        DataType::LargeUtf8 | DataType::LargeBinary => {
            builder(data_type).add_buffer(wide()).add_buffer(value)
        }
        DataType::Boolean if !matches!(bytes, [0 | 1]) => return None,
        other if other.primitive_width().is_some_and(|width| width != length) => return None,
        other => builder(other).add_buffer(value),
    };
    data.build().ok().map(make_array)
}
