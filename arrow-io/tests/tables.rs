//! Tables written as `.cb2t` files and read back: every type, any cut of batches and row groups, every way to read.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod every_type;

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::*;
use arrow_io::TableError;
use arrow_io::compare::{CompareOptions, compare};
use arrow_io::table::{DictionarySurvey, ReadOptions, Table, TableWriter, WriterOptions};
use codec_core::{Choice, EncodeOptions};
use codecs::REGISTRY;
use container::Source;
use every_type::{edge_types, every_type};

fn written(batches: &[RecordBatch], options: WriterOptions) -> Vec<u8> {
    let mut writer = TableWriter::new(Vec::new(), batches[0].schema(), &REGISTRY, options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap().0
}

fn opened(bytes: Vec<u8>) -> Table {
    Table::from_source(Source::memory(bytes), &REGISTRY).unwrap()
}

/// The whole table, compared with `batch` in types, metadata and values.
fn assert_same(table: &Table, batch: &RecordBatch, place: &str) {
    assert_eq!(table.schema(), &batch.schema(), "{place}");
    assert_reads(batch, table.read(&ReadOptions::default()).unwrap(), place);
}

fn assert_reads(expected: &RecordBatch, mut found: impl RecordBatchReader, place: &str) {
    let mut expected = RecordBatchIterator::new([Ok(expected.clone())], expected.schema());
    let comparison = compare(&mut expected, &mut found, &CompareOptions::default()).unwrap();
    assert!(comparison.is_equal(), "{place}: {comparison}");
}

fn small_groups(rows: u64) -> WriterOptions {
    WriterOptions { row_group_rows: rows, ..WriterOptions::default() }
}

fn small_blocks() -> EncodeOptions {
    EncodeOptions { block_bytes: 4096, tile_size: 512, bytes_tile_size: 4096, choice: Choice::Auto }
}

#[test]
fn every_type_comes_back_whatever_the_row_groups() {
    for batch in [every_type(2500), edge_types(100), every_type(1), every_type(0)] {
        for rows in [1 << 20, 1000, 113] {
            let encode = small_blocks();
            let bytes = written(std::slice::from_ref(&batch), WriterOptions { encode, ..small_groups(rows) });
            let table = opened(bytes);
            let place = format!("{} rows, groups of {rows}", batch.num_rows());
            assert_same(&table, &batch, &place);
            table.verify(&|_, _| {}).unwrap_or_else(|error| panic!("{place}: {error}"));
        }
    }
}

#[test]
fn batches_may_be_cut_anywhere() {
    let batch = every_type(700);
    let cuts = [0, 1, 8, 333, 334, 700];
    let parts: Vec<RecordBatch> = cuts.windows(2).map(|cut| batch.slice(cut[0], cut[1] - cut[0])).collect();
    let whole = opened(written(std::slice::from_ref(&batch), small_groups(256)));
    let table = opened(written(&parts, small_groups(256)));
    assert_same(&table, &batch, "in parts");
    assert_eq!(table.container().file_bytes(), whole.container().file_bytes());
}

#[test]
fn every_codec_holds_every_type() {
    let batch = every_type(1500);
    for codec in REGISTRY.iter() {
        let encode = EncodeOptions { choice: Choice::Prefer(codec), ..EncodeOptions::default() };
        let table = opened(written(
            std::slice::from_ref(&batch),
            WriterOptions { encode, ..WriterOptions::default() },
        ));
        assert_same(&table, &batch, codec.name());
    }
}

#[test]
fn ranges_projections_and_single_rows_agree_with_slices_of_the_table() {
    let batch = every_type(2000);
    let encode = small_blocks();
    let table = opened(written(std::slice::from_ref(&batch), WriterOptions { encode, ..small_groups(700) }));
    for rows in [0..0, 0..1, 699..701, 5..1999, 1400..2000] {
        for batch_rows in [1 << 16, 100] {
            let options = ReadOptions { rows: Some(rows.clone()), batch_rows, ..ReadOptions::default() };
            let expected = batch.slice(rows.start as usize, (rows.end - rows.start) as usize);
            assert_reads(&expected, table.read(&options).unwrap(), &format!("{rows:?}"));
        }
    }
    let indexes = [3, 1999, 3, 700, 699, 0, 1234, 1235, 1236];
    let taken = table.take(&indexes, None).unwrap();
    for column in 0..batch.num_columns() {
        // Arrow takes no rows of some types; those are compared row by row below.
        let places = UInt64Array::from(indexes.to_vec());
        let field = batch.schema().field(column).clone();
        let one = batch.project(&[column]).unwrap();
        let Ok(expected) = take_record_batch(&one, &places) else { continue };
        let found = taken.project(&[column]).unwrap();
        assert_reads(&expected, RecordBatchIterator::new([Ok(found)], one.schema()), field.name());
    }
    let projected = table.read(&ReadOptions { columns: Some(vec![2, 0]), ..ReadOptions::default() }).unwrap();
    let names: Vec<String> = projected.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, [batch.schema().field(2).name().clone(), batch.schema().field(0).name().clone()]);
}

#[test]
fn a_prepared_dictionary_is_ordered_and_a_growing_one_has_ranks() {
    let words = ["pear", "apple", "fig", ""];
    let strings: ArrayRef =
        Arc::new(StringArray::from_iter((0..5000).map(|row| (row % 7 != 0).then(|| words[row / 7 % 4]))));
    let batch = RecordBatch::try_from_iter([("fruit", strings)]).unwrap();
    let mut survey = DictionarySurvey::new(&batch.schema(), Default::default()).unwrap();
    survey.add(&batch.slice(0, 100)).unwrap();
    survey.add(&batch.slice(100, 4900)).unwrap();
    let dictionaries = survey.finish(&DictionarySurvey::string_columns(&batch.schema()));
    let ordered =
        opened(written(std::slice::from_ref(&batch), WriterOptions { dictionaries, ..small_groups(1000) }));
    let growing = opened(written(std::slice::from_ref(&batch), small_groups(1000)));
    for (table, is_ordered) in [(&ordered, true), (&growing, false)] {
        assert_same(table, &batch, "dictionary");
        table.verify(&|_, _| {}).unwrap();
        let dictionary = table.inspect(0).unwrap()[0].dictionary.unwrap();
        assert_eq!((dictionary.entry_count, dictionary.ordered), (4, is_ordered));
    }
}

#[test]
fn strings_that_repeat_too_little_or_too_much_for_a_dictionary_come_back() {
    // A dictionary that pays in the first row groups and overflows its limits later.
    let text = |row: usize| if row < 3000 { format!("few {}", row % 3) } else { format!("many {row}") };
    let strings: ArrayRef = Arc::new(StringArray::from_iter_values((0..9000).map(text)));
    let batch = RecordBatch::try_from_iter([("text", strings)]).unwrap();
    let limits = arrow_io::columns::dictionary::DictionaryLimits { entries: 500, bytes: 1 << 20 };
    let options = WriterOptions { dictionary_limits: limits, ..small_groups(1000) };
    let table = opened(written(std::slice::from_ref(&batch), options));
    assert_same(&table, &batch, "limits");
    table.verify(&|_, _| {}).unwrap();
}

#[test]
fn statistics_are_exact_and_leave_out_nulls_and_nan() {
    let floats: ArrayRef =
        Arc::new(Float64Array::from(vec![Some(f64::NAN), None, Some(2.5), Some(-0.0), Some(0.0)]));
    let decimals: ArrayRef = Arc::new(
        Decimal128Array::from(vec![Some(5), Some(-7), None, Some(i128::from(i64::MAX) * 4), Some(0)])
            .with_precision_and_scale(38, 2)
            .unwrap(),
    );
    let strings: ArrayRef =
        Arc::new(StringArray::from(vec![Some("b"), None, Some("a"), Some(""), Some("ab")]));
    let batch = RecordBatch::try_from_iter([("f", floats), ("d", decimals), ("s", strings)]).unwrap();
    let table = opened(written(&[batch], small_groups(2)));
    let (min, max) = table.column_range(0).unwrap().unwrap();
    assert_eq!(min.as_primitive::<Float64Type>().value(0).to_bits(), (-0.0_f64).to_bits());
    assert_eq!(max.as_primitive::<Float64Type>().value(0), 2.5);
    assert_eq!(table.inspect(0).unwrap()[0].nan_count, 1);
    let (min, max) = table.column_range(1).unwrap().unwrap();
    assert_eq!(min.as_primitive::<Decimal128Type>().value(0), -7);
    assert_eq!(max.as_primitive::<Decimal128Type>().value(0), i128::from(i64::MAX) * 4);
    let (min, max) = table.column_range(2).unwrap().unwrap();
    assert_eq!((min.as_string::<i32>().value(0), max.as_string::<i32>().value(0)), ("", "b"));
}

#[test]
fn constant_and_all_null_blocks_cost_a_header() {
    let nulls: ArrayRef = Arc::new(Int64Array::new_null(10_000));
    let same: ArrayRef = Arc::new(Int64Array::from(vec![7; 10_000]));
    let batch = RecordBatch::try_from_iter([("nulls", nulls), ("same", same)]).unwrap();
    let table = opened(written(&[batch], WriterOptions::default()));
    let stored: Vec<u64> = (0..2).map(|column| table.inspect(column).unwrap()[0].stored_bytes()).collect();
    // Validity and values of the first, values of the second: 64 bytes each.
    assert_eq!(stored, [128, 64]);
}

#[test]
fn tables_without_columns_or_rows_come_back() {
    let schema = Arc::new(Schema::empty());
    let options = RecordBatchOptions::new().with_row_count(Some(77));
    let batch = RecordBatch::try_new_with_options(schema, vec![], &options).unwrap();
    let table = opened(written(&[batch], small_groups(50)));
    let rows: usize =
        table.read(&ReadOptions::default()).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!((rows, table.row_groups().len()), (77, 2));
}

#[test]
fn what_does_not_fit_the_memory_limit_is_read_in_fewer_rows_or_refused_by_name() {
    let same: ArrayRef = Arc::new(Int64Array::from(vec![7; 1 << 20]));
    let wide: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20); 4]));
    let table =
        opened(written(&[RecordBatch::try_from_iter([("same", same)]).unwrap()], WriterOptions::default()));
    let options = ReadOptions { memory_bytes: 1 << 16, ..ReadOptions::default() };
    let rows: usize = table.read(&options).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 1 << 20);
    let table =
        opened(written(&[RecordBatch::try_from_iter([("wide", wide)]).unwrap()], WriterOptions::default()));
    let error = table.read(&options).unwrap().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("column wide") && error.contains("limit"), "{error}");
}

#[test]
fn a_batch_that_is_not_the_tables_is_refused_by_column() {
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false)]));
    let mut writer = TableWriter::new(Vec::new(), schema, &REGISTRY, WriterOptions::default()).unwrap();
    let error = writer.write(&RecordBatch::try_from_iter([("a", ints)]).unwrap()).unwrap_err();
    assert!(matches!(error, TableError::BatchType { ref column, .. } if column == "a"), "{error}");
}

#[test]
fn nulls_among_the_values_of_a_dictionary_or_runs_are_nulls() {
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let keys = Int32Array::from(vec![0, 1, 0]);
    let ends = Int32Array::from(vec![2, 3]);
    let arrays: [ArrayRef; 2] = [
        Arc::new(DictionaryArray::new(keys, values.clone())),
        Arc::new(RunArray::try_new(&ends, &values).unwrap()),
    ];
    for array in arrays {
        let field = Field::new("c", array.data_type().clone(), false);
        let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap();
        let mut writer =
            TableWriter::new(Vec::new(), batch.schema(), &REGISTRY, WriterOptions::default()).unwrap();
        let error = writer.write(&batch).unwrap_err();
        assert!(matches!(error, TableError::UnexpectedNull { ref column } if column == "c"), "{error}");
    }
}

#[test]
fn any_read_and_seek_will_do() {
    let batch = every_type(300);
    let bytes = written(std::slice::from_ref(&batch), WriterOptions::default());
    let table = Table::from_source(Source::stream(Cursor::new(bytes)).unwrap(), &REGISTRY).unwrap();
    assert_same(&table, &batch, "stream");
}

#[test]
fn one_column_of_very_many_is_read_without_the_metadata_of_the_others() {
    let columns = (0..14_000)
        .map(|index| (format!("c{index}"), Arc::new(Int32Array::from(vec![index; 3])) as ArrayRef));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = written(std::slice::from_ref(&batch), WriterOptions::default());
    // Damage the section of the first column: only who reads that column may notice.
    let first = opened(bytes.clone()).container().section(0).unwrap().blocks[0].offset.get() as usize;
    let last_block = bytes.windows(4).rposition(|window| window == b"CB2B").unwrap();
    assert!(first < last_block);
    let section = (last_block + 64).next_multiple_of(64);
    bytes[section] ^= 1;
    let table = opened(bytes);
    let column = table.read(&ReadOptions { columns: Some(vec![13_999]), ..ReadOptions::default() }).unwrap();
    let read = column.map(|batch| batch.unwrap()).collect::<Vec<_>>();
    let read = concat_batches(&read[0].schema(), &read).unwrap();
    assert_eq!(read.column(0).as_primitive::<Int32Type>().values(), &[13_999; 3]);
    assert!(table.column(0).is_err());
}

#[test]
fn damaged_schemas_are_refused_or_decode_but_never_panic() {
    use arrow_io::columns::schema::{decode_schema, encode_schema};
    let schema = every_type(0).schema();
    let message = encode_schema(&schema).unwrap();
    assert_eq!(decode_schema(&message).unwrap(), *schema);
    for position in 0..message.len() {
        for bit in 0..8 {
            let mut damaged = message.clone();
            damaged[position] ^= 1 << bit;
            let _ = decode_schema(&damaged);
        }
    }
}

#[test]
fn arrays_without_bytes_keep_their_length() {
    let item = |data_type: &DataType| Arc::new(Field::new_list_field(data_type.clone(), true));
    let none = DataType::FixedSizeList(item(&DataType::Int32), 0);
    let lists = ArrayData::builder(none.clone()).len(3);
    let lists = lists.add_child_data(new_empty_array(&DataType::Int32).to_data()).build().unwrap();
    let of_struct = DataType::Struct(vec![Field::new("x", none.clone(), true)].into());
    let structs = ArrayData::builder(of_struct).len(3).add_child_data(lists.clone()).build().unwrap();
    let of_lists = DataType::FixedSizeList(item(&none), 1);
    let nested = ArrayData::builder(of_lists).len(3).add_child_data(lists.clone()).build().unwrap();
    for child in [lists, structs, nested].map(make_array) {
        let fields = UnionFields::from_fields([Field::new("c", child.data_type().clone(), true)]);
        let offsets = Some(vec![2_i32, 1, 0, 0].into());
        let union = UnionArray::try_new(fields, vec![0_i8; 4].into(), offsets, vec![child.clone()]).unwrap();
        let keys = Int8Array::from(vec![Some(1), None, Some(0), Some(0)]);
        let columns: [(&str, ArrayRef, bool); 2] = [
            ("union", Arc::new(union), true),
            ("dictionary", Arc::new(DictionaryArray::new(keys, child)), true),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let table = opened(written(&[batch], WriterOptions::default()));
        table.verify(&|_, _| {}).unwrap();
        let counts = |column| table.inspect(column).unwrap()[0].slot_count;
        assert_eq!([table.row_count(), counts(0), counts(1)], [4; 3]);
    }
    // A union in a union, of children that no bytes tell the length of.
    let fields = UnionFields::from_fields([Field::new("c", none.clone(), true)]);
    let data = ArrayData::builder(none).len(3).add_child_data(new_empty_array(&DataType::Int32).to_data());
    let lists = make_array(data.build().unwrap());
    let inner = UnionArray::try_new(fields, vec![0_i8; 3].into(), Some(vec![0, 1, 2].into()), vec![lists]);
    let inner: ArrayRef = Arc::new(inner.unwrap());
    let fields = UnionFields::from_fields([Field::new("u", inner.data_type().clone(), true)]);
    let outer = UnionArray::try_new(fields, vec![0_i8; 3].into(), Some(vec![2, 1, 0].into()), vec![inner]);
    let outer: ArrayRef = Arc::new(outer.unwrap());
    let table = opened(written(&[RecordBatch::try_from_iter([("o", outer)]).unwrap()], small_groups(9)));
    table.verify(&|_, _| {}).unwrap();
    assert_eq!(table.inspect(0).unwrap()[2].slot_count, 3);
}

#[test]
fn structs_without_fields_keep_their_number_in_unions_and_dictionaries() {
    let nothing: ArrayRef = Arc::new(StructArray::new_empty_fields(3, Some(vec![true, false, true].into())));
    let fields = UnionFields::from_fields([Field::new("nothing", nothing.data_type().clone(), true)]);
    let union = UnionArray::try_new(
        fields,
        vec![0_i8; 3].into(),
        Some(vec![2_i32, 1, 0].into()),
        vec![nothing.clone()],
    )
    .unwrap();
    let keys = Int8Array::from(vec![Some(1), None, Some(0)]);
    let columns: [(&str, ArrayRef, bool); 2] = [
        ("union", Arc::new(union), true),
        ("dictionary", Arc::new(DictionaryArray::new(keys, nothing)), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let table = opened(written(&[batch], WriterOptions::default()));
    table.verify(&|_, _| {}).unwrap();
    let nulls: Vec<u64> = table.inspect(0).unwrap().iter().map(|node| node.null_count).collect();
    assert_eq!((table.row_count(), nulls), (3, vec![0, 1]));
    assert_eq!(table.inspect(1).unwrap()[0].null_count, 2);
}
