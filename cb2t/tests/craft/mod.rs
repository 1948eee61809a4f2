//! Files made by hand: sound in every checksum, and claiming whatever they like.
#![allow(dead_code, clippy::unwrap_used, clippy::cast_possible_truncation)]

use arrow::datatypes::{Field, Schema};
use arrow_io::columns::schema::encode_schema;
use codec_core::{Kind, Layout, Order};
use container::ContainerWriter;
use format_spec::{
    BlockHeader, BufferEntry, DictionaryEntry, NO_DICTIONARY, NodeChunk, Role, block_checksum, section_bytes,
};
use zerocopy::IntoBytes;

/// A buffer of constant blocks.
#[derive(Clone)]
pub struct Buffer {
    pub role: Role,
    pub layout: Layout,
    pub limb: u8,
    pub value_count: u64,
    pub constant: u64,
}

/// One node in the only row group.
#[derive(Clone, Default)]
pub struct Node {
    pub slot_count: u64,
    pub null_count: u64,
    pub arrow_bytes: u64,
    pub coded: bool,
    pub buffers: Vec<Buffer>,
}

/// A column: its nodes in preorder, and the buffers of its dictionary of so many entries.
#[derive(Clone)]
pub struct Column {
    pub field: Field,
    pub nodes: Vec<Node>,
    pub dictionary: Option<(u64, Vec<Buffer>)>,
}

/// Most values of a block that are whole tiles of every size.
const VALUES_PER_BLOCK: u32 = 0xFFFF_0000;

pub fn values(role: Role, value_width: u8, value_count: u64, constant: u64) -> Buffer {
    Buffer { role, layout: Layout::values(value_width), limb: 0, value_count, constant }
}

pub fn bytes(value_count: u64) -> Buffer {
    Buffer { role: Role::Bytes, layout: Layout::BYTES, limb: 0, value_count, constant: b'a'.into() }
}

pub fn node(slot_count: u64, buffers: Vec<Buffer>) -> Node {
    Node { slot_count, buffers, ..Node::default() }
}

/// A file of one row group of `rows` rows.
pub fn file(rows: u64, columns: &[Column]) -> Vec<u8> {
    let mut writer = ContainerWriter::new(Vec::new()).unwrap();
    let mut sections = Vec::new();
    for column in columns {
        let (mut chunks, mut entries, mut blocks) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |buffers: &[Buffer]| {
            let first_buffer = entries.len() as u32;
            for buffer in buffers {
                let first_block = blocks.len() as u32;
                let mut left = buffer.value_count;
                while left > 0 {
                    let count = left.min(VALUES_PER_BLOCK.into()) as u32;
                    blocks.push(writer.block(&constant_block(buffer, count), count).unwrap());
                    left -= u64::from(count);
                }
                entries.push(BufferEntry {
                    role: buffer.role as u8,
                    kind: buffer.layout.kind as u8,
                    value_width: buffer.layout.value_width,
                    limb: buffer.limb,
                    block_count: (blocks.len() as u32 - first_block).into(),
                    first_block: first_block.into(),
                    values_per_block: if buffer.value_count == 0 { 0 } else { VALUES_PER_BLOCK }.into(),
                    value_count: buffer.value_count.into(),
                });
            }
            first_buffer
        };
        for node in &column.nodes {
            chunks.push(NodeChunk {
                slot_count: node.slot_count.into(),
                null_count: node.null_count.into(),
                nan_count: 0.into(),
                arrow_bytes: node.arrow_bytes.into(),
                first_buffer: add(&node.buffers).into(),
                buffer_count: (node.buffers.len() as u16).into(),
                encoding: node.coded.into(),
                statistics: 0,
                statistics_offset: 0.into(),
                min_bytes: 0.into(),
                max_bytes: 0.into(),
                dictionary: if node.coded { 0 } else { NO_DICTIONARY }.into(),
                reserved: [0; 12],
            });
        }
        let mut dictionaries = Vec::new();
        if let Some((entry_count, buffers)) = &column.dictionary {
            dictionaries.push(DictionaryEntry {
                node: 0.into(),
                flags: 1.into(),
                entry_count: (*entry_count).into(),
                first_buffer: add(buffers).into(),
                buffer_count: (buffers.len() as u32).into(),
                reserved: 0.into(),
            });
        }
        let count = column.nodes.len() as u32;
        sections.push(section_bytes(count, 1, &chunks, &dictionaries, &entries, &blocks, &[]).unwrap());
    }
    let fields: Vec<Field> = columns.iter().map(|column| column.field.clone()).collect();
    let schema = encode_schema(&Schema::new(fields)).unwrap();
    writer.finish(&[rows], &sections, &schema, "craft").unwrap().0
}

/// A block of 64 bytes that stands for `value_count` values.
fn constant_block(buffer: &Buffer, value_count: u32) -> Vec<u8> {
    let order = if buffer.layout.kind == Kind::Bytes { Order::None } else { Order::Unsigned };
    let extreme = if order == Order::None { 0 } else { buffer.constant };
    let tile_size = if buffer.layout.kind == Kind::Bytes { 4096_u32 } else { 512 };
    let mut header = BlockHeader {
        magic: BlockHeader::MAGIC,
        format_version: 0.into(),
        codec_id: 0.into(),
        kind: buffer.layout.kind as u8,
        value_width: buffer.layout.value_width,
        order: order as u8,
        reserved: 0,
        tile_size: tile_size.into(),
        value_count: value_count.into(),
        tile_count: 0.into(),
        shared_bytes: 0.into(),
        block_bytes: 64.into(),
        min: extreme.into(),
        max: extreme.into(),
        constant: buffer.constant.into(),
        reserved_end: 0.into(),
        header_checksum: 0.into(),
    };
    header.header_checksum = block_checksum(header.as_bytes(), BlockHeader::BYTES).unwrap().into();
    header.as_bytes().to_vec()
}
