//! Any bytes as a `.cb2t` file: whatever they are, opening, proving and reading them gives an error or values.

use arrow::array::RecordBatchReader;
use cb2t::{ReadOptions, Table};
use codec_core::conformance::Random;

use crate::surgery::mutate::mutate;

/// Bytes that decoding may take in one go.
const MEMORY_BYTES: u64 = 16 << 20;

/// A file that claims more values than this is read in part only: constant blocks claim billions in a few bytes.
const MANY_VALUES: u64 = 1 << 20;

/// Opens `bytes` and does all that can be done with a table.
///
/// # Panics
/// Where a file that was proven cannot be read.
pub fn open_file(bytes: &[u8]) {
    crate::work_alone();
    let Ok(table) = cb2t::open_bytes(bytes.to_vec()) else { return };
    let small = values(&table).is_some_and(|values| values < MANY_VALUES);
    let sound = small && table.verify(&|_, _| {}).is_ok();
    for column in 0..table.schema().fields().len() {
        let inspected = table.inspect(column);
        assert!(inspected.is_ok() || !sound, "a sound file cannot be inspected: {inspected:?}");
        let _ = table.statistics(column);
        let _ = table.column_range(column);
    }
    let options = ReadOptions { memory_bytes: MEMORY_BYTES, ..ReadOptions::default() };
    let error = first_error(&table, &options);
    assert!(error.is_none() || !sound, "a sound file cannot be read: {error:?}");
    take_some(&table, bytes.len() as u64, sound);
}

/// Values and slots that the file claims to hold; `None` where they cannot be known.
fn values(table: &Table) -> Option<u64> {
    let mut sum = table.row_count();
    for column in 0..table.schema().fields().len() {
        let section = &table.column(column).ok()?.section;
        let slots = section.node_chunks.iter().map(|chunk| chunk.slot_count.get());
        let values = section.buffers.iter().map(|buffer| buffer.value_count.get());
        sum = slots.chain(values).fold(sum, u64::saturating_add);
    }
    Some(sum)
}

/// The first error of reading the first rows.
fn first_error(table: &Table, options: &ReadOptions) -> Option<String> {
    let mut batches = match table.read(options) {
        Ok(batches) => batches,
        Err(error) => return Some(error.to_string()),
    };
    let schema = batches.schema();
    let mut rows = 0;
    while rows < MANY_VALUES {
        match batches.next()? {
            Ok(batch) => {
                assert_eq!(batch.schema(), schema);
                rows += batch.num_rows() as u64;
            }
            Err(error) => return Some(error.to_string()),
        }
    }
    None
}

fn take_some(table: &Table, salt: u64, sound: bool) {
    let row_count = table.row_count();
    if row_count == 0 {
        return;
    }
    let mut random = Random(salt);
    let rows: Vec<u64> = (0..5).map(|_| random.draw() % row_count).collect();
    match table.take(&rows, None) {
        Ok(batch) => assert_eq!(batch.num_rows(), rows.len()),
        Err(error) => assert!(!sound, "rows of a sound file cannot be taken: {error}: {:?}", table.schema()),
    }
}

/// Damages `data[..size]` within its structures, with the checksums made right. `None` where it is no file.
pub fn mutate_file(data: &mut [u8], size: usize, seed: u32) -> Option<usize> {
    mutate(&mut data[..size], &mut Random(seed.into()))?;
    Some(size)
}
