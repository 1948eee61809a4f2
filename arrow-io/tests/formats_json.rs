//! JSON lines: inference over all rows, errors with their row, and values that JSON cannot hold.
#![cfg(feature = "formats")]
#![allow(clippy::unwrap_used)]

mod memory;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::*;
use arrow_io::formats::{Format, Input, ReadOptions, WriteOptions, open, open_all};
use tempfile::TempDir;

use memory::{assert_equal, error_of, read, stream, table, write};

fn json() -> ReadOptions {
    ReadOptions { format: Some(Format::JsonLines), ..ReadOptions::default() }
}

fn file(folder: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn read_file(content: &str) -> Result<RecordBatch, arrow_io::formats::FormatError> {
    let folder = TempDir::new().unwrap();
    read(Input::Path(file(&folder, "t.jsonl", content)), &ReadOptions::default())
}

fn column_type(batch: &RecordBatch, name: &str) -> DataType {
    batch.schema().field_with_name(name).unwrap().data_type().clone()
}

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(
        fields.iter().map(|(name, ty)| Field::new(*name, ty.clone(), true)).collect::<Vec<_>>(),
    ))
}

#[test]
fn nested_types_are_inferred_over_all_rows_in_the_order_of_their_first_row() {
    let rows = "{\"z\":1,\"a\":{\"y\":true,\"x\":[1]}}\n\n  \r\n{\"a\":{\"x\":[2.5,null],\"w\":\"t\"},\"l\":[[{\"k\":1}]]}";
    let batch = read_file(rows).unwrap();
    let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["z", "a", "l"]);
    assert_eq!(batch.num_rows(), 2);
    let members = Fields::from(vec![
        Field::new("y", DataType::Boolean, true),
        Field::new("x", list_of(DataType::Float64), true),
        Field::new("w", DataType::Utf8, true),
    ]);
    assert_eq!(column_type(&batch, "a"), DataType::Struct(members));
    let innermost = DataType::Struct(vec![Field::new("k", DataType::Int64, true)].into());
    assert_eq!(column_type(&batch, "l"), list_of(list_of(innermost)));
}

#[test]
fn a_type_that_only_the_last_of_many_rows_shows_is_found() {
    let rows = format!("{}{{\"a\":0.5,\"b\":[7]}}\n", "{\"a\":1,\"b\":[]}\n".repeat(20_000));
    let batch = read_file(&rows).unwrap();
    assert_eq!(column_type(&batch, "a"), DataType::Float64);
    assert_eq!(column_type(&batch, "b"), list_of(DataType::Int64));
    assert_eq!(batch.num_rows(), 20_001);
}

#[test]
fn numbers_keep_their_value() {
    let batch = read_file("{\"u\":18446744073709551615,\"z\":-0.0,\"e\":1e3,\"m\":1,\"t\":007}\n");
    assert!(error_of(batch).contains("row 0: not a JSON object, at byte"), "a leading zero is no JSON");
    let rows = "{\"u\":18446744073709551615,\"z\":-0.0,\"m\":1}\n{\"u\":1,\"z\":1,\"m\":\"1.50\"}\n{\"m\":1.50}\n{\"m\":true}\n";
    let batch = read_file(rows).unwrap();
    assert_eq!(batch.column_by_name("u").unwrap().as_primitive::<UInt64Type>().value(0), u64::MAX);
    assert_eq!(batch.column_by_name("z").unwrap().as_primitive::<Float64Type>().value(0).to_bits(), 1 << 63);
    let mixed: Vec<_> = batch.column_by_name("m").unwrap().as_string::<i32>().iter().flatten().collect();
    assert_eq!(mixed, ["1", "1.50", "1.50", "true"]);
}

#[test]
fn rows_without_a_common_type_are_named() {
    let error = error_of(read_file("{\"a\":{\"b\":1}}\n{\"a\":{\"b\":2}}\n{\"a\":{\"b\":[1]}}\n"));
    assert!(error.contains("column \"a.b\" is a plain value in row 0 and a list in row 2"), "{error}");
    let error = error_of(read_file("{\"a\":[1]}\n{\"a\":[{\"b\":1}]}\n"));
    assert!(error.contains("column \"a[]\" is a plain value in row 0 and an object in row 1"), "{error}");
}

#[test]
fn an_empty_file_and_empty_objects_are_tables_without_columns() {
    let batch = read_file("").unwrap();
    assert_eq!((batch.num_columns(), batch.num_rows()), (0, 0));
    let batch = read_file("{}\n{}\n").unwrap();
    assert_eq!((batch.num_columns(), batch.num_rows()), (0, 2));
}

#[test]
fn a_broken_line_is_named_with_its_row() {
    for (line, problem) in [
        ("{\"a\":1", "row 2: not a JSON object"),
        ("{\"a\":1}}", "row 2: not a JSON object"),
        ("{\"a\":1}{\"a\":2}", "row 2: not a JSON object"),
        ("5", "a plain value stands where the row's object should be"),
        ("[1]", "a list stands where the row's object should be"),
        ("null", "null stands where the row's object should be"),
    ] {
        let error = error_of(read_file(&format!("{{\"a\":1}}\n\n{{\"a\":1}}\n{line}\n")));
        assert!(error.contains(problem), "{line}: {error}");
        let options = ReadOptions { schema: Some(schema(&[("a", DataType::Int64)])), ..json() };
        let error = error_of(read(stream(format!("{{\"a\":1}}\n\n{{\"a\":1}}\n{line}\n")), &options));
        assert!(error.contains("row 2: "), "{line}: {error}");
    }
}

#[test]
fn one_json_array_is_refused_with_a_remedy() {
    let error = error_of(read_file("\n [{\"a\":1},\n{\"a\":2}]"));
    assert!(error.contains("one JSON array, not JSON lines") && error.contains("jq -c '.[]'"), "{error}");
}

#[test]
fn a_late_row_that_does_not_fit_is_named_with_row_column_and_remedy() {
    let rows = |last: &str| format!("{}{last}\n", "{\"a\":1,\"s\":{\"i\":[1]}}\n".repeat(30));
    let options = ReadOptions { infer_rows: Some(10), ..json() };
    let remedy = "the schema was inferred from the first 10 rows: infer it from more, or give a schema in which the \
                  column can hold this";
    for (last, problem) in [
        ("{\"a\":1.5}", "column \"a\" holds a number that is no Int64"),
        ("{\"a\":1,\"s\":{\"i\":[2,2.5]}}", "column \"s.i[]\" holds a number that is no Int64"),
        ("{\"a\":1e300}", "column \"a\" holds a number that is no Int64"),
        ("{\"new\":1}", "column \"new\" is not in the schema"),
        ("{\"s\":{\"j\":1}}", "column \"s.j\" is not in the schema"),
        ("{\"a\":\"x\"}", "whilst decoding field 'a': failed to parse \"x\" as Int64"),
        ("{\"a\":[1]}", "whilst decoding field 'a': expected primitive got [1]"),
    ] {
        assert_eq!(
            error_of(read(stream(rows(last)), &options)),
            format!("<stream>: row 30: {problem}; {remedy}")
        );
    }
}

#[test]
fn a_column_that_is_null_in_the_prefix_of_a_stream_fails_loudly_later() {
    let rows = format!("{}{{\"a\":5}}\n", "{\"a\":null}\n".repeat(30));
    let error = error_of(read(stream(rows), &ReadOptions { infer_rows: Some(10), ..json() }));
    assert!(error.contains("row 30: ") && error.contains("infer it from more"), "{error}");
}

#[test]
fn a_given_schema_reads_dates_decimals_dictionaries_and_maps() {
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Int32, true),
    ]);
    let given = schema(&[
        ("d", DataType::Date32),
        ("n", DataType::Decimal128(10, 2)),
        ("c", DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))),
        ("m", DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)),
        ("i", DataType::Int16),
    ]);
    let rows = "{\"d\":\"2024-02-29\",\"n\":1.25,\"c\":\"red\",\"m\":{\"k\":1},\"i\":2.0}\n{\"c\":null}\n";
    let batch = read(stream(rows), &ReadOptions { schema: Some(given.clone()), ..json() }).unwrap();
    assert_eq!(batch.schema(), given);
    assert_eq!(batch.column(1).as_primitive::<Decimal128Type>().value(0), 125);
    assert_eq!(batch.column(4).as_primitive::<Int16Type>().value(0), 2);
    assert_eq!(batch.column(2).null_count(), 1);
    let error =
        error_of(read(stream("{\"m\":{\"k\":1.5}}\n"), &ReadOptions { schema: Some(given), ..json() }));
    assert!(error.contains("column \"m.k\" holds a number that is no Int32"), "{error}");
}

#[test]
fn a_type_that_json_cannot_be_read_as_is_refused_at_once() {
    let given = schema(&[("a", DataType::Interval(IntervalUnit::DayTime))]);
    let error =
        open(stream("{\"a\":1}\n"), &ReadOptions { schema: Some(given), ..json() }).unwrap_err().to_string();
    assert!(error.starts_with("<stream>: the given schema does not work: "), "{error}");
}

#[test]
fn row_ranges_and_columns_select_rows_and_columns() {
    let rows: String = (0..100).map(|row| format!("{{\"n\":{row},\"t\":\"t{row}\"}}\n")).collect();
    for (range, expected) in [(10..13, vec![10, 11, 12]), (98..200, vec![98, 99]), (100..105, vec![])] {
        let options = ReadOptions {
            rows: Some(range),
            columns: Some(vec!["t".to_owned(), "n".to_owned()]),
            batch_rows: 7,
            ..json()
        };
        let batch = read(stream(rows.clone()), &options).unwrap();
        assert_eq!(batch.schema().field(0).name(), "t");
        assert_eq!(batch.column(1).as_primitive::<Int64Type>().values(), &expected[..]);
    }
}

#[test]
fn rows_outside_the_range_are_not_looked_at() {
    let rows = "no json\n{\"a\":1}\n{\"a\":2}\nno json\n";
    let options = ReadOptions { rows: Some(1..3), schema: Some(schema(&[("a", DataType::Int64)])), ..json() };
    assert_eq!(read(stream(rows), &options).unwrap().num_rows(), 2);
}

#[test]
fn files_may_lack_columns_that_others_have() {
    let folder = TempDir::new().unwrap();
    let paths = [
        file(&folder, "a.jsonl", "{\"a\":1}\n{\"a\":2}\n"),
        file(&folder, "b.ndjson", "{\"b\":\"x\",\"a\":0.5}\n"),
    ];
    let reader = open_all(paths.iter().cloned().map(Input::Path).collect(), &ReadOptions::default()).unwrap();
    assert_eq!(reader.row_count(), Some(3));
    let batch = table(reader).unwrap();
    assert_eq!(batch.column(0).as_primitive::<Float64Type>().values(), &[1.0, 2.0, 0.5]);
    assert_eq!(batch.column(1).null_count(), 2);
}

#[test]
fn every_column_is_written_in_every_row() {
    let a: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let b: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"\x00\xff", b""]));
    let batch = RecordBatch::try_from_iter_with_nullable([("a", a, true), ("b", b, true)]).unwrap();
    let bytes = write(std::slice::from_ref(&batch), Format::JsonLines, &WriteOptions::default()).unwrap();
    assert_eq!(
        String::from_utf8(bytes.clone()).unwrap(),
        "{\"a\":1,\"b\":\"00ff\"}\n{\"a\":null,\"b\":\"\"}\n"
    );
    assert_equal(
        &batch,
        &read(stream(bytes), &ReadOptions { schema: Some(batch.schema()), ..json() }).unwrap(),
    );
}

#[test]
fn a_number_that_json_lacks_is_an_error_with_its_row_unless_null_is_wanted() {
    let column: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN, f64::INFINITY]));
    let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
    let error = write(std::slice::from_ref(&batch), Format::JsonLines, &WriteOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "<output>: row 1, column \"x\": JSON has no number NaN; write it as null by option, or use another format"
    );
    let options = WriteOptions { non_finite_as_null: true, ..WriteOptions::default() };
    let bytes = write(&[batch], Format::JsonLines, &options).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), "{\"x\":1.0}\n{\"x\":null}\n{\"x\":null}\n");
}

#[test]
fn only_values_that_would_be_written_count_as_unwritable() {
    let hidden: ArrayRef = Arc::new(Float32Array::from(vec![1.0, f32::NAN, 2.0]));
    let fields = Fields::from(vec![Field::new("x", DataType::Float32, true)]);
    let structs: ArrayRef = Arc::new(StructArray::new(
        fields,
        vec![hidden.clone()],
        Some(NullBuffer::from(vec![true, false, true])),
    ));
    let item = Arc::new(Field::new_list_field(DataType::Float32, true));
    let lists: ArrayRef = Arc::new(ListArray::new(
        item.clone(),
        OffsetBuffer::from_lengths([1, 1, 1]),
        hidden.clone(),
        Some(NullBuffer::from(vec![true, false, true])),
    ));
    let batch = RecordBatch::try_from_iter_with_nullable([("s", structs, true), ("l", lists, true)]).unwrap();
    let bytes = write(&[batch], Format::JsonLines, &WriteOptions::default()).unwrap();
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "{\"s\":{\"x\":1.0},\"l\":[1.0]}\n{\"s\":null,\"l\":null}\n{\"s\":{\"x\":2.0},\"l\":[2.0]}\n"
    );
    let lists: ArrayRef = Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([0, 2, 1]), hidden, None));
    let batch = RecordBatch::try_from_iter([("l", lists)]).unwrap();
    let error = write(&[batch], Format::JsonLines, &WriteOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("<output>: row 1, column \"l[]\": "), "{error}");
}

#[test]
fn a_date_beyond_the_calendar_is_an_error_and_not_a_text() {
    let column: ArrayRef = Arc::new(TimestampSecondArray::from(vec![0, i64::MAX]));
    let batch = RecordBatch::try_from_iter([("when", column)]).unwrap();
    let error = write(&[batch], Format::JsonLines, &WriteOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("<output>: row 1, column \"when\": "), "{error}");
}
