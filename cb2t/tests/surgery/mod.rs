//! Where the structures of a file are, and their checksums made right again after bytes were changed: so that what is behind the checksums can be damaged, too.
//!
//! The reading here believes what a file says as far as it lies within the bytes; nothing of it is a model for a reader.
#![allow(dead_code, clippy::unwrap_used, clippy::cast_possible_truncation)]

pub mod mutate;

use std::ops::Range;

use format_spec::{
    BlockEntry, BlockHeader, BufferEntry, ColumnEntry, DictionaryEntry, FILE_HEADER_BYTES, FooterHeader,
    NodeChunk, SectionHeader, TRAILER_BYTES, Trailer, block_checksum, checksum,
};
use zerocopy::FromBytes;

/// What bytes are part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    FileHeader,
    BlockHeader,
    TileTables,
    Tile,
    SectionHeader,
    NodeChunks,
    Dictionaries,
    Buffers,
    BlockEntries,
    Heap,
    FooterHeader,
    RowGroups,
    Columns,
    Schema,
    CreatedBy,
    Trailer,
}

/// A structure, or a table of entries of `entry_bytes` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub part: Part,
    pub range: Range<usize>,
    pub entry_bytes: usize,
}

/// A block: where its entry and it are, and what its checksums cover.
#[derive(Debug, Clone)]
pub struct Block {
    pub entry: usize,
    pub range: Range<usize>,
    /// Where its first tile begins, counted from the block.
    pub first_tile: usize,
    /// Where its table of tile checksums is in the file.
    pub checksums: usize,
    pub tiles: Vec<Range<usize>>,
}

/// A column: its entry in the footer, its section, its blocks.
#[derive(Debug, Clone)]
pub struct Column {
    pub entry: usize,
    pub section: Range<usize>,
    pub blocks: Vec<Block>,
}

/// All structures of a file.
#[derive(Debug, Clone)]
pub struct Anatomy {
    pub footer: Range<usize>,
    pub trailer: usize,
    pub columns: Vec<Column>,
    pub places: Vec<Place>,
}

/// No more blocks than this are looked for: overlapping ones could be many.
const MAX_BLOCKS: usize = 4096;

impl Anatomy {
    /// The structures that are reachable; `None` where there is not even a footer.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let trailer = bytes.len().checked_sub(TRAILER_BYTES)?;
        let (_, fields) = Trailer::ref_from_suffix(bytes).ok()?;
        let footer = within(fields.footer_offset.get(), fields.footer_bytes.get(), trailer)?;
        let mut anatomy = Self { footer: footer.clone(), trailer, columns: Vec::new(), places: Vec::new() };
        anatomy.add(Part::FileHeader, 0..FILE_HEADER_BYTES.min(bytes.len()), FILE_HEADER_BYTES);
        let header = FooterHeader::ref_from_prefix(bytes.get(footer.clone())?).ok()?.0;
        let mut rest = Rest { at: footer.start, end: footer.end };
        let start = rest.take(1, size_of::<FooterHeader>());
        anatomy.add(Part::FooterHeader, start, size_of::<FooterHeader>());
        let row_groups = rest.take(header.row_group_count.get() as usize, 8);
        anatomy.add(Part::RowGroups, row_groups, 8);
        let entry_bytes = size_of::<ColumnEntry>();
        let columns = rest.take(header.column_count.get() as usize, entry_bytes);
        anatomy.add(Part::Columns, columns.clone(), entry_bytes);
        let schema = rest.take(header.schema_bytes.get().min(1 << 32) as usize, 1);
        anatomy.add(Part::Schema, schema, 1);
        let created_by = rest.take(header.created_by_bytes.get() as usize, 1);
        anatomy.add(Part::CreatedBy, created_by, 1);
        for entry in columns.step_by(entry_bytes) {
            anatomy.add_column(bytes, entry);
        }
        anatomy.add(Part::Trailer, trailer..bytes.len(), TRAILER_BYTES);
        Some(anatomy)
    }

    /// All places of `part`.
    pub fn all(&self, part: Part) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(move |place| place.part == part)
    }

    /// Makes every checksum right, from the tiles up to the footer.
    pub fn seal(&self, bytes: &mut [u8]) {
        self.seal_blocks(bytes);
        self.seal_sections(bytes);
    }

    /// Makes the checksums of tiles and blocks right, and the entries that name the blocks.
    fn seal_blocks(&self, bytes: &mut [u8]) {
        for column in &self.columns {
            for block in &column.blocks {
                for (index, tile) in block.tiles.iter().enumerate() {
                    let sum = checksum(&bytes[tile.clone()]);
                    put(bytes, block.checksums + 4 * index, sum);
                }
                if let Some(sum) = block_checksum(&bytes[block.range.clone()], block.first_tile) {
                    put(bytes, block.range.start + 60, sum);
                    put(bytes, block.entry + 16, sum);
                }
            }
        }
    }

    /// Makes the checksums of sections and footer right, whatever the entries of blocks say.
    pub fn seal_sections(&self, bytes: &mut [u8]) {
        for column in &self.columns {
            let sum = checksum(&bytes[column.section.clone()]);
            put(bytes, column.entry + 16, sum);
        }
        let mut covered = bytes[self.footer.clone()].to_vec();
        covered.extend_from_slice(&bytes[self.trailer..self.trailer + 16]);
        covered.extend_from_slice(&bytes[self.trailer + 20..self.trailer + 24]);
        put(bytes, self.trailer + 16, checksum(&covered));
    }

    fn add(&mut self, part: Part, range: Range<usize>, entry_bytes: usize) {
        if !range.is_empty() {
            self.places.push(Place { part, range, entry_bytes });
        }
    }

    fn add_column(&mut self, bytes: &[u8], entry: usize) {
        let Ok((fields, _)) = ColumnEntry::ref_from_prefix(&bytes[entry..]) else { return };
        let section = within(fields.section_offset.get(), fields.section_bytes.get(), self.footer.start);
        let Some(section) = section else { return };
        let mut column = Column { entry, section: section.clone(), blocks: Vec::new() };
        if let Ok((header, _)) = SectionHeader::ref_from_prefix(&bytes[section.clone()]) {
            let chunks = header.node_count.get().saturating_mul(header.row_group_count.get());
            let tables = [
                (Part::SectionHeader, 1, size_of::<SectionHeader>()),
                (Part::NodeChunks, chunks, size_of::<NodeChunk>()),
                (Part::Dictionaries, header.dictionary_count.get(), size_of::<DictionaryEntry>()),
                (Part::Buffers, header.buffer_count.get(), size_of::<BufferEntry>()),
                (Part::BlockEntries, header.block_count.get(), size_of::<BlockEntry>()),
                (Part::Heap, header.heap_bytes.get(), 1),
            ];
            let mut rest = Rest { at: section.start, end: section.end };
            for (part, count, entry_bytes) in tables {
                let range = rest.take(count as usize, entry_bytes);
                self.add(part, range.clone(), entry_bytes);
                if part == Part::BlockEntries {
                    for entry in range.step_by(entry_bytes) {
                        column.blocks.extend(self.add_block(bytes, entry));
                    }
                }
            }
        }
        self.columns.push(column);
    }

    fn add_block(&mut self, bytes: &[u8], entry: usize) -> Option<Block> {
        if self.all(Part::BlockHeader).count() >= MAX_BLOCKS {
            return None;
        }
        let (fields, _) = BlockEntry::ref_from_prefix(&bytes[entry..]).ok()?;
        let range = within(fields.offset.get(), fields.block_bytes.get().into(), self.footer.start)?;
        let (header, _) = BlockHeader::ref_from_prefix(&bytes[range.clone()]).ok()?;
        self.add(Part::BlockHeader, range.start..range.start + BlockHeader::BYTES, BlockHeader::BYTES);
        let mut rest = Rest { at: range.start + BlockHeader::BYTES, end: range.end };
        let constant = header.codec_id.get() == 0;
        let tile_count = header.tile_count.get() as usize;
        let width = usize::from(header.value_width / 8).max(1);
        let extremes = if header.order == 0 { 0 } else { tile_count };
        let shared = rest.take_padded(header.shared_bytes.get() as usize, 1);
        let offsets = rest.take_padded(if constant { 0 } else { tile_count + 1 }, 4);
        let checksums = rest.take_padded(tile_count, 4);
        let minima = rest.take_padded(extremes, width);
        let maxima = rest.take_padded(extremes, width);
        for (table, entry_bytes) in [(shared, 1), (offsets.clone(), 4), (minima, width), (maxima, width)] {
            self.add(Part::TileTables, table, entry_bytes);
        }
        let offset = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let mut tiles = Vec::new();
        for at in offsets.step_by(4).take(checksums.len() / 4) {
            let tile = range.start + offset(at)?..range.start + offset(at + 4)?;
            if tile.start > tile.end || tile.end > range.end {
                break;
            }
            self.add(Part::Tile, tile.clone(), 1);
            tiles.push(tile);
        }
        Some(Block { entry, first_tile: rest.at - range.start, range, checksums: checksums.start, tiles })
    }
}

/// `length` bytes from `offset` on, if they end by `end`.
fn within(offset: u64, length: u64, end: usize) -> Option<Range<usize>> {
    let range = usize::try_from(offset).ok()?..usize::try_from(offset.checked_add(length)?).ok()?;
    (range.end <= end).then_some(range)
}

/// Bytes that are still to be given to tables.
struct Rest {
    at: usize,
    end: usize,
}

impl Rest {
    /// As many of `count` entries as fit.
    fn take(&mut self, count: usize, entry_bytes: usize) -> Range<usize> {
        let count = count.min((self.end - self.at) / entry_bytes);
        let range = self.at..self.at + count * entry_bytes;
        self.at = range.end;
        range
    }

    fn take_padded(&mut self, count: usize, entry_bytes: usize) -> Range<usize> {
        let range = self.take(count, entry_bytes);
        self.at = (self.at + range.len().next_multiple_of(16) - range.len()).min(self.end);
        range
    }
}

/// Writes a field of four bytes.
pub fn put(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(field) = bytes.get_mut(at..at + 4) {
        field.copy_from_slice(&value.to_le_bytes());
    }
}
