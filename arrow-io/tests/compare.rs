//! What `compare` must find, and what it must see through.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss)]

mod every_type;

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::*;
use arrow::error::ArrowError;
use arrow_io::compare::{CompareOptions, Comparison, SchemaDifference, compare};

use every_type::{columns_where, every_type};

type Batches = RecordBatchIterator<std::vec::IntoIter<Result<RecordBatch, ArrowError>>>;

/// The batch cut into pieces of the given lengths, over and over.
fn reader(batch: &RecordBatch, piece_lengths: &[usize]) -> Batches {
    let mut pieces = Vec::new();
    let mut start = 0;
    for length in piece_lengths.iter().cycle() {
        if start == batch.num_rows() {
            break;
        }
        let length = (*length).min(batch.num_rows() - start);
        pieces.push(Ok(batch.slice(start, length)));
        start += length;
    }
    RecordBatchIterator::new(pieces.into_iter(), batch.schema())
}

fn compare_with(left: &RecordBatch, right: &RecordBatch, options: &CompareOptions) -> Comparison {
    compare(&mut reader(left, &[64, 1, 0, 7]), &mut reader(right, &[13, 100]), options).unwrap()
}

fn compared(left: &RecordBatch, right: &RecordBatch) -> Comparison {
    compare_with(left, right, &CompareOptions::default())
}

fn one_column(array: impl Array + 'static) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("c", Arc::new(array) as ArrayRef, true)]).unwrap()
}

#[test]
fn a_table_of_every_type_equals_itself_however_the_batches_are_cut() {
    let batch = every_type(200);
    let comparison = compared(&batch, &batch);
    assert!(comparison.is_equal(), "{comparison}");
    assert_eq!((comparison.left_rows, comparison.right_rows), (200, 200));
    assert_eq!(comparison.columns.len(), batch.num_columns());
}

#[test]
fn a_changed_row_is_found_in_every_type() {
    let batch = every_type(60);
    let shifted: Vec<usize> = (0..60).map(|row| if row == 41 { 42 } else { row }).collect();
    let indices = UInt64Array::from_iter_values(shifted.iter().map(|row| *row as u64));
    let changed = arrow::compute::take_record_batch(&batch, &indices).unwrap();
    let comparison = compared(&batch, &changed);
    let unfound: Vec<&str> = comparison
        .columns
        .iter()
        .filter(|column| column.differing_rows != 1 || column.first[0].row != 41)
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(unfound, ["null"], "{comparison}");
}

#[test]
fn a_flipped_nan_payload_is_a_difference_and_shows_its_bits() {
    let left = one_column(Float64Array::from(vec![1.0, f64::from_bits(0x7ff8_0000_0000_0000), 2.0]));
    let right = one_column(Float64Array::from(vec![1.0, f64::from_bits(0x7ff8_0000_0000_0001), 2.0]));
    let comparison = compared(&left, &right);
    assert_eq!(comparison.columns[0].differing_rows, 1);
    let difference = &comparison.columns[0].first[0];
    assert_eq!(difference.row, 1);
    assert_eq!(difference.left, "NaN (0x7ff8000000000000)");
    assert_eq!(difference.right, "NaN (0x7ff8000000000001)");
}

#[test]
fn a_timestamp_with_a_zone_is_shown_with_or_without_a_time_zone_database() {
    let column = |second| one_column(TimestampSecondArray::from(vec![second]).with_timezone("Asia/Tokyo"));
    let comparison = compared(&column(0), &column(1));
    let left = &comparison.columns[0].first[0].left;
    assert!(["1970-01-01T00:00:00 UTC", "1970-01-01T09:00:00+09:00"].contains(&left.as_str()), "{left}");
}

#[test]
fn equal_nan_payloads_are_equal() {
    let batch = one_column(Float32Array::from(vec![f32::from_bits(0x7fc0_0005), f32::NAN, f32::INFINITY]));
    assert!(compared(&batch, &batch.clone()).is_equal());
}

#[test]
fn a_nan_payload_inside_a_list_is_a_difference() {
    let list = |bits: u64| {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::from_bits(bits)]));
        let field = Arc::new(Field::new_list_field(DataType::Float64, true));
        one_column(ListArray::new(field, OffsetBuffer::from_lengths([1, 1]), values, None))
    };
    let comparison = compared(&list(0x7ff8_0000_0000_0000), &list(0x7ff8_0000_0000_0009));
    assert_eq!(comparison.columns[0].differing_rows, 1);
    assert!(comparison.columns[0].first[0].left.contains("bits differ"), "{comparison}");
}

#[test]
fn negative_zero_differs_from_zero() {
    let comparison = compared(
        &one_column(Float32Array::from(vec![0.0, 0.0])),
        &one_column(Float32Array::from(vec![0.0, -0.0])),
    );
    assert_eq!(comparison.columns[0].differing_rows, 1);
    assert_eq!(comparison.columns[0].first[0].right, "-0.0");
}

#[test]
fn a_missing_last_row_is_counted() {
    let batch = every_type(50);
    let comparison = compared(&batch, &batch.slice(0, 49));
    assert_eq!((comparison.left_rows, comparison.right_rows), (50, 49));
    assert!(!comparison.is_equal());
    assert!(comparison.columns.iter().all(|column| column.differing_rows == 0));
    assert_eq!(comparison.to_string(), "rows: left 50, right 49\n");
}

#[test]
fn a_changed_metadata_entry_is_found_unless_ignored() {
    let batch = columns_where(&every_type(5), |name| name == "struct" || name == "int8");
    let schema = batch.schema();
    let mut fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    fields[0]
        .set_metadata([("note".to_owned(), "other".to_owned()), ("new".to_owned(), "1".to_owned())].into());
    let changed = RecordBatch::try_new(
        Arc::new(Schema::new_with_metadata(fields, [("origin".to_owned(), "elsewhere".to_owned())].into())),
        batch.columns().to_vec(),
    )
    .unwrap();
    let comparison = compared(&batch, &changed);
    let lines: Vec<String> = comparison.schema.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "metadata \"new\" of \"int8\": left absent, right \"1\"",
            "metadata \"note\" of \"int8\": left \"about int8\", right \"other\"",
            "table metadata \"origin\": left \"every_type\", right \"elsewhere\"",
        ]
    );
    assert!(!comparison.is_equal());
    let options = CompareOptions { ignore_metadata: true, ..CompareOptions::default() };
    assert!(compare_with(&batch, &changed, &options).is_equal());
}

#[test]
fn metadata_of_an_inner_column_is_found_by_its_path() {
    let batch = columns_where(&every_type(9), |name| name == "list_of_struct");
    let DataType::List(item) = batch.schema().field(0).data_type().clone() else { panic!("no list") };
    let DataType::Struct(fields) = item.data_type().clone() else { panic!("no struct") };
    let bare: Vec<Field> =
        fields.iter().map(|field| field.as_ref().clone().with_metadata([].into())).collect();
    let list_type = DataType::List(Arc::new(Field::new("item", DataType::Struct(bare.into()), true)));
    let column = cast(batch.column(0), &list_type).unwrap();
    let field = batch.schema().field(0).clone().with_data_type(list_type);
    let schema = Schema::new_with_metadata(vec![field], batch.schema().metadata().clone());
    let changed = RecordBatch::try_new(Arc::new(schema), vec![column]).unwrap();
    let comparison = compared(&batch, &changed);
    assert_eq!(
        comparison.schema,
        [SchemaDifference::FieldMetadata {
            column: "list_of_struct.item.a".to_owned(),
            key: "depth".to_owned(),
            left: Some("2".to_owned()),
            right: None,
        }]
    );
    assert_eq!(comparison.columns[0].differing_rows, 0);
}

#[test]
fn large_utf8_against_utf8_is_a_type_difference_with_equal_values() {
    let left = one_column(StringArray::from(vec![Some("a"), None, Some("")]));
    let right = one_column(LargeStringArray::from(vec![Some("a"), None, Some("")]));
    let comparison = compared(&left, &right);
    assert_eq!(
        comparison.schema,
        [SchemaDifference::Type { column: "c".to_owned(), left: DataType::Utf8, right: DataType::LargeUtf8 }]
    );
    assert_eq!(comparison.columns[0].differing_rows, 0);
    assert_eq!(comparison.columns[0].not_compared, None);
    let options = CompareOptions { ignore_types: true, ..CompareOptions::default() };
    assert!(compare_with(&left, &right, &options).is_equal());
}

#[test]
fn encodings_are_compared_by_value() {
    let plain = StringArray::from(vec![Some("x"), Some("x"), None, Some("a text too long to be inline")]);
    let dictionary = {
        // The null is in the dictionary, not in the keys, and the values are in another order.
        let values =
            StringArray::from(vec![Some("a text too long to be inline"), None, Some("x"), Some("unused")]);
        DictionaryArray::<Int8Type>::new(Int8Array::from(vec![2, 2, 1, 0]), Arc::new(values))
    };
    let runs: RunArray<Int16Type> = plain.iter().collect();
    let view = cast(&plain, &DataType::Utf8View).unwrap();
    let others: Vec<ArrayRef> = vec![Arc::new(dictionary), Arc::new(runs), view];
    let options = CompareOptions { ignore_types: true, ..CompareOptions::default() };
    for other in others {
        let other = one_column(make_array(other.to_data()));
        let comparison = compare_with(&one_column(plain.clone()), &other, &options);
        assert!(comparison.is_equal(), "{comparison}");
    }
}

#[test]
fn list_shapes_are_compared_by_value() {
    let options = CompareOptions { ignore_types: true, ..CompareOptions::default() };
    let batch = every_type(80);
    for name in ["list", "large_list", "map", "fixed_size_list"] {
        let column = batch.column_by_name(name).unwrap();
        let value_type = match column.data_type() {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                item.clone()
            }
            _ => continue,
        };
        let other = cast(column, &DataType::LargeListView(value_type)).unwrap();
        let comparison = compare_with(
            &one_column(make_array(column.to_data())),
            &one_column(make_array(other.to_data())),
            &options,
        );
        assert!(comparison.is_equal(), "{name}: {comparison}");
    }
}

#[test]
fn what_lies_under_nulls_is_ignored() {
    let nulls = || Some(NullBuffer::from(vec![true, false, true]));
    let ints = |hidden: i32| Int32Array::new(ScalarBuffer::from(vec![1, hidden, 3]), nulls());
    assert!(compared(&one_column(ints(0)), &one_column(ints(77))).is_equal());

    let list = |offsets: Vec<i32>, values: Vec<i32>| {
        let values: ArrayRef = Arc::new(Int32Array::from(values));
        let field = Arc::new(Field::new_list_field(DataType::Int32, true));
        one_column(ListArray::new(field, OffsetBuffer::new(offsets.into()), values, nulls()))
    };
    assert!(
        compared(&list(vec![0, 1, 1, 2], vec![5, 6]), &list(vec![0, 1, 3, 4], vec![5, 8, 9, 6])).is_equal()
    );

    let in_struct = |hidden: i32| {
        let child: ArrayRef = Arc::new(Int32Array::from(vec![1, hidden, 3]));
        one_column(StructArray::new(
            vec![Field::new("a", DataType::Int32, true)].into(),
            vec![child],
            nulls(),
        ))
    };
    assert!(compared(&in_struct(4), &in_struct(5)).is_equal());
}

#[test]
fn unselected_children_of_a_sparse_union_are_ignored() {
    let union = |hidden: i32| {
        let fields: UnionFields = [
            (0, Arc::new(Field::new("a", DataType::Int32, true))),
            (1, Arc::new(Field::new("b", DataType::Int32, true))),
        ]
        .into_iter()
        .collect();
        let a: ArrayRef = Arc::new(Int32Array::from(vec![1, hidden]));
        let b: ArrayRef = Arc::new(Int32Array::from(vec![hidden, 2]));
        one_column(UnionArray::try_new(fields, vec![0_i8, 1].into(), None, vec![a, b]).unwrap())
    };
    assert!(compared(&union(7), &union(8)).is_equal());
}

#[test]
fn a_lossy_cast_does_not_hide_a_difference() {
    let options = CompareOptions { ignore_types: true, ..CompareOptions::default() };
    let left = one_column(Int64Array::from(vec![Some(1), Some((1 << 53) + 1), Some(4), None]));
    let right = one_column(Float64Array::from(vec![Some(1.5), Some((1_i64 << 53) as f64), Some(4.0), None]));
    let comparison = compare_with(&left, &right, &options);
    assert_eq!(comparison.columns[0].differing_rows, 2, "{comparison}");
    assert_eq!(
        comparison.columns[0].first.iter().map(|difference| difference.row).collect::<Vec<_>>(),
        [0, 1]
    );
}

#[test]
fn types_without_a_common_form_are_said_not_to_be_compared() {
    let left = one_column(Int64Array::from(vec![1]));
    let right = one_column(Float64Array::from(vec![1.0]));
    let comparison = compared(&left, &right);
    assert_eq!(comparison.columns[0].not_compared.as_deref(), Some("Int64 against Float64"));
    assert!(!comparison.is_equal());
}

#[test]
fn moved_added_and_missing_columns_are_reported_and_the_rest_compared_by_name() {
    let column = |values: Vec<i32>| Arc::new(Int32Array::from(values)) as ArrayRef;
    let left = RecordBatch::try_from_iter([
        ("a", column(vec![1])),
        ("b", column(vec![2])),
        ("old", column(vec![3])),
    ]);
    let right = RecordBatch::try_from_iter([
        ("b", column(vec![2])),
        ("new", column(vec![3])),
        ("a", column(vec![9])),
    ]);
    let comparison = compared(&left.unwrap(), &right.unwrap());
    assert_eq!(
        comparison.to_string(),
        "column \"old\" (Int32) is only on the left\n\
         column \"new\" (Int32) is only on the right\n\
         column order: left [a, b], right [b, a]\n\
         column \"a\": 1 rows differ\n  row 0: left 1, right 9\n"
    );
}

#[test]
fn only_the_first_differences_are_kept_but_all_are_counted() {
    let left = one_column(Int32Array::from_iter_values(0..1_000));
    let right =
        one_column(Int32Array::from_iter_values((0..1_000).map(|value| value + i32::from(value % 2 == 1))));
    let options = CompareOptions { first_differences: 3, ..CompareOptions::default() };
    let comparison = compare_with(&left, &right, &options);
    assert_eq!(comparison.columns[0].differing_rows, 500);
    let rows: Vec<u64> = comparison.columns[0].first.iter().map(|difference| difference.row).collect();
    assert_eq!(rows, [1, 3, 5]);
    assert!(comparison.to_string().ends_with("  and 497 more\n"), "{comparison}");
}

#[test]
fn a_reader_that_fails_names_its_side_and_row() {
    let batch = one_column(Int32Array::from(vec![1, 2]));
    let broken = vec![Ok(batch.clone()), Err(ArrowError::ParseError("broken".to_owned()))];
    let mut right = RecordBatchIterator::new(broken.into_iter(), batch.schema());
    let three = one_column(Int32Array::from(vec![1, 2, 3]));
    let error = compare(&mut reader(&three, &[3]), &mut right, &CompareOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "reading the right table after 2 rows: Parser error: broken");
}
