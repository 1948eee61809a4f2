//! Writing IPC files and streams.

use std::io::{BufWriter, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};

use super::compact::compacted;
use super::dictionaries::GrowingDictionaries;
use crate::formats::options::{ArrowCompression, WriteOptions};
use crate::formats::sink::{OUTPUT, Sink};
use crate::formats::{Format, FormatError};

type Bytes = BufWriter<Box<dyn Write + Send>>;

fn ipc_options(options: &WriteOptions) -> Result<IpcWriteOptions, ArrowError> {
    let compression = options.arrow_compression.map(|compression| match compression {
        ArrowCompression::Lz4 => CompressionType::LZ4_FRAME,
        ArrowCompression::Zstd => CompressionType::ZSTD,
    });
    IpcWriteOptions::default().try_with_compression(compression)
}

fn flush(bytes: &mut Bytes) -> Result<(), FormatError> {
    bytes.flush().map_err(|error| FormatError::io(OUTPUT, error))
}

/// Writes an IPC stream. A dictionary that changes from batch to batch is written again.
pub(in crate::formats) struct StreamSink {
    writer: StreamWriter<Bytes>,
}

fn stream_error(source: ArrowError) -> FormatError {
    FormatError::Write { format: Format::ArrowStream, source }
}

impl StreamSink {
    pub(in crate::formats) fn new(
        output: Box<dyn Write + Send>,
        schema: &Schema,
        options: &WriteOptions,
    ) -> Result<Self, FormatError> {
        let options = ipc_options(options).map_err(stream_error)?;
        let writer = StreamWriter::try_new_with_options(BufWriter::new(output), schema, options);
        Ok(Self { writer: writer.map_err(stream_error)? })
    }
}

impl Sink for StreamSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        let batch = compacted(batch).map_err(stream_error)?;
        self.writer.write(&batch).map_err(stream_error)
    }

    fn finish(mut self: Box<Self>) -> Result<(), FormatError> {
        self.writer.finish().map_err(stream_error)?;
        flush(self.writer.get_mut())
    }
}

/// Writes an IPC file. A file can extend a dictionary but not replace it, so dictionaries grow over the batches.
pub(in crate::formats) struct FileSink {
    writer: FileWriter<Bytes>,
    dictionaries: GrowingDictionaries,
}

fn file_error(source: ArrowError) -> FormatError {
    FormatError::Write { format: Format::ArrowFile, source }
}

impl FileSink {
    pub(in crate::formats) fn new(
        output: Box<dyn Write + Send>,
        schema: &Schema,
        options: &WriteOptions,
    ) -> Result<Self, FormatError> {
        let options =
            ipc_options(options).map_err(file_error)?.with_dictionary_handling(DictionaryHandling::Delta);
        let writer =
            FileWriter::try_new_with_options(BufWriter::new(output), schema, options).map_err(file_error)?;
        Ok(Self { writer, dictionaries: GrowingDictionaries::default() })
    }
}

impl Sink for FileSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        let batch =
            compacted(batch).and_then(|batch| self.dictionaries.unified(&batch)).map_err(file_error)?;
        self.writer.write(&batch).map_err(file_error)
    }

    fn finish(mut self: Box<Self>) -> Result<(), FormatError> {
        self.writer.finish().map_err(file_error)?;
        flush(self.writer.get_mut())
    }
}
