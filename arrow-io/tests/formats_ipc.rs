//! Arrow IPC files and streams: ranges, dictionaries, compression, slices, damage.
#![cfg(feature = "formats")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod every_type;
mod memory;

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::*;
use arrow_io::formats::{
    ArrowCompression, Format, FormatError, Input, ReadOptions, WriteOptions, open, unsupported_columns,
};

use every_type::{columns_where, edge_types, every_type};
use memory::{assert_equal, error_of, read, shared, stream, table, write};

const BOTH: [Format; 2] = [Format::ArrowFile, Format::ArrowStream];

fn cut(batch: &RecordBatch, piece_rows: usize) -> Vec<RecordBatch> {
    let starts = (0..batch.num_rows()).step_by(piece_rows);
    starts.map(|start| batch.slice(start, piece_rows.min(batch.num_rows() - start))).collect()
}

fn numbers(row_count: i64) -> RecordBatch {
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(0..row_count));
    let t: ArrayRef = Arc::new(StringArray::from_iter_values((0..row_count).map(|row| format!("t{row}"))));
    RecordBatch::try_from_iter([("n", n), ("t", t)]).unwrap()
}

#[test]
fn every_type_comes_back_with_and_without_compression() {
    let batch = every_type(100);
    for format in BOTH {
        for arrow_compression in [None, Some(ArrowCompression::Lz4), Some(ArrowCompression::Zstd)] {
            let options = WriteOptions { arrow_compression, ..WriteOptions::default() };
            let bytes = write(&cut(&batch, 33), format, &options).unwrap();
            assert_equal(&batch, &read(stream(bytes), &ReadOptions::default()).unwrap());
        }
    }
}

#[test]
fn compression_makes_files_smaller() {
    let size = |arrow_compression| {
        let options = WriteOptions { arrow_compression, ..WriteOptions::default() };
        write(&[numbers(10_000)], Format::ArrowFile, &options).unwrap().len()
    };
    assert!(size(Some(ArrowCompression::Zstd)) < size(None) / 2);
    assert!(size(Some(ArrowCompression::Lz4)) < size(None));
}

#[test]
fn row_ranges_and_columns_select_rows_and_columns() {
    let pieces = cut(&numbers(1_000), 300);
    for format in BOTH {
        let bytes = write(&pieces, format, &WriteOptions::default()).unwrap();
        for rows in [0..1_000, 0..1, 299..301, 650..950, 999..5_000, 1_000..1_001, 700..700] {
            let options = ReadOptions {
                rows: Some(rows.clone()),
                columns: Some(vec!["t".to_owned(), "n".to_owned()]),
                batch_rows: 64,
                ..ReadOptions::default()
            };
            let reader = open(stream(bytes.clone()), &options).unwrap();
            let expected: Vec<i64> =
                (0..1_000).skip(rows.start as usize).take((rows.end - rows.start) as usize).collect();
            if format == Format::ArrowFile {
                assert_eq!(reader.row_count(), Some(expected.len() as u64));
            }
            let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
            assert!(batches.iter().all(|batch| batch.num_rows() <= 64));
            let found: Vec<i64> = batches
                .iter()
                .flat_map(|batch| batch.column(1).as_primitive::<Int64Type>().values().to_vec())
                .collect();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn the_shared_arrow_file_reads_by_its_extension() {
    let Some(path) = shared("vega/flights-200k.arrow") else { return };
    let options = ReadOptions { rows: Some(199_990..300_000), ..ReadOptions::default() };
    let reader = open(Input::Path(path), &options).unwrap();
    assert_eq!(reader.row_count(), Some(10));
    assert_eq!(table(reader).unwrap().num_rows(), 10);
}

#[test]
fn a_stream_under_a_file_extension_is_read_as_what_it_is() {
    let folder = tempfile::TempDir::new().unwrap();
    let batch = numbers(5);
    for (written, name) in [(Format::ArrowStream, "t.arrow"), (Format::ArrowFile, "t.arrows")] {
        let path = folder.path().join(name);
        std::fs::write(
            &path,
            write(std::slice::from_ref(&batch), written, &WriteOptions::default()).unwrap(),
        )
        .unwrap();
        assert_equal(&batch, &read(Input::Path(path), &ReadOptions::default()).unwrap());
    }
}

fn dictionary_batch(values: &[Option<&str>], keys: Vec<Option<i8>>) -> RecordBatch {
    let values: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
    let flat = DictionaryArray::<Int8Type>::new(Int8Array::from(keys), values);
    let item = Arc::new(Field::new_list_field(flat.data_type().clone(), true));
    let lengths = std::iter::repeat_n(1, flat.len());
    let nested = ListArray::new(item, OffsetBuffer::from_lengths(lengths), Arc::new(flat.clone()), None);
    let columns: [(&str, ArrayRef, bool); 2] =
        [("flat", Arc::new(flat), true), ("nested", Arc::new(nested), true)];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

#[test]
fn dictionaries_that_change_from_batch_to_batch_are_unified_in_a_file() {
    let batches = [
        dictionary_batch(&[Some("a"), Some("b")], vec![Some(1), None, Some(0)]),
        dictionary_batch(&[Some("c"), None, Some("a")], vec![Some(0), Some(1), Some(2), None]),
        dictionary_batch(&[Some("c"), None, Some("a")], vec![Some(2)]),
        dictionary_batch(&[], vec![None]),
    ];
    let whole = arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
    for format in BOTH {
        let bytes = write(&batches, format, &WriteOptions::default()).unwrap();
        assert_equal(&whole, &read(stream(bytes), &ReadOptions::default()).unwrap());
    }
}

#[test]
fn a_dictionary_that_outgrows_its_keys_is_an_error_with_a_remedy() {
    let batch = |from: usize| {
        let texts: Vec<String> = (from..from + 100).map(|value| format!("v{value}")).collect();
        let values: Vec<Option<&str>> = texts.iter().map(|text| Some(text.as_str())).collect();
        dictionary_batch(&values, (0..100).map(Some).collect())
    };
    let batches = [batch(0), batch(100)];
    assert!(write(&batches, Format::ArrowStream, &WriteOptions::default()).is_ok());
    let error = write(&batches, Format::ArrowFile, &WriteOptions::default()).unwrap_err().to_string();
    assert!(error.contains("200 values over all batches, more than Int8 keys can number"), "{error}");
}

/// `arrow-ipc` 59.3 writes the wrong rows of a union inside a sliced list.
#[test]
fn slices_of_lists_of_unions_keep_their_values() {
    let batch = columns_where(&edge_types(60), |name| name == "list_of_union");
    for format in BOTH {
        let bytes = write(&cut(&batch, 13), format, &WriteOptions::default()).unwrap();
        assert_equal(&batch, &read(stream(bytes), &ReadOptions::default()).unwrap());
    }
}

#[test]
fn slices_of_view_columns_do_not_write_the_whole_column_each_time() {
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(
        (0..10_000).map(|row| format!("a text that is longer than a view can hold inline {row}")),
    ));
    let batch = RecordBatch::try_from_iter([("t", texts)]).unwrap();
    for format in BOTH {
        let whole = write(std::slice::from_ref(&batch), format, &WriteOptions::default()).unwrap();
        let pieces = write(&cut(&batch, 100), format, &WriteOptions::default()).unwrap();
        assert!(pieces.len() < whole.len() * 2, "{} against {}", pieces.len(), whole.len());
        assert_equal(&batch, &read(stream(pieces), &ReadOptions::default()).unwrap());
    }
}

#[test]
fn a_stream_that_ends_inside_a_message_is_an_error() {
    let bytes = write(&[numbers(100)], Format::ArrowStream, &WriteOptions::default()).unwrap();
    for length in [9, 100, bytes.len() - 100] {
        let error = error_of(read(stream(&bytes[..length]), &ReadOptions::default()));
        assert!(error.contains("but the file ends after"), "{error}");
    }
    // Without the mark of the end, which writers may leave out.
    assert_eq!(read(stream(&bytes[..bytes.len() - 8]), &ReadOptions::default()).unwrap().num_rows(), 100);
}

#[test]
fn a_truncated_file_is_an_error() {
    let bytes = write(&[numbers(100)], Format::ArrowFile, &WriteOptions::default()).unwrap();
    let error = error_of(read(stream(&bytes[..bytes.len() - 20]), &ReadOptions::default()));
    assert!(error.contains("does not end in ARROW1"), "{error}");
    let error = error_of(read(stream(&bytes[..8]), &ReadOptions::default()));
    assert!(error.contains("too few for an Arrow file"), "{error}");
}

#[test]
fn a_footer_longer_than_the_file_is_an_error() {
    let mut bytes = write(&[numbers(1)], Format::ArrowFile, &WriteOptions::default()).unwrap();
    let at = bytes.len() - 10;
    bytes[at..at + 4].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    let error = error_of(read(stream(bytes), &ReadOptions::default()));
    assert!(error.contains("a footer of 2147483647 bytes does not fit"), "{error}");
}

#[test]
fn a_compressed_buffer_cannot_claim_more_than_it_can_hold() {
    let batch =
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![7; 1_000])) as ArrayRef)]).unwrap();
    let options = WriteOptions { arrow_compression: Some(ArrowCompression::Zstd), ..WriteOptions::default() };
    let bytes = write(&[batch], Format::ArrowStream, &options).unwrap();
    let length = 8_000_i64.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == length).unwrap();
    let mut claimed = bytes.clone();
    claimed[at..at + 8].copy_from_slice(&(1_i64 << 50).to_le_bytes());
    let error = error_of(read(stream(claimed), &ReadOptions::default()));
    assert!(error.contains("claims to unpack to 1125899906842624"), "{error}");
}

/// Damaged bytes must give an error or other values, but neither a panic nor a wait. Such files make the Arrow and Parquet
/// readers panic, which this test shows to be caught.
#[test]
fn damaged_files_never_panic() {
    let batch = every_type(20);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let mut caught_panics = 0;
    for format in [Format::ArrowFile, Format::ArrowStream, Format::Parquet] {
        let refused: Vec<String> =
            unsupported_columns(format, &batch.schema()).into_iter().map(|column| column.path).collect();
        let kept = columns_where(&batch, |name| !refused.iter().any(|path| path == name));
        let whole = write(&[kept], format, &WriteOptions::default()).unwrap();
        for _ in 0..400 {
            let mut bytes = whole.clone();
            for _ in 0..=random() % 3 {
                let at = random() % bytes.len();
                bytes[at] = [0, 0xff, bytes[at] ^ 1, random() as u8][random() % 4];
            }
            if random() % 8 == 0 {
                bytes.truncate(random() % bytes.len());
            }
            let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
            if let Err(FormatError::Panic { .. }) = read(stream(bytes), &options) {
                caught_panics += 1;
            }
        }
    }
    assert!(caught_panics > 0, "if the libraries no longer panic, the guard can go");
}
