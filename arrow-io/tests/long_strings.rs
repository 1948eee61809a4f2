//! Strings that are too long for statistics, among others that are not.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow_io::table::{Table, TableWriter, WriterOptions};
use codec_core::{Choice, EncodeOptions};
use codecs::REGISTRY;
use container::Source;

/// The extremes of a row group are short, but those of its first part, which is proven by itself, are not.
#[test]
fn a_row_group_is_sound_whose_first_part_has_a_long_maximum() {
    const ROWS: usize = 40_000;
    let long = "m".repeat(2_000);
    let value = |row: usize| match row {
        0 => "a",
        _ if row == ROWS - 1 => "z",
        _ => long.as_str(),
    };
    let strings: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(value)));
    let batch = RecordBatch::try_from_iter([("text", strings)]).unwrap();
    let options = WriterOptions {
        encode: EncodeOptions {
            choice: Choice::Prefer(REGISTRY.by_name("plain").unwrap()),
            ..EncodeOptions::default()
        },
        dictionary_limits: arrow_io::columns::dictionary::DictionaryLimits { entries: 0, bytes: 0 },
        ..WriterOptions::default()
    };
    let mut writer = TableWriter::new(Vec::new(), batch.schema(), &REGISTRY, options).unwrap();
    writer.write(&batch).unwrap();
    let (bytes, report) = writer.finish().unwrap();
    assert_eq!(report.row_group_count, 1);
    let table = Table::from_source(Source::memory(bytes), &REGISTRY).unwrap();
    let statistics = table.statistics(0).unwrap();
    let text = |array: &Option<ArrayRef>| {
        let strings = array.as_ref().unwrap().as_any().downcast_ref::<StringArray>().unwrap().clone();
        strings.value(0).to_owned()
    };
    assert_eq!((text(&statistics[0].min), text(&statistics[0].max)), ("a".to_owned(), "z".to_owned()));
    table.verify(&|_, _| {}).unwrap();
}
