//! The column section: what a reader needs to read one column.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::footer::{count, elements};
use crate::{
    Encoding, FILE_ALIGNMENT, FILE_HEADER_BYTES, FormatError, Kind, Layout, MAX_BLOCK_BYTES, Role, is_zero,
};

const WHAT: &str = "column section";

/// A longer min or max is not stored.
const MAX_STATISTIC_BYTES: u16 = 64;

/// The `dictionary` field of a node chunk that has none.
pub const NO_DICTIONARY: u32 = u32::MAX;

/// The first 32 bytes of a column section.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SectionHeader {
    /// Nodes of the column's type tree.
    pub node_count: U32,
    /// Row groups of the file.
    pub row_group_count: U32,
    /// Entries in the table of dictionaries.
    pub dictionary_count: U32,
    /// Entries in the table of buffers.
    pub buffer_count: U32,
    /// Entries in the table of blocks.
    pub block_count: U32,
    /// Length of the heap.
    pub heap_bytes: U32,
    /// Zero.
    pub reserved: U64,
}

/// One node in one row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct NodeChunk {
    /// Slots (values or nulls) of the node.
    pub slot_count: U64,
    /// Slots that are null.
    pub null_count: U64,
    /// Values that are NaN and not null.
    pub nan_count: U64,
    /// What the node's own Arrow buffers take uncompressed.
    pub arrow_bytes: U64,
    /// Index of its first buffer.
    pub first_buffer: U32,
    /// Its number of buffers.
    pub buffer_count: U16,
    /// [`Encoding`] as a number.
    pub encoding: u8,
    /// 1 where min and max are known.
    pub statistics: u8,
    /// Where in the heap min begins; max follows it.
    pub statistics_offset: U32,
    /// Length of min.
    pub min_bytes: U16,
    /// Length of max.
    pub max_bytes: U16,
    /// Index of its dictionary, or [`NO_DICTIONARY`].
    pub dictionary: U32,
    /// Zero.
    pub reserved: [u8; 12],
}

/// The dictionary of a string or binary node.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DictionaryEntry {
    /// Index of the node in preorder.
    pub node: U32,
    /// Bit 0: the entries ascend.
    pub flags: U32,
    /// Number of entries.
    pub entry_count: U64,
    /// Index of its first buffer.
    pub first_buffer: U32,
    /// Its number of buffers.
    pub buffer_count: U32,
    /// Zero.
    pub reserved: U64,
}

impl DictionaryEntry {
    /// Whether the entries ascend, so that codes compare as values do.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.flags.get() & 1 != 0
    }
}

/// One buffer of one node in one row group, or of a dictionary.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BufferEntry {
    /// [`Role`] as a number.
    pub role: u8,
    /// [`crate::Kind`] as a number.
    pub kind: u8,
    /// Bits a value.
    pub value_width: u8,
    /// Which limb of values wider than 64 bits.
    pub limb: u8,
    /// Its number of blocks.
    pub block_count: U32,
    /// Index of its first block.
    pub first_block: U32,
    /// Values in every block but the last.
    pub values_per_block: U32,
    /// Values of all its blocks.
    pub value_count: U64,
}

/// Where a block is, and which one it is.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BlockEntry {
    /// Where the block begins in the file.
    pub offset: U64,
    /// Length of the block.
    pub block_bytes: U32,
    /// Values in the block.
    pub value_count: U32,
    /// The checksum at the end of the block's own header: a block of another place has another one, however alike they are otherwise.
    pub header_checksum: U32,
    /// Zero.
    pub reserved: U32,
}

/// A column section whose tables are proven to refer only to what is there. Whether a node has the buffers of its type is for the reader to check,
/// who knows the schema.
#[derive(Debug, Clone)]
pub struct ColumnSection {
    /// Nodes of the column's type tree.
    pub node_count: u32,
    /// Chunks of all nodes of row group 0, then of row group 1, and so on.
    pub node_chunks: Vec<NodeChunk>,
    /// The dictionaries.
    pub dictionaries: Vec<DictionaryEntry>,
    /// The buffers.
    pub buffers: Vec<BufferEntry>,
    /// The blocks.
    pub blocks: Vec<BlockEntry>,
    heap: Vec<u8>,
}

impl ColumnSection {
    /// Proves a section of a file whose footer begins at `footer_offset` and that has `row_group_count` row groups. The checksum is the caller's to compare.
    ///
    /// # Errors
    /// Lengths that do not add up, indexes that are not where the ones before them end, unknown enumerations, value counts that do not add up, or blocks
    /// that are outside the file or overlap.
    pub fn parse(bytes: &[u8], row_group_count: u32, footer_offset: u64) -> Result<Self, FormatError> {
        let found_bytes = bytes.len() as u64;
        let (header, rest) = SectionHeader::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
            what: WHAT,
            needed_bytes: size_of::<SectionHeader>() as u64,
            found_bytes,
        })?;
        if header.reserved.get() != 0 {
            return Err(FormatError::NotZero { what: WHAT });
        }
        if header.row_group_count.get() != row_group_count {
            return Err(FormatError::Mismatch {
                what: WHAT,
                field: "row_group_count",
                found: header.row_group_count.get().into(),
                expected: row_group_count.into(),
            });
        }
        let needed_bytes = needed_bytes(header);
        let wrong_length = || FormatError::WrongLength { what: WHAT, needed_bytes, found_bytes };
        if needed_bytes != found_bytes {
            return Err(wrong_length());
        }
        let chunk_count = header.node_count.get().checked_mul(row_group_count).ok_or_else(wrong_length)?;
        let (node_chunks, rest) = elements::<NodeChunk>(rest, chunk_count).ok_or_else(wrong_length)?;
        let (dictionaries, rest) =
            elements::<DictionaryEntry>(rest, header.dictionary_count.get()).ok_or_else(wrong_length)?;
        let (buffers, rest) =
            elements::<BufferEntry>(rest, header.buffer_count.get()).ok_or_else(wrong_length)?;
        let (blocks, heap) =
            elements::<BlockEntry>(rest, header.block_count.get()).ok_or_else(wrong_length)?;
        let section = Self {
            node_count: header.node_count.get(),
            node_chunks: node_chunks.to_vec(),
            dictionaries: dictionaries.to_vec(),
            buffers: buffers.to_vec(),
            blocks: blocks.to_vec(),
            heap: heap.to_vec(),
        };
        section.check(footer_offset)?;
        Ok(section)
    }

    /// The chunk of node `node` in row group `row_group`; `None` beyond the tables.
    #[must_use]
    pub fn node_chunk(&self, row_group: u32, node: u32) -> Option<&NodeChunk> {
        if node >= self.node_count {
            return None;
        }
        let index = u64::from(row_group) * u64::from(self.node_count) + u64::from(node);
        self.node_chunks.get(usize::try_from(index).ok()?)
    }

    /// The buffers of a node chunk.
    #[must_use]
    pub fn chunk_buffers(&self, chunk: &NodeChunk) -> &[BufferEntry] {
        slice(&self.buffers, chunk.first_buffer.get(), chunk.buffer_count.get().into()).unwrap_or_default()
    }

    /// The buffers of a dictionary.
    #[must_use]
    pub fn dictionary_buffers(&self, dictionary: &DictionaryEntry) -> &[BufferEntry] {
        slice(&self.buffers, dictionary.first_buffer.get(), dictionary.buffer_count.get()).unwrap_or_default()
    }

    /// The blocks of a buffer.
    #[must_use]
    pub fn buffer_blocks(&self, buffer: &BufferEntry) -> &[BlockEntry] {
        slice(&self.blocks, buffer.first_block.get(), buffer.block_count.get()).unwrap_or_default()
    }

    /// Min and max of a node chunk, where they are known.
    #[must_use]
    pub fn statistics(&self, chunk: &NodeChunk) -> Option<(&[u8], &[u8])> {
        if chunk.statistics == 0 {
            return None;
        }
        let both = u32::from(chunk.min_bytes.get()) + u32::from(chunk.max_bytes.get());
        slice(&self.heap, chunk.statistics_offset.get(), both)?.split_at_checked(chunk.min_bytes.get().into())
    }

    /// Chunks, then dictionaries take the buffers one after the other, and the buffers the blocks: nothing belongs to two, nothing to none, and all is
    /// proven in one pass however many there are.
    fn check(&self, footer_offset: u64) -> Result<(), FormatError> {
        let mut buffers = Shares::of(self.buffers.len());
        for chunk in &self.node_chunks {
            self.check_chunk(chunk)?;
            buffers.take(
                "node chunk",
                "first_buffer",
                chunk.first_buffer,
                chunk.buffer_count.get().into(),
            )?;
        }
        for dictionary in &self.dictionaries {
            self.check_dictionary(dictionary)?;
            let count = dictionary.buffer_count.get();
            buffers.take("dictionary", "first_buffer", dictionary.first_buffer, count)?;
        }
        buffers.all_taken("buffer_count")?;
        let mut blocks = Shares::of(self.blocks.len());
        for buffer in &self.buffers {
            blocks.take("buffer", "first_block", buffer.first_block, buffer.block_count.get())?;
            self.check_buffer(buffer)?;
        }
        blocks.all_taken("block_count")?;
        let mut least_offset = FILE_HEADER_BYTES as u64;
        for block in &self.blocks {
            least_offset = check_block_place(block, least_offset, footer_offset)?;
        }
        Ok(())
    }

    fn check_chunk(&self, chunk: &NodeChunk) -> Result<(), FormatError> {
        let what = "node chunk";
        let field = |field, found| FormatError::Field { what, field, found };
        if !is_zero(&chunk.reserved) {
            return Err(FormatError::NotZero { what });
        }
        let encoding = Encoding::parse(chunk.encoding)?;
        let dictionary = chunk.dictionary.get();
        let known = u64::from(dictionary) < self.dictionaries.len() as u64;
        if known != (encoding == Encoding::Dictionary) || (!known && dictionary != NO_DICTIONARY) {
            return Err(field("dictionary", dictionary.into()));
        }
        let (min_bytes, max_bytes) = (chunk.min_bytes.get(), chunk.max_bytes.get());
        let statistics_fit = match chunk.statistics {
            0 => min_bytes == 0 && max_bytes == 0 && chunk.statistics_offset.get() == 0,
            1 => min_bytes.max(max_bytes) <= MAX_STATISTIC_BYTES && self.statistics(chunk).is_some(),
            _ => false,
        };
        if !statistics_fit {
            return Err(field("statistics", chunk.statistics.into()));
        }
        if chunk.null_count.get() > chunk.slot_count.get() {
            return Err(field("null_count", chunk.null_count.get()));
        }
        if chunk.nan_count.get() > chunk.slot_count.get() - chunk.null_count.get() {
            return Err(field("nan_count", chunk.nan_count.get()));
        }
        Ok(())
    }

    fn check_dictionary(&self, dictionary: &DictionaryEntry) -> Result<(), FormatError> {
        let what = "dictionary";
        let field = |field, found: u32| Err(FormatError::Field { what, field, found: found.into() });
        if dictionary.reserved.get() != 0 {
            return Err(FormatError::NotZero { what });
        }
        if dictionary.node.get() >= self.node_count {
            return field("node", dictionary.node.get());
        }
        if dictionary.flags.get() > 1 {
            return field("flags", dictionary.flags.get());
        }
        Ok(())
    }

    fn check_buffer(&self, buffer: &BufferEntry) -> Result<(), FormatError> {
        let what = "buffer";
        let mismatch = |field, found, expected| FormatError::Mismatch { what, field, found, expected };
        Role::parse(buffer.role)?;
        let layout = Layout::parse(what, buffer.kind, buffer.value_width)?;
        let blocks = self.buffer_blocks(buffer);
        let values_per_block = buffer.values_per_block.get();
        // The smallest tiles of the kind: every other tile size is a multiple.
        let least_tile = if layout.kind == Kind::Bytes { 4096 } else { 512 };
        if !values_per_block.is_multiple_of(least_tile) {
            let found = values_per_block.into();
            return Err(FormatError::Field { what, field: "values_per_block", found });
        }
        let mut value_count = 0_u64;
        for (position, block) in blocks.iter().enumerate() {
            let found = block.value_count.get();
            let last = position + 1 == blocks.len();
            if found == 0 || found > values_per_block || (!last && found != values_per_block) {
                return Err(mismatch("values_per_block", values_per_block.into(), found.into()));
            }
            value_count += u64::from(found);
        }
        if blocks.is_empty() && values_per_block != 0 {
            return Err(mismatch("values_per_block", values_per_block.into(), 0));
        }
        if value_count != buffer.value_count.get() {
            return Err(mismatch("value_count", buffer.value_count.get(), value_count));
        }
        Ok(())
    }
}

/// A table of which entries are given out one after the other.
struct Shares {
    taken: u64,
    length: u64,
}

impl Shares {
    fn of(length: usize) -> Self {
        Self { taken: 0, length: length as u64 }
    }

    /// Gives out `count` entries from `first` on, which must be where the last share ended.
    fn take(
        &mut self,
        what: &'static str,
        field: &'static str,
        first: U32,
        count: u32,
    ) -> Result<(), FormatError> {
        let (found, expected) = (first.get().into(), self.taken);
        if found != expected {
            return Err(FormatError::Mismatch { what, field, found, expected });
        }
        self.taken += u64::from(count);
        if self.taken > self.length {
            return Err(FormatError::Mismatch { what, field, found: self.taken, expected: self.length });
        }
        Ok(())
    }

    fn all_taken(&self, field: &'static str) -> Result<(), FormatError> {
        if self.taken == self.length {
            return Ok(());
        }
        Err(FormatError::Mismatch { what: WHAT, field, found: self.length, expected: self.taken })
    }
}

/// The bytes of a column section.
///
/// # Errors
/// Tables that are too long for their counts, or chunks that are not node_count × row_group_count.
pub fn section_bytes(
    node_count: u32,
    row_group_count: u32,
    node_chunks: &[NodeChunk],
    dictionaries: &[DictionaryEntry],
    buffers: &[BufferEntry],
    blocks: &[BlockEntry],
    heap: &[u8],
) -> Result<Vec<u8>, FormatError> {
    let expected = u64::from(node_count) * u64::from(row_group_count);
    if node_chunks.len() as u64 != expected {
        let found = node_chunks.len() as u64;
        return Err(FormatError::Mismatch { what: WHAT, field: "node_count", found, expected });
    }
    let header = SectionHeader {
        node_count: node_count.into(),
        row_group_count: row_group_count.into(),
        dictionary_count: count(WHAT, "dictionary_count", dictionaries.len())?.into(),
        buffer_count: count(WHAT, "buffer_count", buffers.len())?.into(),
        block_count: count(WHAT, "block_count", blocks.len())?.into(),
        heap_bytes: count(WHAT, "heap_bytes", heap.len())?.into(),
        reserved: 0.into(),
    };
    let tables =
        [node_chunks.as_bytes(), dictionaries.as_bytes(), buffers.as_bytes(), blocks.as_bytes(), heap];
    let mut bytes = header.as_bytes().to_vec();
    for table in tables {
        bytes.extend_from_slice(table);
    }
    Ok(bytes)
}

fn needed_bytes(header: &SectionHeader) -> u64 {
    let table = |count: U32, entry_bytes: usize| u64::from(count.get()) * entry_bytes as u64;
    let chunks = u64::from(header.node_count.get()) * u64::from(header.row_group_count.get());
    chunks
        .saturating_mul(size_of::<NodeChunk>() as u64)
        .saturating_add(size_of::<SectionHeader>() as u64)
        .saturating_add(table(header.dictionary_count, size_of::<DictionaryEntry>()))
        .saturating_add(table(header.buffer_count, size_of::<BufferEntry>()))
        .saturating_add(table(header.block_count, size_of::<BlockEntry>()))
        .saturating_add(header.heap_bytes.get().into())
}

/// Where the block ends. A column's blocks ascend in the file, so that together they are no longer than it.
fn check_block_place(block: &BlockEntry, least_offset: u64, footer_offset: u64) -> Result<u64, FormatError> {
    let what = "block entry";
    let (offset, length) = (block.offset.get(), u64::from(block.block_bytes.get()));
    if block.reserved.get() != 0 {
        return Err(FormatError::NotZero { what });
    }
    if !offset.is_multiple_of(FILE_ALIGNMENT) || offset < least_offset {
        return Err(FormatError::Field { what, field: "offset", found: offset });
    }
    match offset.checked_add(length) {
        Some(end) if end <= footer_offset && length <= MAX_BLOCK_BYTES => Ok(end),
        _ => Err(FormatError::Field { what, field: "block_bytes", found: length }),
    }
}

fn slice<T>(table: &[T], first: u32, count: u32) -> Option<&[T]> {
    let first = usize::try_from(first).ok()?;
    table.get(first..first.checked_add(usize::try_from(count).ok()?)?)
}
