//! Small files of every type and codec, and what reading a file comes to.
#![allow(dead_code, clippy::unwrap_used, clippy::cast_possible_truncation)]

#[path = "../../../arrow-io/tests/every_type/mod.rs"]
pub mod every_type;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, RecordBatchIterator, StringArray, UInt16Array};
use arrow::datatypes::Schema;
use arrow_io::compare::{CompareOptions, compare};
use cb2t::{Choice, EncodeOptions, REGISTRY, ReadOptions, Registry, Table, TableWriter, WriterOptions};
use every_type::{edge_types, every_type};

/// A file and the table in it.
pub struct Sample {
    pub name: String,
    pub bytes: Vec<u8>,
    pub batch: RecordBatch,
}

/// Only the codec plain: what is stored can be found and changed.
pub static PLAIN: Registry = Registry::new(&[codec_plain::CODEC]);

pub fn options(rows: u64) -> WriterOptions {
    let encode =
        EncodeOptions { block_bytes: 1, tile_size: 512, bytes_tile_size: 4096, choice: Choice::Auto };
    WriterOptions { encode, row_group_rows: rows, created_by: "test".into(), ..WriterOptions::default() }
}

pub fn write(batch: &RecordBatch, registry: &'static Registry, options: WriterOptions) -> Vec<u8> {
    let mut writer = TableWriter::new(Vec::new(), batch.schema(), registry, options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap().0
}

/// Without metadata, so that most of a file is not its schema.
fn bare(batch: &RecordBatch) -> RecordBatch {
    let fields: Vec<_> = batch
        .schema()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_metadata(Default::default()))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec()).unwrap()
}

fn sample(name: &str, batch: &RecordBatch, options: WriterOptions) -> Sample {
    let batch = bare(batch);
    Sample { name: name.to_owned(), bytes: write(&batch, &REGISTRY, options), batch }
}

/// Every type in a file of its own, each of a few rows with a null.
pub fn every_type_alone() -> Vec<Sample> {
    let mut samples = Vec::new();
    for batch in [every_type(4), edge_types(4)] {
        for index in 0..batch.num_columns() {
            let one = batch.project(&[index]).unwrap();
            samples.push(sample(batch.schema().field(index).name(), &one, options(1 << 20)));
        }
    }
    samples
}

/// Every codec, several tiles, blocks and row groups, dictionaries of both kinds, and nothing at all.
pub fn shapes() -> Vec<Sample> {
    let mut samples = Vec::new();
    for codec in REGISTRY.iter() {
        let encode =
            EncodeOptions { choice: Choice::Prefer(codec), tile_size: 512, ..EncodeOptions::default() };
        let shorts: ArrayRef = Arc::new(UInt16Array::from_iter_values((0..520).map(|row| row / 40 * 3)));
        let floats: ArrayRef = every_type(40).column_by_name("float64").unwrap().clone();
        samples.push(sample(
            codec.name(),
            &RecordBatch::try_from_iter([("v", shorts)]).unwrap(),
            WriterOptions { encode, ..options(1 << 20) },
        ));
        samples.push(sample(
            &format!("{} floats", codec.name()),
            &RecordBatch::try_from_iter([("v", floats)]).unwrap(),
            WriterOptions { encode, ..options(1 << 20) },
        ));
    }
    samples.push(sample("two row groups", &two_columns(6), options(3)));
    samples.push(sample("dictionary", &words(60), options(30)));
    samples.push(sample("no rows", &two_columns(0), options(3)));
    let rows = arrow::array::RecordBatchOptions::new().with_row_count(Some(5));
    let none = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &rows).unwrap();
    samples.push(Sample {
        name: "no columns".into(),
        bytes: write(&none, &REGISTRY, options(3)),
        batch: none,
    });
    samples
}

/// Integers that are not null, and strings some of which are.
pub fn two_columns(rows: usize) -> RecordBatch {
    let numbers: ArrayRef =
        Arc::new(Int32Array::from_iter_values((0..i32::try_from(rows).unwrap()).map(|row| row * row)));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter((0..rows).map(|row| (row % 3 != 1).then(|| format!("t{row}")))));
    RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap()
}

/// Strings that repeat, so that they get a dictionary.
pub fn words(rows: usize) -> RecordBatch {
    let words = ["longer than codes", "and again", "a third word"];
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|row| words[row % 3])));
    RecordBatch::try_from_iter([("w", texts)]).unwrap()
}

/// What reading a file came to. A file that cannot be opened cannot be proven or read.
pub struct Outcome {
    pub verified: Result<(), String>,
    pub read: Result<Vec<RecordBatch>, String>,
}

/// Bytes that decoding may take.
pub const MEMORY_BYTES: u64 = 8 << 20;

/// Rows that are read at most: a file of a few bytes can rightly claim billions.
const MOST_ROWS: usize = 1 << 17;

/// Opens, proves and reads a file. A panic names `place`.
pub fn outcome(bytes: &[u8], place: &dyn Fn() -> String) -> Outcome {
    guarded(place, || match cb2t::open_bytes(bytes.to_vec()) {
        Ok(table) => Outcome { verified: verified(&table), read: read(&table) },
        Err(error) => Outcome { verified: Err(error.to_string()), read: Err(error.to_string()) },
    })
}

/// Asks a file, if it is one, for all that it says about itself.
pub fn look(bytes: &[u8], place: &dyn Fn() -> String) {
    guarded(place, || {
        let Ok(table) = cb2t::open_bytes(bytes.to_vec()) else { return };
        for column in 0..table.schema().fields().len() {
            let _ = (table.inspect(column), table.statistics(column), table.column_range(column));
        }
        let rows: Vec<u64> = [0, 3, 2].into_iter().filter(|&row| row < table.row_count()).collect();
        let _ = table.take(&rows, None);
    });
}

fn guarded<T>(place: &dyn Fn() -> String, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| panic!("panicked: {}", place()))
}

fn verified(table: &Table) -> Result<(), String> {
    match claimed_values(table) {
        Ok(values) if values > MOST_ROWS as u64 => Err("not tried: too many values".into()),
        _ => table.verify(&|_, _| {}).map(drop).map_err(|error| error.to_string()),
    }
}

/// Values and slots that the file claims.
fn claimed_values(table: &Table) -> Result<u64, cb2t::TableError> {
    let mut sum = table.row_count();
    for column in 0..table.schema().fields().len() {
        let section = &table.column(column)?.section;
        let slots = section.node_chunks.iter().map(|chunk| chunk.slot_count.get());
        sum = slots
            .chain(section.buffers.iter().map(|buffer| buffer.value_count.get()))
            .fold(sum, u64::saturating_add);
    }
    Ok(sum)
}

/// All batches, up to a bound.
pub fn read(table: &Table) -> Result<Vec<RecordBatch>, String> {
    let options = ReadOptions { memory_bytes: MEMORY_BYTES, ..ReadOptions::default() };
    let mut rows = 0;
    let mut batches = Vec::new();
    for batch in table.read(&options).map_err(|error| error.to_string())? {
        let batch = batch.map_err(|error| error.to_string())?;
        assert_eq!(&batch.schema(), table.schema());
        rows += batch.num_rows();
        batches.push(batch);
        if rows >= MOST_ROWS {
            break;
        }
    }
    Ok(batches)
}

/// Whether `batches` together are `batch`.
pub fn is_same(batches: &[RecordBatch], batch: &RecordBatch) -> bool {
    let schema = batches.first().map_or(batch.schema(), RecordBatch::schema);
    let mut found = RecordBatchIterator::new(batches.iter().cloned().map(Ok), schema);
    let mut expected = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    compare(&mut expected, &mut found, &CompareOptions::default()).unwrap().is_equal()
}

/// The golden files, by name.
pub fn golden_files() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/golden/v0");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let files =
        files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "cb2t"));
    files
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .collect()
}
