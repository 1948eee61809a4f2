//! Record batches written as a `.cb2t` file.

use std::collections::BTreeMap;
use std::io::Write;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use codec_core::{Choice, EncodeOptions, Registry};
use container::ContainerWriter;
use format_spec::{
    BlockEntry, BufferEntry, DictionaryEntry, Encoding, NO_DICTIONARY, NodeChunk, section_bytes,
};
use rayon::prelude::*;

use super::report::WriteReport;
use super::survey::Dictionaries;
use crate::columns::build::{Coding, NodeBuilder};
use crate::columns::dictionary::DictionaryLimits;
use crate::columns::encode::{ColumnEncoder, EncodedBuffer, EncodedNode};
use crate::columns::read::role_name;
use crate::columns::schema::encode_schema;
use crate::columns::tree::Node;
use crate::error::TableError;

/// How a table is written.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// Sizes of blocks and tiles, and the choice of codecs.
    pub encode: EncodeOptions,
    /// Other choices for single columns, by name.
    pub column_choices: BTreeMap<String, Choice>,
    /// Most rows of a row group.
    pub row_group_rows: u64,
    /// A row group ends when its values take this many bytes, as Arrow's buffers or as they are collected.
    pub row_group_bytes: u64,
    /// Ordered dictionaries made beforehand; the other strings' dictionaries grow as they come.
    pub dictionaries: Dictionaries,
    /// When a growing dictionary is given up.
    pub dictionary_limits: DictionaryLimits,
    /// Named in the file.
    pub created_by: String,
}

impl Default for WriterOptions {
    /// Row groups of 2^20 rows or 256 MiB, growing dictionaries, automatic codecs.
    fn default() -> Self {
        Self {
            encode: EncodeOptions::default(),
            column_choices: BTreeMap::new(),
            row_group_rows: 1 << 20,
            row_group_bytes: 256 << 20,
            dictionaries: Dictionaries::default(),
            dictionary_limits: DictionaryLimits::default(),
            created_by: concat!("cb2t ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

impl WriterOptions {
    /// Whether a table of `schema` can be written with these options.
    ///
    /// # Errors
    /// A type that cannot be stored, a column that does not exist, or an impossible size.
    pub fn check(&self, schema: &Schema) -> Result<(), TableError> {
        Node::columns(schema)?;
        check_options(schema, self)
    }
}

/// Most rows that are appended before the row group's bytes are looked at.
const STEP_ROWS: usize = 65_536;

/// Writes batches to any `Write`, row group by row group; nothing is sought, so a pipe will do.
#[derive(Debug)]
pub struct TableWriter<W: Write> {
    container: ContainerWriter<W>,
    schema: SchemaRef,
    schema_message: Vec<u8>,
    registry: &'static Registry,
    options: WriterOptions,
    columns: Vec<Column>,
    pending_rows: u64,
    row_groups: Vec<u64>,
    report: WriteReport,
}

/// What one column has become so far.
#[derive(Debug)]
struct Column {
    node: Node,
    node_count: u32,
    builder: NodeBuilder,
    encode: EncodeOptions,
    node_chunks: Vec<NodeChunk>,
    buffers: Vec<BufferEntry>,
    blocks: Vec<BlockEntry>,
    heap: Vec<u8>,
    /// The nodes whose dictionary is used, in the order of the table of dictionaries.
    coded_nodes: Vec<u32>,
}

impl<W: Write> TableWriter<W> {
    /// Begins a table of `schema`.
    ///
    /// # Errors
    /// A type that cannot be stored (before a byte is written), an option that is impossible, or a sink that cannot be written.
    pub fn new(
        sink: W,
        schema: SchemaRef,
        registry: &'static Registry,
        options: WriterOptions,
    ) -> Result<Self, TableError> {
        check_options(&schema, &options)?;
        let schema_message = encode_schema(&schema)?;
        let columns = Node::columns(&schema)?
            .into_iter()
            .enumerate()
            .map(|(index, node)| Column::new(index, node, &options))
            .collect();
        let container = ContainerWriter::new(sink)?;
        Ok(Self {
            container,
            schema,
            schema_message,
            registry,
            options,
            columns,
            pending_rows: 0,
            row_groups: Vec::new(),
            report: WriteReport::default(),
        })
    }

    /// The table's schema.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.container.bytes_written()
    }

    /// Appends a batch: columns in parallel. Full row groups are encoded and written.
    ///
    /// # Errors
    /// A batch of another schema, a null where none may be, values that cannot be encoded, or a sink that cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        check_batch(&self.schema, batch)?;
        let mut start = 0;
        while start < batch.num_rows() {
            let room = self.options.row_group_rows - self.pending_rows;
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            let rows = room.min(self.step_rows(batch)).min(batch.num_rows() - start);
            self.append(&batch.slice(start, rows))?;
            start += rows;
            if self.pending_rows >= self.options.row_group_rows
                || self.pending_bytes() >= self.options.row_group_bytes
            {
                self.end_row_group()?;
            }
        }
        Ok(())
    }

    /// Ends the table and the file.
    ///
    /// # Errors
    /// As [`TableWriter::write`].
    pub fn finish(mut self) -> Result<(W, WriteReport), TableError> {
        self.end_row_group()?;
        let row_group_count = u32::try_from(self.row_groups.len()).map_err(|_| TableError::Option {
            option: "row group size",
            reason: "there are more row groups than 2^32: make them larger".into(),
        })?;
        let mut sections = Vec::with_capacity(self.columns.len());
        let mut columns = std::mem::take(&mut self.columns);
        for column in &mut columns {
            let dictionaries = self.write_dictionaries(column)?;
            sections.push(column.section(row_group_count, &dictionaries)?);
        }
        let mut report = self.report;
        report.row_count = self.row_groups.iter().sum();
        report.row_group_count = row_group_count.into();
        let created_by = &self.options.created_by;
        let (sink, file_bytes) =
            self.container.finish(&self.row_groups, &sections, &self.schema_message, created_by)?;
        report.file_bytes = file_bytes;
        Ok((sink, report))
    }

    /// Rows to append at once: few enough that wide rows do not overshoot the row group's bytes by much.
    fn step_rows(&self, batch: &RecordBatch) -> usize {
        let row_bytes = (batch.get_array_memory_size() / batch.num_rows().max(1)).max(1);
        let rows = self.options.row_group_bytes / 4 / row_bytes as u64;
        usize::try_from(rows).unwrap_or(usize::MAX).clamp(1, STEP_ROWS)
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        self.pending_rows += batch.num_rows() as u64;
        self.columns
            .par_iter_mut()
            .zip(batch.columns().par_iter())
            .try_for_each(|(column, array)| column.builder.append(&column.node, array))
    }

    fn pending_bytes(&self) -> u64 {
        let bytes = |builder: &NodeBuilder| builder.total_arrow_bytes().max(builder.total_held_bytes());
        self.columns.iter().map(|column| bytes(&column.builder)).sum()
    }

    fn end_row_group(&mut self) -> Result<(), TableError> {
        if self.pending_rows == 0 {
            return Ok(());
        }
        self.row_groups.push(self.pending_rows);
        self.pending_rows = 0;
        let registry = self.registry;
        let encoded: Vec<Vec<EncodedNode>> =
            self.columns.par_iter_mut().map(|column| column.encode(registry)).collect::<Result<_, _>>()?;
        for (column, nodes) in self.columns.iter_mut().zip(encoded) {
            column.store(nodes, &mut self.container, &mut self.report)?;
        }
        Ok(())
    }

    fn write_dictionaries(&mut self, column: &mut Column) -> Result<Vec<DictionaryEntry>, TableError> {
        let encoder = ColumnEncoder { registry: self.registry, options: column.encode };
        let mut entries = Vec::new();
        for index in column.coded_nodes.clone() {
            let Some((node, builder)) = find(&column.node, &column.builder, index) else { continue };
            let Some(dictionary) = builder.coding.dictionary() else { continue };
            let encoded = encoder.encode_dictionary(node, dictionary)?;
            let (ordered, entry_count, path) =
                (dictionary.is_ordered(), dictionary.len() as u64, node.path.clone());
            let first_buffer = table_index(column.buffers.len())?;
            let buffer_count = table_index(encoded.len())?;
            for buffer in encoded {
                column.store_buffer(&path, buffer, &mut self.container, &mut self.report)?;
            }
            entries.push(DictionaryEntry {
                node: index.into(),
                flags: u32::from(ordered).into(),
                entry_count: entry_count.into(),
                first_buffer: first_buffer.into(),
                buffer_count: buffer_count.into(),
                reserved: 0.into(),
            });
        }
        Ok(entries)
    }
}

impl Column {
    fn new(index: usize, node: Node, options: &WriterOptions) -> Self {
        let mut coding = |node: &Node| match options.dictionaries.get(index, node.index) {
            Some(dictionary) => Coding::Prepared(dictionary.clone()),
            None if options.dictionary_limits.entries == 0 => Coding::Direct,
            None => Coding::Growing {
                dictionary: Box::default(),
                limits: options.dictionary_limits,
                committed: false,
            },
        };
        let choice = options.column_choices.get(node.field.name()).copied().unwrap_or(options.encode.choice);
        Self {
            builder: NodeBuilder::new(&node, &mut coding),
            // A tree's nodes are numbered in 32 bits.
            node_count: u32::try_from(node.preorder().len()).unwrap_or(u32::MAX),
            node,
            encode: EncodeOptions { choice, ..options.encode },
            node_chunks: Vec::new(),
            buffers: Vec::new(),
            blocks: Vec::new(),
            heap: Vec::new(),
            coded_nodes: Vec::new(),
        }
    }

    fn encode(&mut self, registry: &Registry) -> Result<Vec<EncodedNode>, TableError> {
        let encoder = ColumnEncoder { registry, options: self.encode };
        let nodes = encoder.encode(&self.node, &mut self.builder)?;
        self.builder.clear(&self.node);
        Ok(nodes)
    }

    /// Writes the blocks of a row group and keeps where they are.
    fn store<W: Write>(
        &mut self,
        nodes: Vec<EncodedNode>,
        container: &mut ContainerWriter<W>,
        report: &mut WriteReport,
    ) -> Result<(), TableError> {
        let paths: Vec<String> = self.node.preorder().iter().map(|node| node.path.clone()).collect();
        for ((index, encoded), path) in (0_u32..).zip(nodes).zip(paths) {
            report.arrow_bytes += encoded.arrow_bytes;
            let first_buffer = table_index(self.buffers.len())?;
            let buffer_count = u16::try_from(encoded.buffers.len()).unwrap_or(u16::MAX);
            let dictionary = match encoded.encoding {
                Encoding::Direct => NO_DICTIONARY,
                Encoding::Dictionary => self.dictionary_of(index)?,
            };
            let (min, max) = encoded.extremes.clone().unwrap_or_default();
            let known = encoded.extremes.is_some();
            let statistics_offset = if known { table_index(self.heap.len())? } else { 0 };
            self.heap.extend_from_slice(&min);
            self.heap.extend_from_slice(&max);
            self.node_chunks.push(NodeChunk {
                slot_count: encoded.slot_count.into(),
                null_count: encoded.null_count.into(),
                nan_count: encoded.nan_count.into(),
                arrow_bytes: encoded.arrow_bytes.into(),
                first_buffer: first_buffer.into(),
                buffer_count: buffer_count.into(),
                encoding: encoded.encoding as u8,
                statistics: u8::from(known),
                statistics_offset: statistics_offset.into(),
                // Statistics are at most 64 bytes each.
                min_bytes: u16::try_from(min.len()).unwrap_or(u16::MAX).into(),
                max_bytes: u16::try_from(max.len()).unwrap_or(u16::MAX).into(),
                dictionary: dictionary.into(),
                reserved: [0; 12],
            });
            for buffer in encoded.buffers {
                self.store_buffer(&path, buffer, container, report)?;
            }
        }
        Ok(())
    }

    fn store_buffer<W: Write>(
        &mut self,
        path: &str,
        buffer: EncodedBuffer,
        container: &mut ContainerWriter<W>,
        report: &mut WriteReport,
    ) -> Result<(), TableError> {
        self.buffers.push(BufferEntry {
            role: buffer.role as u8,
            kind: buffer.layout.kind as u8,
            value_width: buffer.layout.value_width,
            limb: buffer.limb,
            block_count: table_index(buffer.blocks.len())?.into(),
            first_block: table_index(self.blocks.len())?.into(),
            values_per_block: buffer.values_per_block.into(),
            value_count: buffer.value_count.into(),
        });
        for block in buffer.blocks {
            let block_bytes = block.bytes.len() as u64;
            report.add(
                path,
                role_name(buffer.role),
                block.codec,
                &block.trials,
                block.value_count,
                block_bytes,
            );
            self.blocks.push(container.block(&block.bytes, block.value_count)?);
        }
        Ok(())
    }

    /// The index of a node's dictionary, which is written when the table ends.
    fn dictionary_of(&mut self, node: u32) -> Result<u32, TableError> {
        let known = self.coded_nodes.iter().position(|&coded| coded == node);
        let index = known.unwrap_or_else(|| {
            self.coded_nodes.push(node);
            self.coded_nodes.len() - 1
        });
        table_index(index)
    }

    fn section(&self, row_group_count: u32, dictionaries: &[DictionaryEntry]) -> Result<Vec<u8>, TableError> {
        let named = |source| TableError::Section {
            column: self.node.path.clone(),
            source: container::ContainerError::Format(source),
        };
        section_bytes(
            self.node_count,
            row_group_count,
            &self.node_chunks,
            dictionaries,
            &self.buffers,
            &self.blocks,
            &self.heap,
        )
        .map_err(named)
    }
}

/// The node with this preorder index, and its builder.
fn find<'a>(node: &'a Node, builder: &'a NodeBuilder, index: u32) -> Option<(&'a Node, &'a NodeBuilder)> {
    if node.index == index {
        return Some((node, builder));
    }
    node.children.iter().zip(&builder.children).find_map(|(node, builder)| find(node, builder, index))
}

/// An index or length of one of a section's tables, which count in 32 bits.
fn table_index(index: usize) -> Result<u32, TableError> {
    u32::try_from(index).map_err(|_| TableError::Option {
        option: "row group size",
        reason: "a column has more than 2^32 blocks: make row groups and blocks larger".into(),
    })
}

fn check_options(schema: &Schema, options: &WriterOptions) -> Result<(), TableError> {
    let refuse = |option, reason: &str| Err(TableError::Option { option, reason: reason.to_owned() });
    if options.row_group_rows == 0 || options.row_group_bytes == 0 {
        return refuse("row group size", "must not be 0");
    }
    if options.encode.block_bytes > 1 << 30 {
        return refuse("block size", "must be at most 1 GiB");
    }
    for name in options.column_choices.keys() {
        if schema.column_with_name(name).is_none() {
            return Err(no_column(schema, name));
        }
    }
    Ok(())
}

/// The error for a column that does not exist, with the names that do.
pub(crate) fn no_column(schema: &Schema, name: &str) -> TableError {
    const SHOWN: usize = 20;
    let mut known: Vec<&str> =
        schema.fields().iter().take(SHOWN).map(|field| field.name().as_str()).collect();
    if schema.fields().len() > SHOWN {
        known.push("...");
    }
    TableError::NoColumn { name: name.to_owned(), known: known.join(", ") }
}

fn check_batch(schema: &Schema, batch: &RecordBatch) -> Result<(), TableError> {
    let (found, expected) = (batch.num_columns(), schema.fields().len());
    if found != expected {
        return Err(TableError::BatchColumns { found, expected });
    }
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        let column = || field.name().clone();
        if array.data_type() != field.data_type() {
            let (found, expected) = (array.data_type().to_string(), field.data_type().to_string());
            return Err(TableError::BatchType { column: column(), found, expected });
        }
        if !field.is_nullable() && array.null_count() > 0 {
            return Err(TableError::UnexpectedNull { column: column() });
        }
    }
    Ok(())
}
