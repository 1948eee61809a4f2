//! One column of every Arrow type, with nulls.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::*;
type F16 = <Float16Type as ArrowPrimitiveType>::Native;

/// A batch of `row_count` rows. Columns are named after their types; row 3 and each fifth after it is null.
pub fn every_type(row_count: usize) -> RecordBatch {
    let columns: Vec<(String, ArrayRef)> =
        flat_columns(row_count).into_iter().chain(nested_columns(row_count)).collect();
    batch_of(columns)
}

/// The batch's columns whose names satisfy `keep`.
pub fn columns_where(batch: &RecordBatch, keep: impl Fn(&str) -> bool) -> RecordBatch {
    let schema = batch.schema();
    let indices: Vec<usize> = schema
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| keep(field.name()))
        .map(|(index, _)| index)
        .collect();
    batch.project(&indices).unwrap()
}

pub fn batch_of(columns: Vec<(String, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| {
            Field::new(name, array.data_type().clone(), true)
                .with_metadata([("note".to_owned(), format!("about {name}"))].into())
        })
        .collect();
    let schema = Schema::new_with_metadata(fields, [("origin".to_owned(), "every_type".to_owned())].into());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect()).unwrap()
}

fn is_null(row: usize) -> bool {
    row % 5 == 3
}

fn primitive<T: ArrowPrimitiveType>(
    row_count: usize,
    value: impl Fn(usize) -> T::Native,
) -> PrimitiveArray<T> {
    (0..row_count).map(|row| (!is_null(row)).then(|| value(row))).collect()
}

fn texts(row_count: usize) -> Vec<Option<String>> {
    let value = |row: usize| match row % 7 {
        0 => "plain".to_owned(),
        1 => "comma, \"quote\" and\nnewline".to_owned(),
        2 => "ünïcödé \u{1F980}".to_owned(),
        4 => format!("a text that is longer than a view can hold inline {row}"),
        _ => format!("v{row}"),
    };
    (0..row_count).map(|row| (!is_null(row)).then(|| value(row))).collect()
}

fn bytes(row_count: usize) -> Vec<Option<Vec<u8>>> {
    (0..row_count)
        .map(|row| (!is_null(row)).then(|| (0..row % 20).map(|byte| (byte * 37 + row) as u8).collect()))
        .collect()
}

fn named(name: &str, array: impl Array + 'static) -> (String, ArrayRef) {
    (name.to_owned(), Arc::new(array))
}

fn flat_columns(n: usize) -> Vec<(String, ArrayRef)> {
    let texts = texts(n);
    let bytes = bytes(n);
    let byte_slices: Vec<Option<&[u8]>> = bytes.iter().map(Option::as_deref).collect();
    let second = |row: usize| 1_700_000_000 + row as i64 * 86_399;
    let mut columns = vec![
        named("null", NullArray::new(n)),
        named("boolean", (0..n).map(|row| (!is_null(row)).then_some(row % 3 == 0)).collect::<BooleanArray>()),
        named("int8", primitive::<Int8Type>(n, |row| (row as i8).wrapping_mul(31))),
        named("int16", primitive::<Int16Type>(n, |row| (row as i16).wrapping_mul(-311))),
        named("int32", primitive::<Int32Type>(n, |row| row as i32 * -31_111)),
        named("int64", primitive::<Int64Type>(n, |row| i64::MIN + row as i64 * 1_000_000_007)),
        named("uint8", primitive::<UInt8Type>(n, |row| 255 - row as u8)),
        named("uint16", primitive::<UInt16Type>(n, |row| 65_535 - row as u16)),
        named("uint32", primitive::<UInt32Type>(n, |row| u32::MAX - row as u32)),
        named("uint64", primitive::<UInt64Type>(n, |row| u64::MAX - row as u64)),
        named("float16", primitive::<Float16Type>(n, |row| F16::from_f32(row as f32 / 8.0 - 1.0))),
        named("float32", primitive::<Float32Type>(n, |row| row as f32 / 3.0 - 1.0)),
        named("float64", primitive::<Float64Type>(n, |row| if row == 0 { -0.0 } else { row as f64 / 3.0 })),
        named("utf8", StringArray::from_iter(texts.clone())),
        named("large_utf8", LargeStringArray::from_iter(texts.clone())),
        named("utf8_view", StringViewArray::from_iter(texts.clone())),
        named("binary", BinaryArray::from_iter(byte_slices.clone())),
        named("large_binary", LargeBinaryArray::from_iter(byte_slices.clone())),
        named("binary_view", BinaryViewArray::from_iter(byte_slices)),
        named(
            "fixed_size_binary",
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                (0..n).map(|row| (!is_null(row)).then_some([row as u8, 0, 255])),
                3,
            )
            .unwrap(),
        ),
        named("date32", primitive::<Date32Type>(n, |row| 19_000 + row as i32)),
        named("date64", primitive::<Date64Type>(n, |row| (19_000 + row as i64) * 86_400_000)),
        named("time32_s", primitive::<Time32SecondType>(n, |row| row as i32 % 86_400)),
        named("time32_ms", primitive::<Time32MillisecondType>(n, |row| row as i32 * 1_001 % 86_400_000)),
        named("time64_us", primitive::<Time64MicrosecondType>(n, |row| row as i64 * 1_000_001)),
        named("time64_ns", primitive::<Time64NanosecondType>(n, |row| row as i64 * 1_000_000_001)),
        named("timestamp_s", primitive::<TimestampSecondType>(n, second)),
        named("timestamp_ms", primitive::<TimestampMillisecondType>(n, |row| second(row) * 1_000 + 7)),
        named("timestamp_us", primitive::<TimestampMicrosecondType>(n, |row| second(row) * 1_000_000 + 7)),
        named("timestamp_ns", primitive::<TimestampNanosecondType>(n, |row| second(row) * 1_000_000_000 + 7)),
        named("timestamp_s_offset", primitive::<TimestampSecondType>(n, second).with_timezone("+02:30")),
        named(
            "timestamp_ns_utc",
            primitive::<TimestampNanosecondType>(n, |row| second(row) * 1_000_000_000 - 1)
                .with_timezone("UTC"),
        ),
        named(
            "timestamp_us_paris",
            primitive::<TimestampMicrosecondType>(n, |row| second(row) * 1_000_000)
                .with_timezone("Europe/Paris"),
        ),
        named("duration_s", primitive::<DurationSecondType>(n, |row| row as i64 * -3)),
        named("duration_ms", primitive::<DurationMillisecondType>(n, |row| row as i64 * 3_001)),
        named("duration_us", primitive::<DurationMicrosecondType>(n, |row| row as i64 * 3_000_001)),
        named("duration_ns", primitive::<DurationNanosecondType>(n, |row| row as i64 * 3_000_000_001)),
        named("interval_year_month", primitive::<IntervalYearMonthType>(n, |row| row as i32 * 7 - 3)),
        named(
            "interval_day_time",
            primitive::<IntervalDayTimeType>(n, |row| IntervalDayTime::new(row as i32, row as i32 * 1_001)),
        ),
        named(
            "interval_month_day_nano",
            primitive::<IntervalMonthDayNanoType>(n, |row| {
                IntervalMonthDayNano::new(row as i32, -(row as i32), row as i64 * 1_000_003)
            }),
        ),
    ];
    let unscaled = |row: usize| row as i64 * 12_345 - 50_000;
    columns.extend([
        named(
            "decimal32",
            primitive::<Decimal32Type>(n, |row| unscaled(row) as i32).with_precision_and_scale(9, 2).unwrap(),
        ),
        named("decimal64", primitive::<Decimal64Type>(n, unscaled).with_precision_and_scale(18, 4).unwrap()),
        named(
            "decimal128",
            primitive::<Decimal128Type>(n, |row| i128::from(unscaled(row)) * 10_i128.pow(20))
                .with_precision_and_scale(38, 10)
                .unwrap(),
        ),
        named(
            "decimal256",
            primitive::<Decimal256Type>(n, |row| {
                i256::from_i128(i128::from(unscaled(row)) * 10_i128.pow(30))
            })
            .with_precision_and_scale(70, 20)
            .unwrap(),
        ),
    ]);
    columns
}

fn offsets(n: usize) -> Vec<usize> {
    let mut end = 0;
    let mut offsets = vec![0];
    for row in 0..n {
        end += row % 4;
        offsets.push(end);
    }
    offsets
}

fn nulls(n: usize) -> Option<NullBuffer> {
    Some(NullBuffer::from_iter((0..n).map(|row| !is_null(row))))
}

fn item(array: &dyn Array) -> FieldRef {
    Arc::new(Field::new_list_field(array.data_type().clone(), true))
}

fn pair_struct(n: usize) -> StructArray {
    let a: ArrayRef = Arc::new(primitive::<Int32Type>(n, |row| row as i32 * 5));
    let b: ArrayRef = Arc::new(StringArray::from_iter(texts(n)));
    let fields = Fields::from(vec![
        Field::new("a", DataType::Int32, true).with_metadata([("depth".to_owned(), "2".to_owned())].into()),
        Field::new("b", DataType::Utf8, true),
    ]);
    let nulls = NullBuffer::from_iter((0..n).map(|row| row % 6 != 4));
    StructArray::new(fields, vec![a, b], Some(nulls))
}

fn nested_columns(n: usize) -> Vec<(String, ArrayRef)> {
    let offsets = offsets(n);
    let child_count = *offsets.last().unwrap();
    let offsets32: OffsetBuffer<i32> =
        OffsetBuffer::new(offsets.iter().map(|offset| *offset as i32).collect());
    let offsets64: OffsetBuffer<i64> =
        OffsetBuffer::new(offsets.iter().map(|offset| *offset as i64).collect());
    let ints: ArrayRef = Arc::new(primitive::<Int64Type>(child_count, |row| row as i64 * 1_000));
    let strings: ArrayRef = Arc::new(StringArray::from_iter(texts(child_count)));
    let structs: ArrayRef = Arc::new(pair_struct(child_count));
    let starts: ScalarBuffer<i32> = (0..n).rev().map(|row| offsets[row] as i32).collect();
    let sizes: ScalarBuffer<i32> = (0..n).rev().map(|row| (row % 4) as i32).collect();
    let starts64: ScalarBuffer<i64> = starts.iter().map(|start| i64::from(*start)).collect();
    let sizes64: ScalarBuffer<i64> = sizes.iter().map(|size| i64::from(*size)).collect();
    let triples: ArrayRef = Arc::new(primitive::<Float32Type>(3 * n, |row| row as f32));

    vec![
        named("list", ListArray::new(item(&ints), offsets32.clone(), ints.clone(), nulls(n))),
        named("large_list", LargeListArray::new(item(&strings), offsets64, strings.clone(), nulls(n))),
        named("list_view", ListViewArray::new(item(&ints), starts, sizes, ints.clone(), nulls(n))),
        named(
            "large_list_view",
            LargeListViewArray::new(item(&strings), starts64, sizes64, strings.clone(), nulls(n)),
        ),
        named("fixed_size_list", FixedSizeListArray::new(item(&triples), 3, triples.clone(), nulls(n))),
        named("list_of_struct", ListArray::new(item(&structs), offsets32.clone(), structs, nulls(n))),
        named("struct", pair_struct(n)),
        named("map", map(&offsets32, child_count, nulls(n))),
        named("dense_union", dense_union(n)),
        named("sparse_union", sparse_union(n)),
        named("dictionary_int8_utf8", dictionary_utf8::<Int8Type>(n)),
        named("dictionary_uint32_int64", dictionary_int64(n)),
        named("run_end_int32_utf8", runs_utf8(n)),
        named("run_end_int16_int64", runs_int64(n)),
        named("list_of_dictionary", {
            let values: ArrayRef = Arc::new(dictionary_utf8::<Int8Type>(child_count));
            ListArray::new(item(&values), offsets32, values, nulls(n))
        }),
    ]
}

fn map(offsets: &OffsetBuffer<i32>, child_count: usize, nulls: Option<NullBuffer>) -> MapArray {
    let keys: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..child_count).map(|row| format!("k{row}"))));
    let values: ArrayRef = Arc::new(primitive::<Int32Type>(child_count, |row| row as i32));
    let fields = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Int32, true),
    ]);
    let entries = StructArray::new(fields.clone(), vec![keys, values], None);
    let field = Arc::new(Field::new("entries", DataType::Struct(fields), false));
    MapArray::new(field, offsets.clone(), entries, nulls, false)
}

fn union_fields() -> UnionFields {
    [
        (0, Arc::new(Field::new("number", DataType::Int32, true))),
        (5, Arc::new(Field::new("text", DataType::Utf8, true))),
    ]
    .into_iter()
    .collect()
}

fn type_ids(n: usize) -> ScalarBuffer<i8> {
    (0..n).map(|row| if row % 3 == 1 { 5 } else { 0 }).collect()
}

fn dense_union(n: usize) -> UnionArray {
    let ids = type_ids(n);
    let mut counts = [0_i32; 2];
    let offsets: ScalarBuffer<i32> = ids
        .iter()
        .map(|id| {
            let count = &mut counts[usize::from(*id == 5)];
            *count += 1;
            *count - 1
        })
        .collect();
    let numbers: ArrayRef = Arc::new(primitive::<Int32Type>(counts[0] as usize, |row| row as i32));
    let strings: ArrayRef = Arc::new(StringArray::from_iter(texts(counts[1] as usize)));
    UnionArray::try_new(union_fields(), ids, Some(offsets), vec![numbers, strings]).unwrap()
}

fn sparse_union(n: usize) -> UnionArray {
    let numbers: ArrayRef = Arc::new(primitive::<Int32Type>(n, |row| row as i32));
    let strings: ArrayRef = Arc::new(StringArray::from_iter(texts(n)));
    UnionArray::try_new(union_fields(), type_ids(n), None, vec![numbers, strings]).unwrap()
}

pub fn dictionary_utf8<K: ArrowDictionaryKeyType>(n: usize) -> DictionaryArray<K> {
    (0..n).map(|row| (!is_null(row)).then_some(["red", "green", "blue, dark"][row % 3])).collect()
}

fn dictionary_int64(n: usize) -> DictionaryArray<UInt32Type> {
    let keys = primitive::<UInt32Type>(n, |row| row as u32 % 4);
    DictionaryArray::new(keys, Arc::new(Int64Array::from(vec![10, 200, 3_000, -4])))
}

fn runs_utf8(n: usize) -> RunArray<Int32Type> {
    (0..n).map(|row| ["long", "long", "run", "end"].get(row / 3 % 5).copied()).collect()
}

fn runs_int64(n: usize) -> RunArray<Int16Type> {
    let run_count = n.div_ceil(2);
    let ends: PrimitiveArray<Int16Type> = (1..=run_count).map(|run| Some((2 * run).min(n) as i16)).collect();
    RunArray::try_new(&ends, &primitive::<Int64Type>(run_count, |run| run as i64 * 9)).unwrap()
}

/// Types that a format may have trouble with although it holds their parts.
pub fn edge_types(n: usize) -> RecordBatch {
    let ints: ArrayRef = Arc::new(primitive::<Int32Type>(n, |row| row as i32));
    let one_each: OffsetBuffer<i32> = OffsetBuffer::from_lengths(std::iter::repeat_n(1, n));
    let list_of = |values: ArrayRef| ListArray::new(item(&values), one_each.clone(), values, nulls(n));
    let struct_of = |values: ArrayRef| {
        StructArray::new(
            vec![Field::new("inner", values.data_type().clone(), true)].into(),
            vec![values],
            nulls(n),
        )
    };
    let keys = primitive::<Int8Type>(n, |row| row as i8 % 3);
    let interval: ArrayRef =
        Arc::new(primitive::<IntervalMonthDayNanoType>(n, |_| IntervalMonthDayNano::new(1, 2, 3)));
    let empty_lists = FixedSizeListArray::new(item(&ints), 0, new_empty_array(&DataType::Int32), nulls(n));
    batch_of(vec![
        named("empty_struct", StructArray::new_empty_fields(n, nulls(n))),
        named("fixed_size_list_of_0", if n == 0 { empty_lists } else { zero_sized_lists(n) }),
        named(
            "fixed_size_binary_of_0",
            FixedSizeBinaryArray::try_new(0, Vec::<u8>::new().into(), nulls(n))
                .unwrap_or_else(|_| FixedSizeBinaryArray::new_null(0, n)),
        ),
        named(
            "map_int_key",
            map_of(Arc::new(Int32Array::from_iter_values(0..n as i32)), ints.clone(), false),
        ),
        named(
            "map_sorted",
            map_of(
                Arc::new(StringArray::from_iter_values((0..n).map(|row| format!("k{row:04}")))),
                ints.clone(),
                true,
            ),
        ),
        named("dictionary_of_struct", DictionaryArray::new(keys.clone(), Arc::new(pair_struct(3)))),
        named(
            "dictionary_of_binary",
            DictionaryArray::new(keys.clone(), Arc::new(BinaryArray::from_vec(vec![b"a", b"bc", b""]))),
        ),
        named(
            "dictionary_of_float64",
            DictionaryArray::new(keys.clone(), Arc::new(Float64Array::from(vec![0.5, -0.0, 2.25]))),
        ),
        named(
            "dictionary_of_boolean",
            DictionaryArray::new(keys.clone(), Arc::new(BooleanArray::from(vec![true, false, true]))),
        ),
        named(
            "dictionary_with_null_value",
            DictionaryArray::new(keys, Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]))),
        ),
        named("run_end_in_struct", struct_of(Arc::new(runs_utf8(n)))),
        named("run_end_in_list", list_of(Arc::new(runs_int64(n)))),
        named("list_of_null", list_of(Arc::new(NullArray::new(n)))),
        named("list_of_list", list_of(Arc::new(list_of(ints.clone())))),
        named("list_of_union", list_of(Arc::new(dense_union(n)))),
        named("struct_of_interval", struct_of(interval)),
        named("struct_of_binary_view", struct_of(Arc::new(BinaryViewArray::from_iter(bytes(n))))),
        named(
            "struct_of_duration",
            struct_of(Arc::new(primitive::<DurationSecondType>(n, |row| row as i64))),
        ),
        named(
            "decimal_of_negative_scale",
            primitive::<Decimal128Type>(n, |row| row as i128).with_precision_and_scale(10, -2).unwrap(),
        ),
        named(
            "timestamp_of_no_zone",
            primitive::<TimestampSecondType>(n, |row| row as i64).with_timezone("Mars/Olympus"),
        ),
        named("date64_within_a_day", primitive::<Date64Type>(n, |row| 86_400_000 * row as i64 + 1)),
    ])
}

fn zero_sized_lists(n: usize) -> FixedSizeListArray {
    let data_type = DataType::FixedSizeList(Arc::new(Field::new_list_field(DataType::Int32, true)), 0);
    let data = ArrayData::builder(data_type)
        .len(n)
        .nulls(nulls(n))
        .add_child_data(new_empty_array(&DataType::Int32).to_data())
        .build()
        .unwrap();
    FixedSizeListArray::from(data)
}

fn map_of(keys: ArrayRef, values: ArrayRef, is_sorted: bool) -> MapArray {
    let n = keys.len();
    let fields = Fields::from(vec![
        Field::new("key", keys.data_type().clone(), false),
        Field::new("value", values.data_type().clone(), true),
    ]);
    let entries = StructArray::new(fields.clone(), vec![keys, values], None);
    let field = Arc::new(Field::new("entries", DataType::Struct(fields), false));
    MapArray::new(field, OffsetBuffer::from_lengths(std::iter::repeat_n(1, n)), entries, None, is_sorted)
}
