//! Append blocks, end with sections, footer and trailer.

use std::io::Write;

use format_spec::{
    BlockEntry, BlockHeader, ColumnEntry, FILE_ALIGNMENT, FileHeader, FormatError, Trailer, align, checksum,
    footer_bytes,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::ContainerError;

/// A file being written, front to back: any `Write` will do.
#[derive(Debug)]
pub struct ContainerWriter<W> {
    sink: W,
    offset: u64,
}

impl<W: Write> ContainerWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// The sink cannot be written.
    pub fn new(sink: W) -> Result<Self, ContainerError> {
        let mut writer = Self { sink, offset: 0 };
        writer.write(FileHeader::current().as_bytes())?;
        Ok(writer)
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.offset
    }

    /// Appends a block of `value_count` values.
    ///
    /// # Errors
    /// The sink cannot be written, or the block is shorter than its header or longer than an entry can say.
    pub fn block(&mut self, block: &[u8], value_count: u32) -> Result<BlockEntry, ContainerError> {
        let found = block.len() as u64;
        let block_bytes = u32::try_from(found).map_err(|_| FormatError::Field {
            what: "block",
            field: "block_bytes",
            found,
        })?;
        let (header, _) = BlockHeader::ref_from_prefix(block).map_err(|_| FormatError::Truncated {
            what: "block",
            needed_bytes: BlockHeader::BYTES as u64,
            found_bytes: found,
        })?;
        let offset = self.aligned(block)?;
        Ok(BlockEntry {
            offset: offset.into(),
            block_bytes: block_bytes.into(),
            value_count: value_count.into(),
            header_checksum: header.header_checksum,
            reserved: 0.into(),
        })
    }

    /// Ends the file: the columns' sections in the order of the schema, then footer and trailer. Returns the sink, flushed, and the file's length.
    ///
    /// # Errors
    /// The sink cannot be written, or a count does not fit.
    pub fn finish(
        mut self,
        row_groups: &[u64],
        sections: &[Vec<u8>],
        schema: &[u8],
        created_by: &str,
    ) -> Result<(W, u64), ContainerError> {
        let mut columns = Vec::with_capacity(sections.len());
        for section in sections {
            let offset = self.aligned(section)?;
            columns.push(ColumnEntry {
                section_offset: offset.into(),
                section_bytes: (section.len() as u64).into(),
                section_checksum: checksum(section).into(),
                reserved: 0.into(),
            });
        }
        let footer = footer_bytes(row_groups, &columns, schema, created_by)?;
        let footer_offset = self.aligned(&footer)?;
        self.write(Trailer::new(footer_offset, &footer).as_bytes())?;
        self.sink.flush().map_err(|source| ContainerError::Write { offset: self.offset, source })?;
        Ok((self.sink, self.offset))
    }

    /// Pads to the file's alignment, writes `bytes`, and returns where they begin.
    fn aligned(&mut self, bytes: &[u8]) -> Result<u64, ContainerError> {
        let found = self.offset;
        let start = align(found, FILE_ALIGNMENT).ok_or(FormatError::Field {
            what: "file",
            field: "offset",
            found,
        })?;
        let padding = usize::try_from(start - found).unwrap_or_default();
        self.write(&vec![0; padding])?;
        self.write(bytes)?;
        Ok(start)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ContainerError> {
        self.sink.write_all(bytes).map_err(|source| ContainerError::Write { offset: self.offset, source })?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}
