//! Every Arrow type goes through every format and comes back, or is refused before a byte is written.
#![cfg(feature = "formats")]
#![allow(clippy::unwrap_used)]

mod every_type;
mod memory;

use std::sync::Arc;

use arrow::array::{Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use arrow_io::compare::CompareOptions;
use arrow_io::formats::{Format, FormatError, ReadOptions, WriteOptions, create, unsupported_columns};

use every_type::{columns_where, edge_types, every_type};
use memory::{Written, assert_equal, compared, read, stream, write};

/// What the format makes of the batch, written in two parts. Text formats are given the schema to read with.
fn round_trip(batch: &RecordBatch, format: Format) -> Result<RecordBatch, FormatError> {
    let part = batch.num_rows() / 3;
    let parts = [batch.slice(0, part), batch.slice(part, batch.num_rows() - part)];
    let bytes = write(&parts, format, &WriteOptions::default())?;
    let schema = format.is_text().then(|| batch.schema());
    read(stream(bytes), &ReadOptions { format: Some(format), schema, ..ReadOptions::default() })
}

fn all_columns() -> Vec<RecordBatch> {
    [every_type(40), edge_types(40)]
        .iter()
        .flat_map(|batch| {
            (0..batch.num_columns()).map(|index| batch.project(&[index]).unwrap()).collect::<Vec<_>>()
        })
        .collect()
}

/// Parquet gives run-end encoded columns back as plain ones.
fn comes_back_plain(format: Format, name: &str) -> bool {
    format == Format::Parquet && name.starts_with("run_end")
}

#[test]
fn a_column_is_either_refused_or_comes_back_as_it_was() {
    for format in Format::FOREIGN {
        for column in all_columns() {
            let name = column.schema().field(0).name().clone();
            let refused = unsupported_columns(format, &column.schema());
            let back = round_trip(&column, format);
            if refused.is_empty() {
                let back = back.unwrap_or_else(|error| panic!("{format} {name}: {error}"));
                let ignore_types = comes_back_plain(format, &name);
                let comparison =
                    compared(&column, &back, &CompareOptions { ignore_types, ..CompareOptions::default() });
                assert!(comparison.is_equal(), "{format} {name}: {comparison}");
            } else {
                assert!(matches!(back, Err(FormatError::UnsupportedColumns { .. })), "{format} {name}");
            }
        }
    }
}

#[test]
fn a_whole_table_of_supported_columns_comes_back() {
    let batch = every_type(100);
    for format in Format::FOREIGN {
        let refused: Vec<String> =
            unsupported_columns(format, &batch.schema()).into_iter().map(|column| column.path).collect();
        let kept = columns_where(&batch, |name| {
            !comes_back_plain(format, name)
                && !refused.iter().any(|path| path.split('.').next() == Some(name))
        });
        assert_equal(&kept, &round_trip(&kept, format).unwrap());
    }
}

/// The columns of `every_type` and `edge_types` that a format refuses.
fn refused(format: Format) -> Vec<String> {
    all_columns()
        .iter()
        .flat_map(|column| unsupported_columns(format, &column.schema()))
        .map(|column| column.path)
        .collect()
}

#[test]
fn parquet_refuses_what_its_writer_or_reader_cannot_do() {
    let expected = [
        "interval_month_day_nano",
        "dense_union",
        "sparse_union",
        "empty_struct",
        "fixed_size_binary_of_0",
        "dictionary_of_struct",
        "dictionary_of_boolean",
        "list_of_union.item",
        "struct_of_interval.inner",
        "decimal_of_negative_scale",
    ];
    assert_eq!(refused(Format::Parquet), expected);
}

#[test]
fn csv_refuses_what_has_no_text_or_does_not_come_back_from_it() {
    let expected = [
        "binary",
        "large_binary",
        "binary_view",
        "fixed_size_binary",
        "duration_s",
        "duration_ms",
        "duration_us",
        "duration_ns",
        "list",
        "large_list",
        "list_view",
        "large_list_view",
        "fixed_size_list",
        "list_of_struct",
        "struct",
        "map",
        "dense_union",
        "sparse_union",
        "list_of_dictionary",
        "empty_struct",
        "fixed_size_list_of_0",
        "fixed_size_binary_of_0",
        "map_int_key",
        "map_sorted",
        "dictionary_of_struct",
        "dictionary_of_binary",
        "dictionary_of_boolean",
        "run_end_in_struct",
        "run_end_in_list",
        "list_of_null",
        "list_of_list",
        "list_of_union",
        "struct_of_interval",
        "struct_of_binary_view",
        "struct_of_duration",
        "decimal_of_negative_scale",
        "timestamp_of_no_zone",
    ];
    assert_eq!(refused(Format::Csv), expected);
    assert_eq!(refused(Format::Tsv), expected);
}

#[test]
fn json_lines_refuse_what_has_no_json() {
    let expected = [
        "duration_s",
        "duration_ms",
        "duration_us",
        "duration_ns",
        "interval_year_month",
        "interval_day_time",
        "interval_month_day_nano",
        "dense_union",
        "sparse_union",
        "map_int_key",
        "map_sorted",
        "dictionary_of_boolean",
        "list_of_union.item",
        "struct_of_interval.inner",
        "struct_of_duration.inner",
        "decimal_of_negative_scale",
        "timestamp_of_no_zone",
    ];
    assert_eq!(refused(Format::JsonLines), expected);
}

#[test]
fn arrow_formats_hold_every_type() {
    assert!(refused(Format::ArrowFile).is_empty());
    assert!(refused(Format::ArrowStream).is_empty());
}

#[test]
fn a_refusal_names_column_type_and_remedy_and_writes_nothing() {
    let batch = columns_where(&every_type(3), |name| name == "int8" || name == "list");
    let written = Written::default();
    let error = create(Box::new(written.clone()), Format::Csv, batch.schema(), &WriteOptions::default())
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "csv cannot hold column \"list\" (List(Int64): CSV has no nested columns; flatten it, or write another format)"
    );
    assert!(written.bytes().is_empty());
}

#[test]
fn a_batch_of_another_schema_is_refused_by_name() {
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
    let batch = RecordBatch::try_from_iter([("a", Arc::new(Int32Array::from(vec![1])) as _)]).unwrap();
    for format in Format::FOREIGN {
        let mut sink =
            create(Box::new(Written::default()), format, schema.clone(), &WriteOptions::default()).unwrap();
        assert_eq!(
            sink.write(&batch).unwrap_err().to_string(),
            "a batch does not fit the output: column \"a\" is Int32, expected Utf8"
        );
    }
}

#[test]
fn tables_without_rows_come_back_with_their_schema() {
    let batch =
        columns_where(&every_type(1), |name| ["int8", "utf8", "timestamp_us"].contains(&name)).slice(0, 0);
    for format in Format::FOREIGN {
        assert_equal(&batch, &round_trip(&batch, format).unwrap());
    }
}
