//! One encapsulated IPC message.

use std::collections::HashMap;
use std::io::Read;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::reader::{read_dictionary, read_record_batch};
use arrow::ipc::{self, CompressionType, MessageHeader, root_as_message};

use crate::formats::FormatError;

/// First four bytes of a message since format version 0.15.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Bytes of a compressed buffer that give its length before compression.
const LENGTH_PREFIX_BYTES: usize = 8;

/// Most bytes that one byte can stand for: an LZ4 length byte for 255, a 4 byte Zstandard block for 128 KiB.
const LZ4_MAX_RATIO: u64 = 255;
const ZSTD_MAX_RATIO: u64 = 32 * 1024;

/// What a short compressed buffer may hold regardless of the ratio.
const RATIO_SLACK_BYTES: u64 = 128 * 1024;

/// A message whose metadata is a valid flatbuffer.
pub(super) struct Message {
    metadata: Vec<u8>,
    body: Buffer,
}

/// The dictionaries read so far, by id.
pub(super) type Dictionaries = HashMap<i64, ArrayRef>;

/// Reads the length and metadata of a message; `None` at the end of a stream.
fn read_metadata(name: &str, bytes: &mut impl Read) -> Result<Option<Vec<u8>>, FormatError> {
    let Some(mut length) = read_word(name, bytes)? else { return Ok(None) };
    if length == CONTINUATION {
        length = read_word(name, bytes)?
            .ok_or_else(|| FormatError::malformed(name, "the file ends before the length of a message"))?;
    }
    let metadata_bytes = u32::from_le_bytes(length);
    if metadata_bytes == 0 {
        return Ok(None);
    }
    read_exactly(name, bytes, u64::from(metadata_bytes), "a message's metadata").map(Some)
}

/// Four bytes; `None` if the stream ends before them.
fn read_word(name: &str, bytes: &mut impl Read) -> Result<Option<[u8; 4]>, FormatError> {
    let mut word = Vec::new();
    bytes.take(4).read_to_end(&mut word).map_err(|error| FormatError::io(name, error))?;
    match <[u8; 4]>::try_from(word.as_slice()) {
        Ok(word) => Ok(Some(word)),
        Err(_) if word.is_empty() => Ok(None),
        Err(_) => Err(FormatError::malformed(name, "the file ends inside the length of a message")),
    }
}

/// Reads a length that the input claims; memory grows only with bytes that are there.
pub(super) fn read_exactly(
    name: &str,
    bytes: &mut impl Read,
    length_bytes: u64,
    what: &str,
) -> Result<Vec<u8>, FormatError> {
    let mut found = Vec::new();
    let read_bytes = Read::take(bytes, length_bytes)
        .read_to_end(&mut found)
        .map_err(|error| FormatError::io(name, error))?;
    if read_bytes as u64 != length_bytes {
        return Err(FormatError::malformed(
            name,
            format!("{what} should have {length_bytes} bytes, but the file ends after {read_bytes} of them"),
        ));
    }
    Ok(found)
}

fn parsed<'a>(name: &str, metadata: &'a [u8]) -> Result<ipc::Message<'a>, FormatError> {
    root_as_message(metadata).map_err(|error| {
        FormatError::malformed(name, format!("a message's metadata is no flatbuffer: {error}"))
    })
}

fn body_bytes(name: &str, message: &ipc::Message<'_>) -> Result<u64, FormatError> {
    unsigned(name, message.bodyLength(), "body length")
}

fn unsigned(name: &str, value: i64, what: &str) -> Result<u64, FormatError> {
    u64::try_from(value)
        .map_err(|_| FormatError::malformed(name, format!("a message has the {what} {value}")))
}

/// Reads only the metadata of a message and returns its rows, 0 if it holds no record batch.
pub(super) fn peek_row_count(name: &str, bytes: &mut impl Read) -> Result<u64, FormatError> {
    match read_metadata(name, bytes)? {
        Some(metadata) => row_count_of(name, &parsed(name, &metadata)?),
        None => Ok(0),
    }
}

fn row_count_of(name: &str, message: &ipc::Message<'_>) -> Result<u64, FormatError> {
    match message.header_as_record_batch() {
        Some(batch) => unsigned(name, batch.length(), "row count"),
        None => Ok(0),
    }
}

impl Message {
    /// Reads a whole message; `None` at the end of a stream.
    pub(super) fn read(name: &str, bytes: &mut impl Read) -> Result<Option<Self>, FormatError> {
        let Some(metadata) = read_metadata(name, bytes)? else { return Ok(None) };
        let body_bytes = body_bytes(name, &parsed(name, &metadata)?)?;
        let body = Buffer::from_vec(read_exactly(name, bytes, body_bytes, "a message's body")?);
        Ok(Some(Self { metadata, body }))
    }

    pub(super) fn kind(&self, name: &str) -> Result<MessageHeader, FormatError> {
        Ok(parsed(name, &self.metadata)?.header_type())
    }

    pub(super) fn row_count(&self, name: &str) -> Result<u64, FormatError> {
        row_count_of(name, &parsed(name, &self.metadata)?)
    }

    pub(super) fn schema(&self, name: &str) -> Result<Schema, FormatError> {
        match parsed(name, &self.metadata)?.header_as_schema() {
            Some(schema) => to_schema(name, schema),
            None => Err(FormatError::malformed(name, "the first message holds no schema")),
        }
    }

    pub(super) fn record_batch(
        &self,
        name: &str,
        schema: &SchemaRef,
        dictionaries: &Dictionaries,
        columns: Option<&[usize]>,
    ) -> Result<RecordBatch, FormatError> {
        let message = parsed(name, &self.metadata)?;
        let Some(batch) = message.header_as_record_batch() else {
            return Err(FormatError::malformed(name, "a message that should hold a record batch does not"));
        };
        check_buffers(name, &batch, &self.body)?;
        read_record_batch(&self.body, batch, schema.clone(), dictionaries, columns, &message.version())
            .map_err(|error| FormatError::malformed(name, error.to_string()))
    }

    pub(super) fn add_dictionary(
        &self,
        name: &str,
        schema: &Schema,
        dictionaries: &mut Dictionaries,
    ) -> Result<(), FormatError> {
        let message = parsed(name, &self.metadata)?;
        let values = message
            .header_as_dictionary_batch()
            .and_then(|dictionary| Some((dictionary, dictionary.data()?)));
        let Some((dictionary, values)) = values else {
            return Err(FormatError::malformed(name, "a message that should hold a dictionary does not"));
        };
        check_buffers(name, &values, &self.body)?;
        read_dictionary(&self.body, dictionary, schema, dictionaries, &message.version())
            .map_err(|error| FormatError::malformed(name, error.to_string()))
    }
}

/// The Arrow schema in a file's footer or a stream's first message.
pub(super) fn to_schema(name: &str, schema: ipc::Schema<'_>) -> Result<Schema, FormatError> {
    if !schema.endianness().equals_to_target_endianness() {
        return Err(FormatError::malformed(
            name,
            "the file was written on a machine of the other byte order",
        ));
    }
    Ok(ipc::convert::fb_to_schema(schema))
}

/// Checks that every buffer lies in the body, and that no compressed one claims more than its bytes can unpack to.
fn check_buffers(name: &str, batch: &ipc::RecordBatch<'_>, body: &[u8]) -> Result<(), FormatError> {
    unsigned(name, batch.length(), "row count")?;
    for node in batch.nodes().into_iter().flatten() {
        unsigned(name, node.length(), "value count")?;
        unsigned(name, node.null_count(), "null count")?;
    }
    let max_ratio = batch.compression().map(|compression| {
        if compression.codec() == CompressionType::ZSTD { ZSTD_MAX_RATIO } else { LZ4_MAX_RATIO }
    });
    for buffer in batch.buffers().into_iter().flatten() {
        let bytes = buffer_in(name, body, buffer)?;
        if let (Some(max_ratio), false) = (max_ratio, bytes.is_empty()) {
            check_unpacked_length(name, bytes, max_ratio)?;
        }
    }
    Ok(())
}

fn buffer_in<'a>(name: &str, body: &'a [u8], buffer: &ipc::Buffer) -> Result<&'a [u8], FormatError> {
    let (offset, length) = (buffer.offset(), buffer.length());
    let bytes = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
    bytes.and_then(|(offset, length)| body.get(offset..)?.get(..length)).ok_or_else(|| {
        FormatError::malformed(
            name,
            format!("a buffer of {length} bytes at {offset} lies outside its message's {} bytes", body.len()),
        )
    })
}

fn check_unpacked_length(name: &str, bytes: &[u8], max_ratio: u64) -> Result<(), FormatError> {
    let Some((prefix, packed)) = bytes.split_first_chunk::<LENGTH_PREFIX_BYTES>() else {
        let problem = format!("a compressed buffer has only {} bytes, so no length", bytes.len());
        return Err(FormatError::malformed(name, problem));
    };
    let most = (packed.len() as u64).saturating_mul(max_ratio).saturating_add(RATIO_SLACK_BYTES);
    match u64::try_from(i64::from_le_bytes(*prefix)) {
        Ok(claimed) if claimed > most => Err(FormatError::malformed(
            name,
            format!("a compressed buffer of {} bytes claims to unpack to {claimed}", packed.len()),
        )),
        // Below zero is the mark for a buffer left uncompressed; arrow refuses all such marks but -1.
        _ => Ok(()),
    }
}
