//! Files in memory, and where the shared data is.
#![allow(dead_code, clippy::unwrap_used)]

use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow::array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow::compute::concat_batches;
use arrow_io::compare::{CompareOptions, Comparison, compare};
use arrow_io::formats::{BoxedReader, Format, FormatError, Input, ReadOptions, WriteOptions, create, open};

/// Bytes that a sink has written, readable while the sink holds its end.
#[derive(Clone, Default)]
pub struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn write(
    batches: &[RecordBatch],
    format: Format,
    options: &WriteOptions,
) -> Result<Vec<u8>, FormatError> {
    let written = Written::default();
    let mut sink = create(Box::new(written.clone()), format, batches[0].schema(), options)?;
    for batch in batches {
        sink.write(batch)?;
    }
    sink.finish()?;
    Ok(written.bytes())
}

pub fn stream(bytes: impl Into<Vec<u8>>) -> Input {
    Input::Stream(Box::new(Cursor::new(bytes.into())))
}

/// All batches of a reader as one.
pub fn table(reader: BoxedReader) -> Result<RecordBatch, FormatError> {
    let schema = reader.schema();
    let mut batches = Vec::new();
    for batch in reader {
        batches.push(batch.map_err(|error| FormatError::from_reader("test", error))?);
    }
    Ok(concat_batches(&schema, &batches).unwrap())
}

pub fn read(input: Input, options: &ReadOptions) -> Result<RecordBatch, FormatError> {
    table(open(input, options)?)
}

/// The text of the error; panics if there is none.
pub fn error_of(result: Result<RecordBatch, FormatError>) -> String {
    result.unwrap_err().to_string()
}

pub fn one(batch: &RecordBatch) -> impl RecordBatchReader + use<> {
    RecordBatchIterator::new(vec![Ok(batch.clone())].into_iter(), batch.schema())
}

pub fn compared(left: &RecordBatch, right: &RecordBatch, options: &CompareOptions) -> Comparison {
    compare(&mut one(left), &mut one(right), options).unwrap()
}

/// Panics with the differences unless the two tables are equal in everything.
pub fn assert_equal(left: &RecordBatch, right: &RecordBatch) {
    let comparison = compared(left, right, &CompareOptions::default());
    assert!(comparison.is_equal(), "{comparison}");
}

/// A file of the shared data; `None`, with a printed reason, where it is missing.
pub fn shared(path: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("CB2T_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from);
    let found = folder.join(path);
    if !found.exists() {
        eprintln!("skipped: {} is missing; set CB2T_DATA to the folder of test data", found.display());
        return None;
    }
    Some(found)
}
