//! Any Arrow table: written, proven, and read back equal.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use arrow::array::{RecordBatch, RecordBatchIterator};
use arrow_io::compare::{CompareOptions, compare};
use cb2t::{
    Choice, DictionaryLimits, EncodeOptions, REGISTRY, ReadOptions, Table, TableError, TableWriter,
    WriterOptions,
};

use crate::arrays::batch;

/// Makes a table and options of `input`, writes it, proves the file and compares what it holds.
pub fn round_trip(input: &[u8]) {
    crate::work_alone();
    let mut unstructured = Unstructured::new(input);
    let Ok(options) = options(&mut unstructured) else { return };
    let Ok(batch) = batch(&mut unstructured) else { return };
    let cut = unstructured.int_in_range(0..=batch.num_rows()).unwrap_or(0);
    let parts = [batch.slice(0, cut), batch.slice(cut, batch.num_rows() - cut)];
    if let Some(bytes) = written(&parts, options) {
        assert_holds(bytes, &batch);
    }
}

/// The file of `batches`; `None` where the format does not hold the schema, or the batches break it.
pub fn written(batches: &[RecordBatch], options: WriterOptions) -> Option<Vec<u8>> {
    let mut writer = match TableWriter::new(Vec::new(), batches[0].schema(), &REGISTRY, options) {
        Err(TableError::Schema { .. } | TableError::UnsupportedType { .. }) => return None,
        writer => writer.expect("a writer for every other schema"),
    };
    for batch in batches {
        match writer.write(batch) {
            // Arrow lets a dictionary's values be null although the field is not.
            Err(TableError::UnexpectedNull { .. }) => return None,
            written => written.expect("every other batch can be written"),
        }
    }
    Some(writer.finish().expect("memory can be written").0)
}

/// Proves the file `bytes` and compares all that it holds with `batch`.
pub fn assert_holds(bytes: Vec<u8>, batch: &RecordBatch) {
    let table = cb2t::open_bytes(bytes).expect("an own file opens");
    let verified = table.verify(&|_, _| {});
    assert!(verified.is_ok(), "an own file is not sound: {verified:?}: {:?}", batch.schema());
    assert_same(&table, batch);
    let rows = batch.num_rows();
    let part = rows / 3..rows - rows / 4;
    let options = ReadOptions {
        rows: Some(part.start as u64..part.end as u64),
        batch_rows: 7,
        ..ReadOptions::default()
    };
    compare_with(&table, &options, &batch.slice(part.start, part.len()));
}

fn assert_same(table: &Table, batch: &RecordBatch) {
    assert_eq!(table.schema(), &batch.schema());
    compare_with(table, &ReadOptions::default(), batch);
}

fn compare_with(table: &Table, options: &ReadOptions, batch: &RecordBatch) {
    let mut expected = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    let mut found = table.read(options).expect("an own file can be read");
    let comparison = compare(&mut expected, &mut found, &CompareOptions::default()).expect("a comparison");
    assert!(comparison.is_equal(), "{comparison}");
}

fn options(unstructured: &mut Unstructured<'_>) -> Result<WriterOptions> {
    let codecs: Vec<_> = REGISTRY.iter().collect();
    let choice = match unstructured.int_in_range(0..=codecs.len())? {
        0 => Choice::Auto,
        index => Choice::Prefer(codecs[index - 1]),
    };
    let encode = EncodeOptions {
        block_bytes: *unstructured.choose(&[1, 4096, 2 << 20])?,
        tile_size: *unstructured.choose(&[512, 1024])?,
        bytes_tile_size: *unstructured.choose(&[4096, 16384])?,
        choice,
    };
    let limits = *unstructured.choose(&[(0, 0), (3, 20), (1 << 20, 32 << 20)])?;
    Ok(WriterOptions {
        encode,
        row_group_rows: *unstructured.choose(&[1, 7, 100, 1 << 20])?,
        dictionary_limits: DictionaryLimits { entries: limits.0, bytes: limits.1 },
        ..WriterOptions::default()
    })
}

/// A table of the batches of a reader, small enough to be held twice.
pub fn collected(reader: impl arrow::array::RecordBatchReader) -> Option<RecordBatch> {
    let schema = reader.schema();
    let mut batches = Vec::new();
    let mut rows = 0;
    for batch in reader {
        let batch = batch.ok()?;
        rows += batch.num_rows();
        if rows > 1 << 16 {
            return None;
        }
        batches.push(batch);
    }
    arrow::compute::concat_batches(&Arc::clone(&schema), &batches).ok()
}
