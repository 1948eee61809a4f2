//! The golden files of the format: made by the frozen generator below, read by this program and by `format-spec/reader.py`, which must agree on every value.
//!
//! `CB2T_GOLDEN=write cargo test -p arrow-io --test golden` writes them anew. Only files of version 0 may be written anew, and CHANGELOG.md then says why.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod every_type;
mod plain_json;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use arrow_io::compare::{CompareOptions, compare};
use arrow_io::table::{DictionarySurvey, ReadOptions, Table, TableWriter, WriterOptions};
use codec_core::conformance::named_distributions;
use codec_core::{Choice, EncodeOptions, Value};
use codecs::REGISTRY;
use container::Source;

struct Golden {
    name: String,
    batch: RecordBatch,
    options: WriterOptions,
}

fn options(row_group_rows: u64, choice: Choice, tile_size: u32) -> WriterOptions {
    WriterOptions {
        row_group_rows,
        encode: EncodeOptions { block_bytes: 8192, tile_size, bytes_tile_size: 4096, choice },
        created_by: "cb2t golden".into(),
        ..WriterOptions::default()
    }
}

/// Every golden file of version 0.
fn golden_files() -> Vec<Golden> {
    let auto = |rows| options(rows, Choice::Auto, 1024);
    let golden = |name: &str, batch, options| Golden { name: name.into(), batch, options };
    let mut all = vec![
        golden("every_type", every_type::every_type(60), auto(1 << 20)),
        golden("every_type_row_groups", every_type::every_type(60), auto(23)),
        golden("edge_types", every_type::edge_types(40), auto(1 << 20)),
        golden("no_rows", every_type::every_type(0), auto(1 << 20)),
        golden("no_columns", no_columns(), auto(20)),
        golden("constants", constants(), auto(1 << 20)),
        golden("dictionary_ranks", fruit(), auto(500)),
        golden("dictionary_ordered", fruit(), WriterOptions { dictionaries: survey(&fruit()), ..auto(500) }),
    ];
    for codec in REGISTRY.iter() {
        for tile_size in [512, 1024] {
            let name = format!("codec_{}_{tile_size}", codec.name());
            all.push(golden(&name, integers(), options(1 << 20, Choice::Prefer(codec), tile_size)));
        }
    }
    all.push(golden("floats", floats(), auto(1 << 20)));
    all
}

fn no_columns() -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(50));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap()
}

fn constants() -> RecordBatch {
    let nan = Float64Array::from(vec![f64::from_bits(0x7FF8_0000_0000_1234); 3000]);
    let columns: [(&str, ArrayRef); 4] = [
        ("seven", Arc::new(Int32Array::from(vec![7; 3000]))),
        ("null", Arc::new(Int64Array::new_null(3000))),
        ("nan", Arc::new(nan)),
        ("text", Arc::new(StringArray::from(vec!["same"; 3000]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

fn fruit() -> RecordBatch {
    let words = ["pear", "apple", "Äpfel", "fig", ""];
    let value = |row: usize| (!row.is_multiple_of(7)).then(|| words[row / 3 % 5]);
    let strings: ArrayRef = Arc::new(StringArray::from_iter((0..1200).map(value)));
    RecordBatch::try_from_iter_with_nullable([("fruit", strings, true)]).unwrap()
}

fn survey(batch: &RecordBatch) -> arrow_io::table::Dictionaries {
    let mut survey = DictionarySurvey::new(&batch.schema(), Default::default()).unwrap();
    survey.add(batch).unwrap();
    survey.finish(&DictionarySurvey::string_columns(&batch.schema()))
}

/// A column of each width for some distributions, over several tiles.
fn integers() -> RecordBatch {
    fn chosen<V: Value>() -> impl Iterator<Item = (String, Vec<V>)> {
        let names = [
            "ascending",
            "signed extremes in turn",
            "runs of 4",
            "5 random bits over a base",
            "one outlier",
            "sorted with gaps",
        ];
        named_distributions::<V>(1300).into_iter().filter(move |(name, _)| names.contains(&name.as_str()))
    }
    macro_rules! columns {
        ($native:ty, $array:ty) => {
            chosen::<$native>().map(|(name, values)| {
                let array: ArrayRef = Arc::new(<$array>::from(values));
                (format!("{} {name}", stringify!($native)), array)
            })
        };
    }
    let columns = columns!(u8, UInt8Array).chain(columns!(u16, UInt16Array));
    let columns = columns.chain(columns!(u32, UInt32Array)).chain(columns!(u64, UInt64Array));
    RecordBatch::try_from_iter(columns).unwrap()
}

/// What floats are made of: decimals of several digits, with exceptions and without, zeros of hundreds, and floats of all their digits.
fn floats() -> RecordBatch {
    let decimal = |row: i32, digits: i32| format!("{}e{}", row * 7919 % 10_007 - 3000, -digits);
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for digits in [-3, 0, 2, 5, 9] {
        let texts = (0..1300).map(|row| decimal(row, digits));
        let wide: Float64Array = texts.clone().map(|text| text.parse::<f64>().unwrap()).collect();
        let narrow: Float32Array = texts.map(|text| text.parse::<f32>().unwrap()).collect();
        columns.push((format!("f64 of {digits} digits"), Arc::new(wide)));
        columns.push((format!("f32 of {digits} digits"), Arc::new(narrow)));
    }
    let odd = [f64::NAN, f64::NEG_INFINITY, -0.0, std::f64::consts::E, f64::MAX, 5e-324];
    let mixed = |row: usize| if row % 90 == 11 { odd[row / 90 % 6] } else { row as f64 / 4.0 };
    columns
        .push(("f64 with exceptions".into(), Arc::new(Float64Array::from_iter_values((0..1300).map(mixed)))));
    let mixed = (0..1300).map(|row| mixed(row) as f32);
    columns.push(("f32 with exceptions".into(), Arc::new(Float32Array::from_iter_values(mixed))));
    // Roots are correctly rounded, hence the same on every machine.
    let root = |row: usize| f64::sqrt((row * 7919 % 10_007) as f64) - if row % 100 == 3 { 1e9 } else { 0.0 };
    columns.push(("f64 roots".into(), Arc::new(Float64Array::from_iter_values((0..1300).map(root)))));
    let roots = (0..1300).map(|row| root(row) as f32);
    columns.push(("f32 roots".into(), Arc::new(Float32Array::from_iter_values(roots))));
    RecordBatch::try_from_iter(columns).unwrap()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../format-spec/golden/v0")
}

fn written(golden: &Golden) -> Vec<u8> {
    let options = golden.options.clone();
    let mut writer = TableWriter::new(Vec::new(), golden.batch.schema(), &REGISTRY, options).unwrap();
    writer.write(&golden.batch).unwrap();
    writer.finish().unwrap().0
}

#[test]
fn golden_files_are_what_the_writer_writes_and_hold_what_was_written() {
    let write = std::env::var("CB2T_GOLDEN").is_ok_and(|value| value == "write");
    for golden in golden_files() {
        let path = folder().join(format!("{}.cb2t", golden.name));
        let bytes = written(&golden);
        if write {
            fs::create_dir_all(folder()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let stored = fs::read(&path).unwrap();
        assert!(stored == bytes, "{}: the writer writes other bytes than the golden file has", golden.name);
        let table = Table::from_source(Source::memory(stored), &REGISTRY).unwrap();
        assert_eq!(*table.schema(), golden.batch.schema());
        let mut left = RecordBatchIterator::new([Ok(golden.batch.clone())], golden.batch.schema());
        let mut right = table.read(&ReadOptions::default()).unwrap();
        let comparison = compare(&mut left, &mut right, &CompareOptions::default()).unwrap();
        assert!(comparison.is_equal(), "{}: {comparison}", golden.name);
        table.verify(&|_, _| {}).unwrap();
    }
    let known: Vec<String> =
        golden_files().into_iter().map(|golden| format!("{}.cb2t", golden.name)).collect();
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name), "{name} in the golden folder has no generator");
    }
}

/// Reads a golden file with reader.py and compares what it prints with a file of what it should: integers of any size, exactly.
const COMPARE: &str = r#"
import json, subprocess, sys
reader, golden, expected = sys.argv[1:]
printed = subprocess.run([sys.executable, reader, golden, "--values"], capture_output=True, text=True)
if printed.returncode:
    sys.exit(printed.stderr)
found = [json.loads(line) for line in printed.stdout.splitlines()]
wanted = [json.loads(line) for line in open(expected, encoding="utf-8")]
if found[0]["rows"] != wanted[0]["rows"] or len(found) != len(wanted):
    sys.exit(f"{found[0]['rows']} rows of {len(found) - 1} columns, not {wanted[0]['rows']} of {len(wanted) - 1}")
for left, right in zip(found[1:], wanted[1:]):
    if left["column"] != right["column"]:
        sys.exit(f"column {left['column']}, not {right['column']}")
    for row, (one, other) in enumerate(zip(left["values"], right["values"], strict=True)):
        if one != other or type(one) != type(other):
            sys.exit(f"column {left['column']}, row {row}: {one!r}, not {other!r}")
"#;

#[test]
fn the_python_reader_agrees_on_every_value() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let reader = folder().join("../../reader.py");
    for golden in golden_files() {
        let mut lines = format!("{{\"rows\": {}}}\n", golden.batch.num_rows());
        for (field, array) in golden.batch.schema().fields().iter().zip(golden.batch.columns()) {
            let values: Vec<String> = (0..array.len()).map(|row| plain_json::value(array, row)).collect();
            lines += &format!("{{\"column\": \"{}\", \"values\": [{}]}}\n", field.name(), values.join(", "));
        }
        let expected = temporary.path().join("expected.jsonl");
        fs::write(&expected, lines).unwrap();
        let file = folder().join(format!("{}.cb2t", golden.name));
        let output =
            Command::new("python3").args(["-c", COMPARE]).args([&reader, &file, &expected]).output().unwrap();
        assert!(output.status.success(), "{}: {}", golden.name, String::from_utf8_lossy(&output.stderr));
    }
}
