//! Parquet: options, ranges, and the shared collection of odd and broken files.
#![cfg(feature = "formats")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod every_type;
mod memory;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use arrow_io::formats::{
    Format, FormatError, Input, ParquetCompression, ReadOptions, WriteOptions, open, unsupported_columns,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use tempfile::TempDir;

use every_type::{columns_where, every_type};
use memory::{assert_equal, error_of, read, shared, stream, table, write};

fn numbers(row_count: i64) -> RecordBatch {
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(0..row_count));
    let t: ArrayRef = Arc::new(StringArray::from_iter_values((0..row_count).map(|row| format!("t{row}"))));
    let d: ArrayRef = Arc::new(Float64Array::from_iter_values((0..row_count).map(|_| 0.5)));
    RecordBatch::try_from_iter([("n", n), ("t", t), ("d", d)]).unwrap()
}

fn parquet_file(folder: &TempDir, batch: &RecordBatch, options: &WriteOptions) -> PathBuf {
    let path = folder.path().join("t.parquet");
    std::fs::write(&path, write(std::slice::from_ref(batch), Format::Parquet, options).unwrap()).unwrap();
    path
}

#[test]
fn every_compression_comes_back_and_is_what_was_asked_for() {
    let batch = numbers(1_000);
    let folder = TempDir::new().unwrap();
    for (parquet_compression, name) in [
        (ParquetCompression::None, "UNCOMPRESSED"),
        (ParquetCompression::Snappy, "SNAPPY"),
        (ParquetCompression::Gzip, "GZIP"),
        (ParquetCompression::Zstd(3), "ZSTD"),
    ] {
        let path =
            parquet_file(&folder, &batch, &WriteOptions { parquet_compression, ..WriteOptions::default() });
        let metadata = SerializedFileReader::new(File::open(&path).unwrap()).unwrap().metadata().clone();
        let found = format!("{:?}", metadata.row_group(0).column(0).compression());
        assert!(found.starts_with(name), "{found}");
        assert_equal(&batch, &read(Input::Path(path), &ReadOptions::default()).unwrap());
    }
    let options =
        WriteOptions { parquet_compression: ParquetCompression::Zstd(99), ..WriteOptions::default() };
    assert!(write(&[batch], Format::Parquet, &options).is_err());
}

#[test]
fn row_groups_end_at_the_length_asked_for() {
    let folder = TempDir::new().unwrap();
    let options = WriteOptions { parquet_row_group_rows: 300, ..WriteOptions::default() };
    let path = parquet_file(&folder, &numbers(1_000), &options);
    let metadata = SerializedFileReader::new(File::open(path).unwrap()).unwrap().metadata().clone();
    let row_counts: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(row_counts, [300, 300, 300, 100]);
}

#[test]
fn row_ranges_and_columns_select_rows_and_columns() {
    let folder = TempDir::new().unwrap();
    let options = WriteOptions { parquet_row_group_rows: 300, ..WriteOptions::default() };
    let path = parquet_file(&folder, &numbers(1_000), &options);
    for rows in [0..1_000, 0..1, 299..301, 650..950, 999..5_000, 1_000..1_001, 700..700] {
        let options = ReadOptions {
            rows: Some(rows.clone()),
            columns: Some(vec!["t".to_owned(), "n".to_owned()]),
            batch_rows: 64,
            ..ReadOptions::default()
        };
        let reader = open(Input::Path(path.clone()), &options).unwrap();
        let expected: Vec<i64> =
            (0..1_000).skip(rows.start as usize).take((rows.end - rows.start) as usize).collect();
        assert_eq!(reader.row_count(), Some(expected.len() as u64));
        let batch = table(reader).unwrap();
        assert_eq!(batch.schema().field(0).name(), "t");
        assert_eq!(batch.column(1).as_primitive::<Int64Type>().values(), &expected[..]);
    }
}

#[test]
fn row_groups_before_the_range_are_not_read() {
    let folder = TempDir::new().unwrap();
    let options = WriteOptions { parquet_row_group_rows: 500, ..WriteOptions::default() };
    let path = parquet_file(&folder, &numbers(1_000), &options);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4..2_000].fill(0xee);
    std::fs::write(&path, bytes).unwrap();
    assert!(read(Input::Path(path.clone()), &ReadOptions::default()).is_err());
    let options = ReadOptions { rows: Some(600..700), ..ReadOptions::default() };
    assert_eq!(read(Input::Path(path), &options).unwrap().num_rows(), 100);
}

#[test]
fn batches_are_bounded_and_progress_follows_the_rows() {
    let folder = TempDir::new().unwrap();
    let path = parquet_file(&folder, &numbers(1_000), &WriteOptions::default());
    let size = std::fs::metadata(&path).unwrap().len();
    let reader = open(Input::Path(path), &ReadOptions { batch_rows: 250, ..ReadOptions::default() }).unwrap();
    let progress = reader.progress();
    let seen: Vec<(usize, u64)> = reader
        .map(|batch| batch.unwrap().num_rows())
        .zip(std::iter::repeat_with(|| progress.done_bytes()))
        .collect();
    assert_eq!(seen, [(250, size / 4), (250, size / 2), (250, size * 3 / 4), (250, size)]);
}

#[test]
fn a_stream_is_spooled() {
    let batch = numbers(10);
    let bytes = write(std::slice::from_ref(&batch), Format::Parquet, &WriteOptions::default()).unwrap();
    let reader = open(stream(bytes), &ReadOptions::default()).unwrap();
    assert_eq!(reader.row_count(), Some(10));
    assert_equal(&batch, &table(reader).unwrap());
}

#[test]
fn metadata_of_table_columns_and_inner_columns_is_kept() {
    let batch = columns_where(&every_type(20), |name| name == "list_of_struct" || name == "int8");
    let bytes = write(std::slice::from_ref(&batch), Format::Parquet, &WriteOptions::default()).unwrap();
    let back = read(stream(bytes), &ReadOptions::default()).unwrap();
    assert_eq!(back.schema(), batch.schema());
    assert_eq!(back.schema().metadata()["origin"], "every_type");
}

#[test]
fn an_unknown_column_is_answered_with_close_names() {
    let bytes = write(&[numbers(1)], Format::Parquet, &WriteOptions::default()).unwrap();
    let select = |names: &[&str]| {
        let columns = Some(names.iter().map(|name| (*name).to_owned()).collect());
        read(stream(bytes.clone()), &ReadOptions { columns, ..ReadOptions::default() })
    };
    assert_eq!(error_of(select(&["N"])), "<stream>: no column \"N\"; close names: \"n\", \"d\", \"t\"");
    assert_eq!(
        error_of(select(&["distance"])),
        "<stream>: no column \"distance\"; the columns are \"n\", \"t\", \"d\""
    );
    assert_eq!(error_of(select(&["n", "n"])), "<stream>: column \"n\" is selected twice");
    assert_eq!(select(&[]).unwrap().num_columns(), 0);
}

#[test]
fn a_given_schema_is_refused() {
    let schema = Some(Arc::new(Schema::empty()));
    let bytes = write(&[numbers(1)], Format::Parquet, &WriteOptions::default()).unwrap();
    let error = error_of(read(stream(bytes), &ReadOptions { schema, ..ReadOptions::default() }));
    assert!(error.contains("a parquet file has a schema of its own"), "{error}");
}

/// Files of parquet-testing that arrow-rs 59.3 cannot read:
///
/// - `data/datapage_v1-corrupt-checksum`, `data/rle-dict-uncompressed-corrupt-checksum`: their checksums are wrong on
///   purpose;
/// - `data/dict-page-offset-zero`: the footer has a list of another type than Thrift declares;
/// - `data/nation.dict-malformed`: a dictionary page header is cut short;
/// - all of `bad_data` but `ARROW-GH-43605`, as it should be.
///
/// `data/large_string_map.brotli` unpacks to more than 2 GiB, so only its footer is read here.
const UNREADABLE: [&str; 11] = [
    "bad_data/ARROW-GH-41317.parquet",
    "bad_data/ARROW-GH-41321.parquet",
    "bad_data/ARROW-GH-45185.parquet",
    "bad_data/ARROW-GH-47662.parquet",
    "bad_data/ARROW-RS-GH-6229-DICTHEADER.parquet",
    "bad_data/ARROW-RS-GH-6229-LEVELS.parquet",
    "bad_data/PARQUET-1481.parquet",
    "data/datapage_v1-corrupt-checksum.parquet",
    "data/dict-page-offset-zero.parquet",
    "data/nation.dict-malformed.parquet",
    "data/rle-dict-uncompressed-corrupt-checksum.parquet",
];

#[test]
fn every_shared_file_opens_or_gives_an_error_with_its_name() {
    let Some(folder) = shared("parquet-testing") else { return };
    let mut unreadable = Vec::new();
    for part in ["bad_data", "data"] {
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(folder.join(part)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| Format::from_path(path).ok() == Some(Format::Parquet)) {
            let name = format!("{part}/{}", path.file_name().unwrap().to_string_lossy());
            let rows = name.contains("large_string_map").then_some(0..0);
            match read(Input::Path(path), &ReadOptions { rows, ..ReadOptions::default() }) {
                Ok(_) => {}
                Err(error) => {
                    assert!(!matches!(error, FormatError::Panic { .. }), "{error}");
                    assert!(error.to_string().contains(&name), "{error}");
                    unreadable.push(name);
                }
            }
        }
    }
    assert_eq!(unreadable, UNREADABLE);
}

#[test]
fn readable_shared_files_come_back_from_our_parquet_as_they_were() {
    let Some(folder) = shared("parquet-testing/data") else { return };
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_parquet = Format::from_path(&path).ok() == Some(Format::Parquet);
        if !is_parquet
            || name.contains("large_string_map")
            || UNREADABLE.contains(&format!("data/{name}").as_str())
        {
            continue;
        }
        let batch = read(Input::Path(path), &ReadOptions::default()).unwrap();
        assert!(unsupported_columns(Format::Parquet, &batch.schema()).is_empty(), "{name}");
        let bytes = write(std::slice::from_ref(&batch), Format::Parquet, &WriteOptions::default()).unwrap();
        assert_equal(&batch, &read(stream(bytes), &ReadOptions::default()).unwrap());
    }
}
