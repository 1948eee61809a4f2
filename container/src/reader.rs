//! Open a file, read a column's section, read blocks.

use std::ops::Range;

use codec_core::{BlockSource, Layout};
use format_spec::{
    BlockEntry, BlockHeader, BufferEntry, ColumnEntry, ColumnSection, FILE_ALIGNMENT, FILE_HEADER_BYTES,
    FORMAT_VERSION, FileHeader, Footer, FormatError, TRAILER_BYTES, Trailer, checksum, is_zero,
};
use zerocopy::FromBytes;

use crate::{BlockBytes, ContainerError, Source};

/// The last bytes that are read first, in the hope that they hold the whole footer.
const TAIL_BYTES: u64 = 64 << 10;

/// An open file: its footer is proven, columns' sections and blocks are read when asked for.
#[derive(Debug)]
pub struct ContainerReader {
    source: Source,
    footer_offset: u64,
    row_count: u64,
    row_groups: Vec<u64>,
    columns: Vec<ColumnEntry>,
    schema: Vec<u8>,
    created_by: String,
}

impl ContainerReader {
    /// Reads header, trailer and footer, and proves them.
    ///
    /// # Errors
    /// Bytes that cannot be read, or that are not a file of this version.
    pub fn open(source: Source) -> Result<Self, ContainerError> {
        let file_bytes = source.length();
        let smallest = (FILE_HEADER_BYTES + TRAILER_BYTES) as u64;
        if file_bytes < smallest {
            let start = source.read(0..file_bytes)?;
            // What begins like a file of ours was cut short; anything else is something else.
            if !start.as_ref().starts_with(&FileHeader::MAGIC) {
                return Err(FormatError::Magic { what: "file header" }.into());
            }
            return Err(FormatError::Truncated {
                what: "file",
                needed_bytes: smallest,
                found_bytes: file_bytes,
            }
            .into());
        }
        FileHeader::parse(source.read(0..FILE_HEADER_BYTES as u64)?.as_ref())?;
        let tail_start = file_bytes.saturating_sub(TAIL_BYTES);
        let tail = source.read(tail_start..file_bytes)?;
        let trailer = *Trailer::parse(tail.as_ref(), file_bytes)?;
        let footer_offset = trailer.footer_offset.get();
        let footer_end = file_bytes - TRAILER_BYTES as u64;
        let in_tail = footer_offset.checked_sub(tail_start).and_then(|start| {
            let range = usize::try_from(start).ok()?..usize::try_from(footer_end - tail_start).ok()?;
            tail.as_ref().get(range)
        });
        let read;
        let footer_bytes = if let Some(bytes) = in_tail {
            bytes
        } else {
            read = source.read(footer_offset..footer_end)?;
            read.as_ref()
        };
        trailer.verify(footer_bytes)?;
        let footer = Footer::parse(footer_bytes, footer_offset)?;
        Ok(Self {
            footer_offset,
            row_count: footer.row_count,
            row_groups: footer.row_groups.iter().map(|rows| rows.get()).collect(),
            columns: footer.columns.to_vec(),
            schema: footer.schema.to_vec(),
            created_by: footer.created_by.to_owned(),
            source,
        })
    }

    /// Length of the file in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.source.length()
    }

    /// Rows of the table.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.row_count
    }

    /// Rows of each row group.
    #[must_use]
    pub fn row_groups(&self) -> &[u64] {
        &self.row_groups
    }

    /// Number of top-level columns.
    #[must_use]
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// The Arrow IPC schema message.
    #[must_use]
    pub fn schema(&self) -> &[u8] {
        &self.schema
    }

    /// The writing program and its version.
    #[must_use]
    pub fn created_by(&self) -> &str {
        &self.created_by
    }

    /// Reads and proves the section of column `index`.
    ///
    /// # Errors
    /// No such column, bytes that cannot be read, or that are no section.
    pub fn section(&self, index: usize) -> Result<ColumnSection, ContainerError> {
        let count = self.columns.len();
        let entry = self.columns.get(index).ok_or(ContainerError::NoColumn { index, count })?;
        let bytes = self.source.read(section_range(entry))?;
        let (stored, computed) = (entry.section_checksum.get(), checksum(bytes.as_ref()));
        if stored != computed {
            return Err(FormatError::Checksum { what: "column section", stored, computed }.into());
        }
        // The footer counts row groups in 32 bits.
        let row_group_count = u32::try_from(self.row_groups.len()).unwrap_or(u32::MAX);
        Ok(ColumnSection::parse(bytes.as_ref(), row_group_count, self.footer_offset)?)
    }

    /// Reads one block, which is the one that its entry names; what it holds is for [`codec_core::Block`] to prove.
    ///
    /// # Errors
    /// Bytes that cannot be read, or another block.
    pub fn block(&self, entry: &BlockEntry) -> Result<BlockBytes<'_>, ContainerError> {
        let bytes = self.source.read(block_range(entry))?;
        check_entry(entry, bytes.as_ref())?;
        Ok(bytes)
    }

    /// Proves that header, blocks, sections, footer and trailer do not overlap, and that between them is nothing but padding. `sections` are all
    /// columns' sections.
    ///
    /// # Errors
    /// The first overlap, or bytes that belong to nothing.
    pub fn verify_extents(&self, sections: &[ColumnSection]) -> Result<(), ContainerError> {
        let blocks = sections.iter().flat_map(|section| section.blocks.iter().map(block_range));
        let columns = self.columns.iter().map(section_range);
        let end = self.file_bytes();
        let ends = [0..FILE_HEADER_BYTES as u64, self.footer_offset..end];
        let mut extents: Vec<Range<u64>> = blocks.chain(columns).chain(ends).collect();
        extents.sort_by_key(|extent| (extent.start, extent.end));
        let mut covered = 0;
        for extent in extents {
            if extent.start < covered {
                let (start, end) = (extent.start, covered.min(extent.end));
                return Err(ContainerError::Extent { start, end, what: "belong to two structures" });
            }
            self.verify_padding(covered..extent.start)?;
            covered = extent.end;
        }
        Ok(())
    }

    fn verify_padding(&self, gap: Range<u64>) -> Result<(), ContainerError> {
        let (start, end) = (gap.start, gap.end);
        if end - start >= FILE_ALIGNMENT {
            return Err(ContainerError::Extent { start, end, what: "belong to no structure" });
        }
        if is_zero(self.source.read(gap)?.as_ref()) {
            return Ok(());
        }
        Err(ContainerError::Extent { start, end, what: "are padding but not zero" })
    }
}

fn block_range(entry: &BlockEntry) -> Range<u64> {
    let start = entry.offset.get();
    start..start.saturating_add(entry.block_bytes.get().into())
}

fn section_range(entry: &ColumnEntry) -> Range<u64> {
    let start = entry.section_offset.get();
    start..start.saturating_add(entry.section_bytes.get())
}

/// One buffer of a file, as codec-core reads it.
#[derive(Debug)]
pub struct BufferReader<'a> {
    container: &'a ContainerReader,
    blocks: &'a [BlockEntry],
    layout: Layout,
    value_count: u64,
    values_per_block: u32,
}

impl<'a> BufferReader<'a> {
    /// The buffer `entry` of `section`.
    ///
    /// # Errors
    /// A layout that does not exist.
    pub fn new(
        container: &'a ContainerReader,
        section: &'a ColumnSection,
        entry: &BufferEntry,
    ) -> Result<Self, ContainerError> {
        Ok(Self {
            container,
            blocks: section.buffer_blocks(entry),
            layout: Layout::parse("buffer", entry.kind, entry.value_width)?,
            value_count: entry.value_count.get(),
            values_per_block: entry.values_per_block.get(),
        })
    }

    /// A whole block, as [`ContainerReader::block`].
    ///
    /// # Errors
    /// As [`ContainerReader::block`], or there is no such block.
    pub fn block(&self, block_index: u32) -> Result<BlockBytes<'a>, ContainerError> {
        self.container.block(self.entry(block_index)?)
    }

    fn entry(&self, block_index: u32) -> Result<&'a BlockEntry, ContainerError> {
        let missing = FormatError::Field { what: "buffer", field: "block_index", found: block_index.into() };
        let index = usize::try_from(block_index).unwrap_or(usize::MAX);
        Ok(self.blocks.get(index).ok_or(missing)?)
    }
}

impl<'a> BlockSource for BufferReader<'a> {
    type Error = ContainerError;
    type Bytes<'b>
        = BlockBytes<'a>
    where
        Self: 'b;

    fn layout(&self) -> Layout {
        self.layout
    }

    fn value_count(&self) -> u64 {
        self.value_count
    }

    fn values_per_block(&self) -> u32 {
        self.values_per_block
    }

    fn block_bytes(&self, block_index: u32) -> Result<u64, ContainerError> {
        Ok(self.entry(block_index)?.block_bytes.get().into())
    }

    /// What begins with the block's header begins with the one that the block's entry names.
    fn read(&self, block_index: u32, bytes: Range<u64>) -> Result<BlockBytes<'a>, ContainerError> {
        let entry = self.entry(block_index)?;
        let start = entry.offset.get();
        let read =
            self.container.source.read(start.saturating_add(bytes.start)..start.saturating_add(bytes.end))?;
        if bytes.start == 0 {
            check_entry(entry, read.as_ref())?;
        }
        Ok(read)
    }
}

/// The block's own header is the one that its entry names. Bytes that are no header of this version are refused for that when the block is parsed.
fn check_entry(entry: &BlockEntry, bytes: &[u8]) -> Result<(), FormatError> {
    let Ok((header, _)) = BlockHeader::ref_from_prefix(bytes) else { return Ok(()) };
    if header.magic != BlockHeader::MAGIC || header.format_version.get() != FORMAT_VERSION {
        return Ok(());
    }
    let (found, expected) = (header.header_checksum.get(), entry.header_checksum.get());
    if found != expected {
        return Err(FormatError::ForeignBlock { found, expected });
    }
    let (found, expected) = (header.value_count.get().into(), entry.value_count.get().into());
    if found != expected {
        return Err(FormatError::Mismatch { what: "block", field: "value_count", found, expected });
    }
    Ok(())
}
