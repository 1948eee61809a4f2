//! Single rows out of a large file, and opening a wide one.

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema};
use cb2t::{Table, WriterOptions};
use codec_core::OwnedValues;
use codec_core::conformance::Random;

use crate::clock::time;
use crate::columns::{BLOCK_LEN, uniform};
use crate::report::Row;

/// Rows of the file that rows are taken from: the size of lineorder at scale factor 1.
pub const ROWS: usize = 12 * BLOCK_LEN;
/// Columns of the wide file.
pub const WIDE_COLUMNS: usize = 14_000;

/// Writes a file of [`ROWS`] rows of one u32 column of 20 bits.
///
/// # Errors
/// It cannot be written.
pub fn write_tall(path: &Path) -> Result<(), Box<dyn Error>> {
    let OwnedValues::U32(values) = uniform::<u32>(20).values else { return Err("not u32".into()) };
    let array: ArrayRef = Arc::new(UInt32Array::from(values));
    let batch = RecordBatch::try_from_iter([("value", array)])?;
    let batches = (0..ROWS / BLOCK_LEN).map(|_| Ok(batch.clone()));
    cb2t::write(path, batch.schema(), batches, WriterOptions::default())?;
    Ok(())
}

/// Writes a file of [`WIDE_COLUMNS`] columns and ten rows.
///
/// # Errors
/// It cannot be written.
pub fn write_wide(path: &Path) -> Result<(), Box<dyn Error>> {
    let fields: Vec<Field> =
        (0..WIDE_COLUMNS).map(|index| Field::new(format!("column_{index}"), DataType::Int32, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let array: ArrayRef = Arc::new(Int32Array::from_iter_values(0..10));
    let batch = RecordBatch::try_new(schema.clone(), vec![array; WIDE_COLUMNS])?;
    cb2t::write(path, schema, [Ok(batch)], WriterOptions::default())?;
    Ok(())
}

/// 1,000 random rows, as they come.
#[must_use]
pub fn random_rows() -> Vec<u64> {
    let mut random = Random(1);
    (0..1000).map(|_| random.draw() % ROWS as u64).collect()
}

/// Opens and reads the schema of the wide file, takes rows from the tall one; both lie in the page cache.
///
/// # Errors
/// The files cannot be written or read.
pub fn measure(budget: Duration) -> Result<Vec<Row>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (tall, wide) = (folder.path().join("tall.cb2t"), folder.path().join("wide.cb2t"));
    write_tall(&tall)?;
    write_wide(&wide)?;
    let rows = random_rows();
    let table = cb2t::open(&tall)?;
    // SAFETY: the file is ours and stays as it is while the table lives.
    let mapped = unsafe { cb2t::open_mapped(&tall) }?;
    let take = |table: &Table| black_box(table.take(&rows, Some(vec![0]))).is_ok();
    let open =
        || black_box(cb2t::open(&wide)).is_ok_and(|table| table.schema().fields().len() == WIDE_COLUMNS);
    if !take(&table) || !take(&mapped) || !open() || File::open(&tall)?.metadata()?.len() == 0 {
        return Err("the files cannot be read".into());
    }
    let row = |data: &str, what: &str, timing| Row::time("cb2t", "", data, what, timing);
    Ok(vec![
        row("6.3 M rows u32 of 20 bits", "take 1000", time(budget, || assert!(take(&table)))),
        row("6.3 M rows u32 of 20 bits, map", "take 1000", time(budget, || assert!(take(&mapped)))),
        row("14,000 columns", "open + schema", time(budget, || assert!(open()))),
    ])
}
