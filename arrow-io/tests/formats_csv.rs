//! CSV and TSV: the corners of the format, inference, and errors that say where and what to do.
#![cfg(feature = "formats")]
#![allow(clippy::unwrap_used)]

mod memory;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use arrow_io::formats::{Format, Input, ReadOptions, WriteOptions, open, open_all};
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use memory::{assert_equal, error_of, read, shared, stream, table, write};

fn csv() -> ReadOptions {
    ReadOptions { format: Some(Format::Csv), ..ReadOptions::default() }
}

fn read_text(text: &str) -> RecordBatch {
    read(stream(text), &csv()).unwrap()
}

fn types(batch: &RecordBatch) -> Vec<DataType> {
    batch.schema().fields().iter().map(|field| field.data_type().clone()).collect()
}

fn texts(batch: &RecordBatch, column: usize) -> Vec<Option<String>> {
    batch.column(column).as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

fn integers(batch: &RecordBatch, column: usize) -> Vec<Option<i64>> {
    batch.column(column).as_primitive::<Int64Type>().iter().collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

fn file(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn gzipped(content: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(
        fields.iter().map(|(name, ty)| Field::new(*name, ty.clone(), true)).collect::<Vec<_>>(),
    ))
}

#[test]
fn quoted_newlines_quotes_delimiters_and_crlf_are_understood() {
    let batch = read_text("a,b\r\n\"x\r\ny\",\"say \"\"hi\"\"\"\r\n\"1,2\",plain\r\n");
    assert_eq!(texts(&batch, 0), some(&["x\r\ny", "1,2"]));
    assert_eq!(texts(&batch, 1), some(&["say \"hi\"", "plain"]));
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_name() {
    let batch = read_text("\u{feff}a,b\n1,2\n");
    assert_eq!(batch.schema().field(0).name(), "a");
    let folder = TempDir::new().unwrap();
    let path = file(&folder, "bom.csv.gz", gzipped("\u{feff}a,b\n1,2\n"));
    assert_eq!(read(Input::Path(path), &ReadOptions::default()).unwrap().schema().field(0).name(), "a");
}

#[test]
fn an_empty_file_is_a_table_without_columns() {
    let batch = read_text("");
    assert_eq!((batch.num_columns(), batch.num_rows()), (0, 0));
    let folder = TempDir::new().unwrap();
    let path = file(&folder, "empty.csv", "");
    assert_eq!(read(Input::Path(path), &ReadOptions::default()).unwrap().num_columns(), 0);
}

#[test]
fn a_file_with_only_a_header_has_columns_without_rows() {
    for text in ["a,b\n", "a,b"] {
        let batch = read_text(text);
        assert_eq!((batch.num_columns(), batch.num_rows()), (2, 0));
    }
}

#[test]
fn a_last_line_without_newline_counts() {
    assert_eq!(integers(&read_text("a\n1\n2"), 0), [Some(1), Some(2)]);
}

#[test]
fn a_file_without_header_gets_numbered_names() {
    let batch = read(stream("1,x\n2,y\n"), &ReadOptions { has_header: false, ..csv() }).unwrap();
    assert_eq!(batch.schema().field(1).name(), "column_2");
    assert_eq!(integers(&batch, 0), [Some(1), Some(2)]);
}

#[test]
fn tsv_and_other_delimiters_split_fields() {
    let options = ReadOptions { format: Some(Format::Tsv), ..ReadOptions::default() };
    assert_eq!(read(stream("a\tb\n1,5\t2\n"), &options).unwrap().num_columns(), 2);
    let options = ReadOptions { delimiter: Some(b';'), ..csv() };
    assert_eq!(read(stream("a;b\n1,5;2\n"), &options).unwrap().num_columns(), 2);
}

#[test]
fn empty_fields_and_chosen_texts_are_null() {
    let text = "n,t\n1,x\n,\nNA,NA\n4,-\n";
    let options = ReadOptions { null_values: vec!["NA".to_owned(), "-".to_owned()], ..csv() };
    let batch = read(stream(text), &options).unwrap();
    assert_eq!(integers(&batch, 0), [Some(1), None, None, Some(4)]);
    assert_eq!(texts(&batch, 1), [Some("x".to_owned()), None, None, None]);
}

#[test]
fn empty_fields_of_text_columns_can_stay_texts() {
    let options = ReadOptions { empty_is_null: false, null_values: vec!["NA".to_owned()], ..csv() };
    let batch = read(stream("n,t\n1,x\n,\n3,NA\n"), &options).unwrap();
    assert_eq!(integers(&batch, 0), [Some(1), None, Some(3)]);
    assert_eq!(texts(&batch, 1), [Some("x".to_owned()), Some(String::new()), None]);
}

#[test]
fn types_are_inferred_from_all_rows_of_a_file() {
    let folder = TempDir::new().unwrap();
    let mut text = String::from("i,f,b,d,s,u,m,n\n");
    for _ in 0..3_000 {
        text.push_str("1,1,true,2024-01-31,2024-01-31T10:00:00,2024-01-31T10:00:00Z,2024-01-31 10:00:00,\n");
    }
    text.push_str(
        "-9223372036854775808,1e3,FALSE,2024-02-29,2024-01-31 10:00:00.123456,2024-01-31T10:00:00+02:00,x,\n",
    );
    let batch = read(Input::Path(file(&folder, "t.csv", text)), &ReadOptions::default()).unwrap();
    let expected = [
        DataType::Int64,
        DataType::Float64,
        DataType::Boolean,
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(TimeUnit::Second, Some("UTC".into())),
        DataType::Utf8,
        DataType::Null,
    ];
    assert_eq!(types(&batch), expected);
    let instants = batch.column(5).as_primitive::<TimestampSecondType>();
    assert_eq!(instants.value(0) - instants.value(3_000), 7_200);
}

#[test]
fn what_a_number_or_date_type_would_lose_stays_text() {
    let cases = [
        "00501",                          // a leading zero
        "9223372036854775808",            // beyond 64 bits
        "2023-02-30",                     // no such day
        "2024-01-01T25:00:00",            // no such hour
        "2024-01-01T00:00:00.1234567891", // finer than nanoseconds
        "1e999",                          // beyond the largest float
        "+5",
        "0x1F",
        "1_000",
        "12:30",
        "2024-1-1",
    ];
    for case in cases {
        let batch = read_text(&format!("a\n{case}\n"));
        assert_eq!(texts(&batch, 0), some(&[case]), "{case}");
    }
}

#[test]
fn nanoseconds_beside_distant_years_stay_text() {
    let batch = read_text("a\n9999-12-31 00:00:00\n2024-01-01 00:00:00.123456789\n");
    assert_eq!(types(&batch), [DataType::Utf8]);
    let batch = read_text("a\n9999-12-31 00:00:00\n2024-01-01 00:00:00\n");
    assert_eq!(types(&batch), [DataType::Timestamp(TimeUnit::Second, None)]);
}

/// Every mixture of these fields must read back under the type inferred for it.
#[test]
fn a_schema_inferred_from_all_rows_never_fails() {
    let fields = [
        "1",
        "-0",
        "007",
        "1.5",
        ".5",
        "1.",
        "1e5",
        "-1E-5",
        "NaN",
        "inf",
        "-inf",
        "nan",
        "true",
        "False",
        "2024-01-01",
        "2024-13-01",
        "2024-01-01T10:00:00",
        "2024-01-01 10:00:00.5",
        "2024-01-01T10:00:00.123456789Z",
        "2024-01-01T10:00:00+05:30",
        "9999-12-31",
        "1600-01-01",
        "-",
        ".",
        "e5",
        "2024-01-01T10:00:00é",
        "2024-01-01é",
        "x",
        "99999999999999999999",
        "1234567890123456789012345",
        "0000-01-01",
        "2024-01-01T10:00:00 Europe/Paris",
    ];
    let folder = TempDir::new().unwrap();
    for first in fields {
        for second in fields {
            let path = file(&folder, "pair.csv", format!("a\n{first}\n{second}\n"));
            let batch = read(Input::Path(path), &ReadOptions::default());
            let batch = batch.unwrap_or_else(|error| panic!("{first} and {second}: {error}"));
            assert_eq!(batch.column(0).null_count(), 0, "{first} and {second}");
        }
    }
}

#[test]
fn a_late_row_that_does_not_fit_is_named_with_row_column_and_remedy() {
    let text = format!("id,amount\n{}5,x\n", "1,2\n".repeat(100));
    let options = ReadOptions { infer_rows: Some(10), ..csv() };
    assert_eq!(
        error_of(read(stream(text.clone()), &options)),
        "<stream>: row 100: column \"amount\": \"x\" is no Int64; the schema was inferred from the first 10 rows: infer it \
         from more, or give a schema in which the column can hold this, or add the text to the null values"
    );
    let options =
        ReadOptions { schema: Some(schema(&[("id", DataType::Int64), ("amount", DataType::Int8)])), ..csv() };
    let error = error_of(read(stream(text.replace("5,x", "5,300")), &options));
    assert_eq!(
        error,
        "<stream>: row 100: column \"amount\": \"300\" is no Int8; correct the row or change the column in the given \
         schema, or add the text to the null values"
    );
}

#[test]
fn a_column_without_values_in_the_prefix_of_a_stream_is_text() {
    let text = format!("a\n{}late\n", "\"\"\n".repeat(50));
    let batch = read(stream(text), &ReadOptions { infer_rows: Some(10), ..csv() }).unwrap();
    assert_eq!(texts(&batch, 0).last().unwrap().as_deref(), Some("late"));
}

#[test]
fn a_value_in_a_null_column_of_a_given_schema_is_an_error() {
    let options = ReadOptions { schema: Some(schema(&[("a", DataType::Null)])), ..csv() };
    assert!(
        error_of(read(stream("a\n\"\"\nx\n"), &options)).contains("row 1: column \"a\": \"x\" is no Null")
    );
}

#[test]
fn a_null_where_the_given_schema_has_none_is_an_error() {
    let fields = vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Utf8, true)];
    let options = ReadOptions { schema: Some(Arc::new(Schema::new(fields))), ..csv() };
    let error = error_of(read(stream("a,b\n1,x\n,y\n"), &options));
    assert!(error.contains("row 1: column \"a\" is null, but must not be"), "{error}");
}

#[test]
fn a_given_schema_must_name_the_columns_of_the_file() {
    let options =
        ReadOptions { schema: Some(schema(&[("a", DataType::Int64), ("c", DataType::Int64)])), ..csv() };
    let error = error_of(read(stream("a,b\n1,2\n"), &options));
    assert!(error.contains("column #1 of the file is \"b\", but that of the schema is \"c\""), "{error}");
    let options =
        ReadOptions { schema: Some(schema(&[("a", DataType::Duration(TimeUnit::Second))])), ..csv() };
    let error = error_of(read(stream("a\n1\n"), &options));
    assert!(error.contains("column \"a\" is Duration(s), which cannot be read from text"), "{error}");
}

#[test]
fn a_record_of_another_length_names_its_line() {
    let error = error_of(read(stream("a,b\n1,2\n3\n"), &csv()));
    assert!(error.contains("line 3, expected 2 got 1"), "{error}");
}

#[test]
fn bytes_that_are_no_utf8_are_an_error() {
    let error = error_of(read(stream(b"a,b\n1,\xff\xfe\n".to_vec()), &csv()));
    assert!(error.contains("UTF-8"), "{error}");
}

#[test]
fn row_ranges_and_columns_select_rows_and_columns() {
    let text: String = (0..100).map(|row| format!("{row},t{row}\n")).collect();
    for (rows, expected) in
        [(10..13, vec![10, 11, 12]), (98..200, vec![98, 99]), (100..105, vec![]), (5..5, vec![])]
    {
        let options = ReadOptions {
            rows: Some(rows),
            columns: Some(vec!["t".to_owned(), "n".to_owned()]),
            batch_rows: 2,
            ..csv()
        };
        let batch = read(stream(format!("n,t\n{text}")), &options).unwrap();
        assert_eq!(batch.schema().field(0).name(), "t");
        assert_eq!(integers(&batch, 1), expected.iter().map(|row| Some(*row)).collect::<Vec<_>>());
    }
}

#[test]
fn an_error_after_a_skipped_range_counts_rows_from_the_start_of_the_file() {
    let options = ReadOptions { rows: Some(2..4), schema: Some(schema(&[("a", DataType::Int64)])), ..csv() };
    let error = error_of(read(stream("a\n1\n2\n3\nx\n"), &options));
    assert!(error.starts_with("<stream>: row 3: "), "{error}");
}

#[test]
fn row_counts_are_known_for_files_and_progress_ends_at_the_file_size() {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, "n.csv", format!("a\n{}", "12\n".repeat(50_000)));
    let size = std::fs::metadata(&path).unwrap().len();
    let mut reader = open(Input::Path(path), &ReadOptions::default()).unwrap();
    assert_eq!(reader.row_count(), Some(50_000));
    let progress = reader.progress();
    assert_eq!(progress.total_bytes(), Some(size));
    let opened_bytes = progress.done_bytes();
    assert!(opened_bytes < 10, "opening counts only what it looks at");
    reader.next().unwrap().unwrap();
    assert!(progress.done_bytes() > opened_bytes);
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 50_000 - 8_192);
    assert_eq!(progress.done_bytes(), size);
}

#[test]
fn null_and_empty_text_are_written_apart() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), Some(""), None, Some("a \"b\"")]));
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(2), Some(3), None]));
    let batch = RecordBatch::try_from_iter([("t,x", texts.clone()), ("n", numbers)]).unwrap();
    let bytes = write(&[batch], Format::Csv, &WriteOptions::default()).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), "\"t,x\",n\nx,\n\"\",2\n,3\n\"a \"\"b\"\"\",\n");

    let batch = RecordBatch::try_from_iter([("t", texts)]).unwrap();
    let options = WriteOptions { null_text: "NA".to_owned(), ..WriteOptions::default() };
    let bytes = write(std::slice::from_ref(&batch), Format::Csv, &options).unwrap();
    assert_eq!(String::from_utf8(bytes.clone()).unwrap(), "t\nx\n\"\"\nNA\n\"a \"\"b\"\"\"\n");
    let options = ReadOptions { empty_is_null: false, null_values: vec!["NA".to_owned()], ..csv() };
    assert_eq!(read(stream(bytes), &options).unwrap().column(0), batch.column(0));
}

#[test]
fn a_null_in_a_table_of_one_column_is_a_record_too() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let batch = RecordBatch::try_from_iter_with_nullable([("a", column, true)]).unwrap();
    let bytes = write(std::slice::from_ref(&batch), Format::Csv, &WriteOptions::default()).unwrap();
    assert_equal(&batch, &read(stream(bytes), &csv()).unwrap());
}

#[test]
fn timestamps_of_a_named_zone_are_written_as_instants() {
    // In 1890 the offset of Paris was 9 minutes and 21 seconds, which no ISO 8601 offset can say.
    let column: ArrayRef =
        Arc::new(TimestampSecondArray::from(vec![-2_500_000_000]).with_timezone("Europe/Paris"));
    let batch = RecordBatch::try_from_iter_with_nullable([("a", column, true)]).unwrap();
    let bytes = write(std::slice::from_ref(&batch), Format::Csv, &WriteOptions::default()).unwrap();
    assert_eq!(String::from_utf8(bytes.clone()).unwrap(), "a\n1890-10-11T19:33:20Z\n");
    let options = ReadOptions { schema: Some(batch.schema()), ..csv() };
    assert_equal(&batch, &read(stream(bytes), &options).unwrap());
}

#[test]
fn a_date_beyond_the_calendar_is_an_error_with_its_row() {
    let column: ArrayRef = Arc::new(TimestampSecondArray::from(vec![0, i64::MAX]));
    let batch = RecordBatch::try_from_iter([("when", column)]).unwrap();
    let error = write(&[batch], Format::Csv, &WriteOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("<output>: row 1, column \"when\": "), "{error}");
}

#[test]
fn gzip_is_written_and_read() {
    let batch = read_text("a,b\n1,x\n2,y\n");
    let options = WriteOptions { gzip: true, ..WriteOptions::default() };
    let bytes = write(std::slice::from_ref(&batch), Format::Csv, &options).unwrap();
    assert_eq!(&bytes[..2], [0x1f, 0x8b]);
    assert_equal(&batch, &read(stream(bytes), &csv()).unwrap());
    let folder = TempDir::new().unwrap();
    let members = [gzipped("a,b\n1,x\n"), gzipped("2,y\n")].concat();
    let path = file(&folder, "two_members.csv.gz", members);
    assert_equal(&batch, &read(Input::Path(path), &ReadOptions::default()).unwrap());
}

#[test]
fn a_truncated_gzip_file_is_an_error() {
    let whole = gzipped(&format!("a\n{}", "12345\n".repeat(5_000)));
    let error = error_of(read(stream(&whole[..whole.len() - 20]), &csv()));
    assert!(error.starts_with("<stream>: "), "{error}");
}

#[test]
fn parts_of_a_table_share_one_inferred_schema() {
    let folder = TempDir::new().unwrap();
    let paths = [
        file(&folder, "a.csv", "id,v,t\n1,,\n2,7,\n"),
        file(&folder, "b.csv", "id,v,t\n3,1.5,x\n"),
        file(&folder, "c.csv", "id,v,t\n4,2,\n5,,\n"),
    ];
    let inputs = || paths.iter().cloned().map(Input::Path).collect::<Vec<_>>();
    let reader = open_all(inputs(), &ReadOptions::default()).unwrap();
    assert_eq!(reader.row_count(), Some(5));
    let progress = reader.progress();
    let batch = table(reader).unwrap();
    assert_eq!(types(&batch), [DataType::Int64, DataType::Float64, DataType::Utf8]);
    assert_eq!(integers(&batch, 0), [1, 2, 3, 4, 5].map(Some));
    assert_eq!(progress.total_bytes(), Some(progress.done_bytes()));

    let options = ReadOptions { rows: Some(1..4), ..ReadOptions::default() };
    assert_eq!(integers(&table(open_all(inputs(), &options).unwrap()).unwrap(), 0), [2, 3, 4].map(Some));
}

#[test]
fn parts_with_other_headers_are_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let paths = [file(&folder, "a.csv", "id,v\n1,2\n"), file(&folder, "b.csv", "id,w\n1,2\n")];
    let inputs = paths.iter().cloned().map(Input::Path).collect();
    let error = open_all(inputs, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("is called \"v\" in "), "{error}");
    assert!(error.contains("b.csv"), "{error}");
}

#[test]
fn the_shared_tables_read_with_every_row_in_place() {
    for (name, row_count) in [("airlines.csv", 16), ("planes.csv.gz", 3_322), ("weather.csv.gz", 26_115)] {
        let Some(path) = shared(&format!("nycflights13/{name}")) else { return };
        let reader = open(Input::Path(path), &ReadOptions::default()).unwrap();
        assert_eq!(reader.row_count(), Some(row_count));
        assert_eq!(table(reader).unwrap().num_rows() as u64, row_count);
    }
    let Some(path) = shared("penguins/penguins.csv") else { return };
    let options = ReadOptions { null_values: vec!["NA".to_owned()], ..ReadOptions::default() };
    let batch = read(Input::Path(path), &options).unwrap();
    assert_eq!(batch.column_by_name("bill_length_mm").unwrap().data_type(), &DataType::Float64);
    assert_eq!(batch.column_by_name("bill_length_mm").unwrap().null_count(), 2);
    assert_eq!(batch.column_by_name("sex").unwrap().null_count(), 11);
}

#[test]
fn a_tab_separated_file_reads_by_its_extension() {
    let Some(path) = shared("sec-num/num.tsv.gz") else { return };
    let reader =
        open(Input::Path(path), &ReadOptions { rows: Some(0..1_000), ..ReadOptions::default() }).unwrap();
    assert_eq!(reader.row_count(), Some(1_000));
    assert_eq!(table(reader).unwrap().num_columns(), 16);
}

#[test]
fn a_path_that_does_not_exist_or_is_a_folder_is_named() {
    let error = error_of(read(Input::Path(PathBuf::from("/no/such.csv")), &ReadOptions::default()));
    assert!(error.starts_with("/no/such.csv: "), "{error}");
    let error = error_of(read(Input::Path(Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()), &csv()));
    assert!(error.contains("this is a directory"), "{error}");
}
