//! Names, extensions and first bytes of formats, and tables from several inputs.
#![cfg(feature = "formats")]
#![allow(clippy::unwrap_used)]

mod memory;

use std::path::Path;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use arrow_io::formats::{Format, FormatError, Input, ReadOptions, WriteOptions, create, open, open_all};
use tempfile::TempDir;

use memory::{Written, error_of, read, stream, table, write};

fn numbers(rows: std::ops::Range<i64>) -> RecordBatch {
    RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from_iter_values(rows)) as ArrayRef)]).unwrap()
}

fn values(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn names_are_read_and_written_alike() {
    for name in ["parquet", "csv", "tsv", "arrow", "arrow-stream", "jsonl", "cb2t"] {
        assert_eq!(name.parse::<Format>().unwrap().to_string(), name);
    }
    assert_eq!(
        "xlsx".parse::<Format>().unwrap_err().to_string(),
        "no format is called \"xlsx\"; the formats are parquet, csv, tsv, arrow, arrow-stream, jsonl, cb2t"
    );
}

#[test]
fn extensions_tell_the_format() {
    let cases = [
        ("a.parquet", Format::Parquet),
        ("a.pq", Format::Parquet),
        ("a.CSV", Format::Csv),
        ("a.csv.gz", Format::Csv),
        ("a.tsv", Format::Tsv),
        ("a.tsv.gz", Format::Tsv),
        ("a.arrow", Format::ArrowFile),
        ("a.feather", Format::ArrowFile),
        ("a.ipc", Format::ArrowFile),
        ("a.arrows", Format::ArrowStream),
        ("a.ipcs", Format::ArrowStream),
        ("a.jsonl", Format::JsonLines),
        ("a.ndjson", Format::JsonLines),
        ("a.json", Format::JsonLines),
        ("a.b.json.gz", Format::JsonLines),
        ("a.cb2t", Format::Cb2t),
    ];
    for (path, format) in cases {
        assert_eq!(Format::from_path(Path::new(path)).unwrap(), format, "{path}");
    }
    for path in ["a", "a.txt", "a.gz", ".csv", "a.csv.zst"] {
        assert!(
            matches!(Format::from_path(Path::new(path)), Err(FormatError::UnknownFormat { .. })),
            "{path}"
        );
    }
    let error = Format::from_path(Path::new("a.parquet.gz")).unwrap_err().to_string();
    assert_eq!(
        error,
        "a.parquet.gz: gzip is only handled around csv, tsv and jsonl; unpack the parquet file first"
    );
}

#[test]
fn first_bytes_tell_the_format() {
    let batch = numbers(0..3);
    for format in [Format::Parquet, Format::ArrowFile, Format::ArrowStream, Format::JsonLines] {
        let bytes = write(std::slice::from_ref(&batch), format, &WriteOptions::default()).unwrap();
        assert_eq!(Format::sniff(&bytes), Some(format));
        assert_eq!(read(stream(bytes), &ReadOptions::default()).unwrap().num_rows(), 3);
    }
    assert_eq!(Format::sniff(b"cb2t\x01\x00"), Some(Format::Cb2t));
    assert_eq!(Format::sniff(b"\xef\xbb\xbf  \n{\"a\":1}"), Some(Format::JsonLines));
    for unknown in [&b"a,b\n1,2\n"[..], b"", b"PAR", b"[1]", b"\x1f\x8b\x08"] {
        assert_eq!(Format::sniff(unknown), None);
    }
}

#[test]
fn gzipped_json_lines_are_told_by_what_is_inside() {
    let batch = numbers(0..3);
    let options = WriteOptions { gzip: true, ..WriteOptions::default() };
    let bytes = write(&[batch], Format::JsonLines, &options).unwrap();
    assert_eq!(values(&read(stream(bytes), &ReadOptions::default()).unwrap()), [0, 1, 2]);
}

#[test]
fn a_file_without_extension_is_told_by_its_first_bytes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("table");
    std::fs::write(&path, write(&[numbers(0..3)], Format::Parquet, &WriteOptions::default()).unwrap())
        .unwrap();
    assert_eq!(read(Input::Path(path), &ReadOptions::default()).unwrap().num_rows(), 3);
}

#[test]
fn a_stream_of_unknown_format_asks_for_its_name() {
    assert_eq!(
        error_of(read(stream("a,b\n1,2\n"), &ReadOptions::default())),
        "<stream>: cannot tell the format from the first bytes; name it: one of parquet, csv, tsv, arrow, arrow-stream, \
         jsonl, cb2t"
    );
}

#[test]
fn cb2t_and_gzip_around_binary_formats_are_refused() {
    let error = error_of(read(stream(b"cb2t....".to_vec()), &ReadOptions::default()));
    assert_eq!(
        error,
        "<stream> is a cb2t file; open it with the cb2t reader or writer, not as a foreign format"
    );
    let schema = numbers(0..1).schema();
    let options = WriteOptions::default();
    let error = create(Box::new(Written::default()), Format::Cb2t, schema.clone(), &options).err().unwrap();
    assert!(matches!(error, FormatError::Cb2t { .. }));
    let options = WriteOptions { gzip: true, ..options };
    let error = create(Box::new(Written::default()), Format::Parquet, schema, &options).err().unwrap();
    assert!(error.to_string().contains("gzip is only written around"), "{error}");
}

#[test]
fn inputs_of_different_formats_follow_one_another() {
    let folder = TempDir::new().unwrap();
    let mut inputs = Vec::new();
    for (index, format) in [Format::Parquet, Format::ArrowFile, Format::Csv].into_iter().enumerate() {
        let start = 10 * i64::try_from(index).unwrap();
        let path = folder.path().join(format!("part.{}", ["parquet", "arrow", "csv"][index]));
        let batch = numbers(start..start + 10);
        let nullable = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let batch = RecordBatch::try_new(nullable, batch.columns().to_vec()).unwrap();
        std::fs::write(&path, write(&[batch], format, &WriteOptions::default()).unwrap()).unwrap();
        inputs.push(path);
    }
    let open_range = |rows| {
        let inputs = inputs.iter().cloned().map(Input::Path).collect();
        open_all(inputs, &ReadOptions { rows, batch_rows: 4, ..ReadOptions::default() }).unwrap()
    };
    let reader = open_range(None);
    assert_eq!(reader.row_count(), Some(30));
    assert_eq!(values(&table(reader).unwrap()), (0..30).collect::<Vec<_>>());
    for rows in [5..25, 10..20, 29..40, 30..31] {
        let reader = open_range(Some(rows.clone()));
        let expected: Vec<i64> = (0..30_i64).filter(|row| rows.contains(&row.unsigned_abs())).collect();
        assert_eq!(reader.row_count(), Some(expected.len() as u64));
        assert_eq!(values(&table(reader).unwrap()), expected);
    }
}

#[test]
fn streams_are_concatenated_without_a_row_count() {
    let part = |rows| stream(write(&[numbers(rows)], Format::ArrowStream, &WriteOptions::default()).unwrap());
    let reader = open_all(vec![part(0..3), part(3..5)], &ReadOptions::default()).unwrap();
    assert_eq!(reader.row_count(), None);
    assert_eq!(values(&table(reader).unwrap()), [0, 1, 2, 3, 4]);
    let options = ReadOptions { rows: Some(2..4), ..ReadOptions::default() };
    assert_eq!(values(&table(open_all(vec![part(0..3), part(3..5)], &options).unwrap()).unwrap()), [2, 3]);
}

#[test]
fn inputs_of_different_schemas_are_refused_with_column_types_and_files() {
    let folder = TempDir::new().unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let parts = [numbers(0..1), RecordBatch::try_from_iter([("n", texts)]).unwrap()];
    let paths = ["a.parquet", "b.parquet"].map(|name| folder.path().join(name));
    for (path, batch) in paths.iter().zip(parts) {
        std::fs::write(path, write(&[batch], Format::Parquet, &WriteOptions::default()).unwrap()).unwrap();
    }
    let error =
        open_all(paths.iter().cloned().map(Input::Path).collect(), &ReadOptions::default()).unwrap_err();
    let expected = format!(
        "column \"n\" is \"n\" of type Int64 not null in {}, but \"n\" of type Utf8 not null in {}; concatenated inputs need \
         equal schemas",
        paths[0].display(),
        paths[1].display()
    );
    assert_eq!(error.to_string(), expected);
    assert!(matches!(open_all(Vec::new(), &ReadOptions::default()), Err(FormatError::NoInput)));
}

#[test]
fn a_failing_output_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("disk full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let batch = numbers(0..100_000);
    for format in Format::FOREIGN {
        let result =
            create(Box::new(Full), format, batch.schema(), &WriteOptions::default()).and_then(|mut sink| {
                sink.write(&batch)?;
                sink.finish()
            });
        assert!(result.unwrap_err().to_string().contains("disk full"), "{format}");
    }
}

#[test]
fn the_iterator_ends_after_an_error() {
    let options = ReadOptions { format: Some(Format::Csv), infer_rows: Some(1), ..ReadOptions::default() };
    let mut reader = open(stream("a\n1\nx\n2\n"), &options).unwrap();
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}
