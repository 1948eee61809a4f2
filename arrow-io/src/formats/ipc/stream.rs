//! IPC streams.

use std::io::Read;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::MessageHeader;

use super::Batches;
use super::message::{Dictionaries, Message};
use crate::formats::FormatError;
use crate::formats::rows::RowWindow;

/// A stream after its schema.
pub(super) struct IpcStream {
    name: String,
    bytes: Box<dyn Read + Send>,
    schema: SchemaRef,
    dictionaries: Dictionaries,
}

impl IpcStream {
    pub(super) fn open(name: &str, mut bytes: Box<dyn Read + Send>) -> Result<Self, FormatError> {
        let first = Message::read(name, &mut bytes)?.ok_or_else(|| {
            FormatError::malformed(name, "the stream is empty; it should begin with a schema")
        })?;
        let schema = Arc::new(first.schema(name)?);
        Ok(Self { name: name.to_owned(), bytes, schema, dictionaries: Dictionaries::new() })
    }
}

impl Batches for IpcStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn next_batch(
        &mut self,
        columns: Option<&[usize]>,
        window: &mut RowWindow,
    ) -> Result<Option<RecordBatch>, FormatError> {
        let name = &self.name;
        while let Some(message) = Message::read(name, &mut self.bytes)? {
            match message.kind(name)? {
                MessageHeader::DictionaryBatch => {
                    message.add_dictionary(name, &self.schema, &mut self.dictionaries)?
                }
                MessageHeader::RecordBatch => {
                    if !window.skips(message.row_count(name)?) {
                        return message
                            .record_batch(name, &self.schema, &self.dictionaries, columns)
                            .map(Some);
                    }
                }
                other => {
                    let problem =
                        format!("a message holds {other:?} where a record batch or a dictionary should be");
                    return Err(FormatError::malformed(name, problem));
                }
            }
        }
        Ok(None)
    }
}
