//! IPC files, whose footer gives the place of every record batch.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::{Block, root_as_footer};

use super::Batches;
use super::message::{Dictionaries, Message, peek_row_count, read_exactly, to_schema};
use crate::formats::FormatError;
use crate::formats::rows::RowWindow;

const MAGIC: &[u8] = b"ARROW1";

/// The footer's length (4 bytes) and the magic at the end of a file.
const TRAILER_BYTES: u64 = 10;

/// A file after its footer and dictionaries.
pub(super) struct IpcFile {
    name: String,
    file: BufReader<File>,
    schema: SchemaRef,
    dictionaries: Dictionaries,
    /// Place and rows of each record batch.
    batches: Vec<(u64, u64)>,
    next: usize,
}

impl IpcFile {
    pub(super) fn open(name: &str, file: File) -> Result<Self, FormatError> {
        let mut file = BufReader::new(file);
        let footer_bytes = read_footer(name, &mut file)?;
        let footer = root_as_footer(&footer_bytes)
            .map_err(|error| FormatError::malformed(name, format!("the footer is no flatbuffer: {error}")))?;
        let schema =
            footer.schema().ok_or_else(|| FormatError::malformed(name, "the footer has no schema"))?;
        let schema = Arc::new(to_schema(name, schema)?);

        let mut dictionaries = Dictionaries::new();
        for block in footer.dictionaries().into_iter().flatten() {
            let message = read_message(name, &mut file, offset_of(name, block)?)?;
            message.add_dictionary(name, &schema, &mut dictionaries)?;
        }
        let mut batches = Vec::new();
        for block in footer.recordBatches().into_iter().flatten() {
            let offset_bytes = offset_of(name, block)?;
            seek(name, &mut file, SeekFrom::Start(offset_bytes))?;
            batches.push((offset_bytes, peek_row_count(name, &mut file)?));
        }
        Ok(Self { name: name.to_owned(), file, schema, dictionaries, batches, next: 0 })
    }

    pub(super) fn row_count(&self) -> u64 {
        self.batches.iter().fold(0, |sum, (_, row_count)| sum.saturating_add(*row_count))
    }
}

fn read_footer(name: &str, file: &mut BufReader<File>) -> Result<Vec<u8>, FormatError> {
    let file_bytes = seek(name, file, SeekFrom::End(0))?;
    let Some(trailer) = file_bytes.checked_sub(TRAILER_BYTES) else {
        return Err(FormatError::malformed(
            name,
            format!("{file_bytes} bytes are too few for an Arrow file"),
        ));
    };
    seek(name, file, SeekFrom::Start(trailer))?;
    let found = read_exactly(name, file, TRAILER_BYTES, "the trailer")?;
    let Some((length, magic)) = found.split_first_chunk::<4>() else {
        return Err(FormatError::malformed(name, "the trailer is too short"));
    };
    if magic != MAGIC {
        return Err(FormatError::malformed(
            name,
            "the file does not end in ARROW1: it is truncated, an Arrow stream, or Feather version 1",
        ));
    }
    let length = u64::from(u32::from_le_bytes(*length));
    let start = trailer.checked_sub(length).ok_or_else(|| {
        FormatError::malformed(
            name,
            format!("a footer of {length} bytes does not fit a file of {file_bytes}"),
        )
    })?;
    seek(name, file, SeekFrom::Start(start))?;
    read_exactly(name, file, length, "the footer")
}

fn offset_of(name: &str, block: &Block) -> Result<u64, FormatError> {
    u64::try_from(block.offset()).map_err(|_| {
        FormatError::malformed(name, format!("the footer places a message at {}", block.offset()))
    })
}

fn seek(name: &str, file: &mut (impl Read + Seek), to: SeekFrom) -> Result<u64, FormatError> {
    file.seek(to).map_err(|error| FormatError::io(name, error))
}

fn read_message(name: &str, file: &mut BufReader<File>, offset_bytes: u64) -> Result<Message, FormatError> {
    seek(name, file, SeekFrom::Start(offset_bytes))?;
    Message::read(name, file)?
        .ok_or_else(|| FormatError::malformed(name, format!("there is no message at {offset_bytes}")))
}

impl Batches for IpcFile {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn next_batch(
        &mut self,
        columns: Option<&[usize]>,
        window: &mut RowWindow,
    ) -> Result<Option<RecordBatch>, FormatError> {
        while let Some((offset_bytes, row_count)) = self.batches.get(self.next).copied() {
            self.next += 1;
            if !window.skips(row_count) {
                let message = read_message(&self.name, &mut self.file, offset_bytes)?;
                return message.record_batch(&self.name, &self.schema, &self.dictionaries, columns).map(Some);
            }
        }
        Ok(None)
    }
}
