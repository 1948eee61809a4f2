//! Rows of types that Arrow itself has no `take` for, or refuses to build anew.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation)]

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::*;
use arrow::buffer::Buffer;
use arrow::datatypes::*;
use arrow_io::compare::{CompareOptions, compare};
use arrow_io::table::{ReadOptions, Table, TableWriter, WriterOptions};
use codecs::REGISTRY;
use container::Source;

/// Lists of every kind around `child`, of a field that must not be null: two slots, three slots, none.
fn lists_of(child: &ArrayRef) -> Vec<ArrayRef> {
    assert_eq!(child.len(), 6);
    let item = Arc::new(Field::new("item", child.data_type().clone(), false));
    let list = |data_type, buffers: Vec<Buffer>, length| {
        let data = ArrayData::builder(data_type).len(length).buffers(buffers).add_child_data(child.to_data());
        make_array(data.build().unwrap())
    };
    vec![
        list(DataType::List(item.clone()), vec![Buffer::from_vec(vec![0_i32, 2, 5, 5])], 3),
        list(DataType::LargeList(item.clone()), vec![Buffer::from_vec(vec![0_i64, 2, 5, 5])], 3),
        list(
            DataType::ListView(item.clone()),
            vec![Buffer::from_vec(vec![0_i32, 2, 5]), Buffer::from_vec(vec![2_i32, 3, 0])],
            3,
        ),
        list(DataType::FixedSizeList(item, 2), vec![], 3),
    ]
}

/// Values that are null, though no validity says so.
fn secretly_null() -> Vec<ArrayRef> {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let fields = UnionFields::from_fields([Field::new("n", DataType::Int32, true)]);
    let offsets = vec![0, 1, 2, 2, 1, 0].into();
    let union = UnionArray::try_new(fields, vec![0_i8; 6].into(), Some(offsets), vec![numbers]).unwrap();
    vec![Arc::new(NullArray::new(6)), Arc::new(union)]
}

#[test]
fn rows_of_lists_whose_items_are_null_without_a_validity_can_be_taken() {
    for lists in secretly_null().iter().flat_map(lists_of) {
        let name = lists.data_type().to_string();
        let batch = RecordBatch::try_from_iter([("l", lists)]).unwrap();
        for row_group_rows in [9, 1] {
            let options = WriterOptions { row_group_rows, ..WriterOptions::default() };
            let mut writer = TableWriter::new(Vec::new(), batch.schema(), &REGISTRY, options).unwrap();
            writer.write(&batch).unwrap();
            let bytes = writer.finish().unwrap().0;
            let table = Table::from_source(Source::memory(bytes), &REGISTRY).unwrap();
            table.verify(&|_, _| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
            for rows in [vec![0, 1, 2], vec![2, 0, 1, 1], vec![1]] {
                let taken = table.take(&rows, None).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(taken.num_rows(), rows.len());
                for (place, &row) in rows.iter().enumerate() {
                    assert_row(&taken.slice(place, 1), &batch.slice(row as usize, 1), &name);
                }
            }
        }
    }
}

fn assert_row(found: &RecordBatch, expected: &RecordBatch, name: &str) {
    let reader = |batch: &RecordBatch| RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    let comparison = compare(&mut reader(expected), &mut reader(found), &CompareOptions::default()).unwrap();
    assert!(comparison.is_equal(), "{name}: {comparison}");
}

/// A file that counts the bytes that are read of it.
struct Counted {
    file: Cursor<Vec<u8>>,
    read_bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        let length = self.file.read(room)?;
        self.read_bytes.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

impl Seek for Counted {
    fn seek(&mut self, place: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(place)
    }
}

#[test]
fn of_a_block_only_its_head_and_the_wanted_tiles_are_read() {
    const ROWS: u64 = 200_000;
    let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..ROWS).map(|row| row * row * row)));
    let batch = RecordBatch::try_from_iter([("n", numbers.clone())]).unwrap();
    let mut writer =
        TableWriter::new(Vec::new(), batch.schema(), &REGISTRY, WriterOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    let file = writer.finish().unwrap().0;
    assert!(file.len() > 500_000, "one block, of hundreds of kilobytes");
    let read_bytes = Arc::new(AtomicU64::new(0));
    let counted = Counted { file: Cursor::new(file), read_bytes: Arc::clone(&read_bytes) };
    let table = Table::from_source(Source::stream(counted).unwrap(), &REGISTRY).unwrap();
    table.column(0).unwrap();
    let bytes_of = |rows: &[u64]| {
        read_bytes.store(0, Ordering::Relaxed);
        let taken = table.take(rows, None).unwrap();
        let expected = UInt64Array::from_iter_values(rows.iter().map(|row| row * row * row));
        assert_eq!(taken.column(0).as_primitive::<UInt64Type>(), &expected);
        read_bytes.load(Ordering::Relaxed)
    };
    let (first, last) = (bytes_of(&[0]), bytes_of(&[ROWS - 1]));
    let both = bytes_of(&[0, ROWS - 1]);
    assert!(first < 20_000 && last < 20_000, "{first} and {last} bytes for a row");
    assert!(both < first + last, "{both} bytes for two rows of one block: its head twice?");
    let mut options = ReadOptions { rows: Some(1000..3000), ..ReadOptions::default() };
    options.columns = Some(vec![0]);
    read_bytes.store(0, Ordering::Relaxed);
    let rows: usize = table.read(&options).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 2000);
    let range = read_bytes.load(Ordering::Relaxed);
    assert!(range < 40_000, "{range} bytes for 2000 rows");
}
