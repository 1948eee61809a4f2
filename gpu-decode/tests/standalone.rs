//! The example in `examples/standalone`, a reader of files in CUDA C++ alone: run on the CPU through the shim and a stand-in for the CUDA runtime; compiled by nvcc where there is one.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap
)]

mod shim;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use arrow::array::*;
use arrow_io::table::{TableWriter, WriterOptions};
use codec_core::conformance::Random;
use codec_core::{Choice, EncodeOptions};
use codecs::REGISTRY;
use shim::ShimProgram;

const ROWS: usize = 20_000;

fn example() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/standalone/sum_column.cu")
}

/// What each codec is for, in all widths, and the sum as the example prints it. Floats are quarters: their sum is exact in any order.
fn columns() -> Vec<(&'static str, ArrayRef, String)> {
    let mut random = Random(11);
    let mut draws = || (0..ROWS).map(|_| random.draw()).collect::<Vec<u64>>();
    let mut columns: Vec<(&str, ArrayRef, String)> = Vec::new();
    let sum = |values: &mut dyn Iterator<Item = i128>| values.sum::<i128>().to_string();

    let bytes: Vec<u8> = draws().iter().map(|draw| *draw as u8).collect();
    columns.push((
        "u8",
        Arc::new(UInt8Array::from(bytes.clone())),
        sum(&mut bytes.iter().map(|&v| v.into())),
    ));
    let small: Vec<i16> = draws().iter().map(|draw| (draw % 100) as i16 - 50).collect();
    columns.push((
        "i16",
        Arc::new(Int16Array::from(small.clone())),
        sum(&mut small.iter().map(|&v| v.into())),
    ));
    let runs: Vec<i32> = (0..ROWS as i32).map(|row| row / 70 * 7919 % 1000 - 500).collect();
    columns.push(("i32", Arc::new(Int32Array::from(runs.clone())), sum(&mut runs.iter().map(|&v| v.into()))));
    let ascending: Vec<i64> = (0..ROWS as i64).map(|row| row * 3 - 40_000).collect();
    columns.push((
        "i64",
        Arc::new(Int64Array::from(ascending.clone())),
        sum(&mut ascending.iter().map(|&v| v.into())),
    ));
    let few: Vec<u64> = draws().iter().map(|draw| [3, 1 << 40, 7_777_777][*draw as usize % 3]).collect();
    columns.push(("u64", Arc::new(UInt64Array::from(few.clone())), sum(&mut few.iter().map(|&v| v.into()))));
    columns.push(("constant", Arc::new(UInt32Array::from(vec![9; ROWS])), (9 * ROWS).to_string()));
    let odd = |row: usize| if row % 97 == 5 { 1.0e12 } else { 0.0 };
    let doubles: Vec<f64> =
        draws().iter().enumerate().map(|(row, draw)| (draw % 4000) as f64 / 4.0 + odd(row)).collect();
    columns.push((
        "f64",
        Arc::new(Float64Array::from(doubles.clone())),
        doubles.iter().sum::<f64>().to_string(),
    ));
    let singles: Vec<f32> = draws().iter().map(|draw| (draw % 4000) as f32 / 4.0).collect();
    let single_sum: f64 = singles.iter().map(|&value| f64::from(value)).sum();
    columns.push(("f32", Arc::new(Float32Array::from(singles)), single_sum.to_string()));
    columns
}

fn file(columns: &[(&'static str, ArrayRef)], choice: Choice) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.iter().map(|(name, array)| (*name, array.clone(), array.null_count() > 0)),
    );
    let batch = batch.unwrap();
    // Several row groups of several blocks.
    let encode = EncodeOptions { block_bytes: 1 << 14, choice, ..EncodeOptions::default() };
    let options = WriterOptions { encode, row_group_rows: 9000, ..WriterOptions::default() };
    let mut writer = TableWriter::new(Vec::new(), batch.schema(), &REGISTRY, options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap().0
}

fn compiled() -> Option<ShimProgram> {
    ShimProgram::compile(&format!("#include \"{}\"\n", example().display()))
}

/// Its exit code, standard output and standard error for the column with this index.
fn run(program: &ShimProgram, bytes: &[u8], index: usize) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.cb2t");
    std::fs::write(&path, bytes).unwrap();
    let output = program.run_with(&[path.to_str().unwrap(), &index.to_string()], &[]);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_standalone_reader_sums_what_was_written_and_refuses_the_rest() {
    let Some(program) = compiled() else { return };
    let columns = columns();
    let arrays: Vec<(&str, ArrayRef)> =
        columns.iter().map(|(name, array, _)| (*name, array.clone())).collect();
    let preferred = REGISTRY.iter().filter(|codec| codec.device_source().is_some()).map(Choice::Prefer);
    for choice in std::iter::once(Choice::Auto).chain(preferred) {
        let bytes = file(&arrays, choice);
        for (index, (name, _, sum)) in columns.iter().enumerate() {
            let (code, out, error) = run(&program, &bytes, index);
            assert_eq!((code, out), (Some(0), format!("{ROWS} values, sum {sum}\n")), "{name}: {error}");
        }
    }

    let nulls: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let strings: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let bytes = file(&[("nulls", nulls), ("strings", strings)], Choice::Auto);
    for (index, wanted) in [(0, "nulls"), (1, "no column of numbers"), (2, "column 2 of 2")] {
        let (code, _, error) = run(&program, &bytes, index);
        assert!(code == Some(1) && error.contains(wanted), "{code:?} {error}");
    }

    // Any byte changed, or any end cut off: an error, never a read beyond (the sanitizers would end it otherwise) and never another sum.
    let whole = file(&arrays[3..4], Choice::Auto);
    let sum = format!("{ROWS} values, sum {}\n", columns[3].2);
    let mut random = Random(5);
    for round in 0..60 {
        let mut damaged = whole.clone();
        let at = random.draw() as usize % whole.len();
        if round % 4 == 0 {
            damaged.truncate(at);
        } else {
            damaged[at] ^= 1 << (random.draw() % 8);
        }
        let (code, out, error) = run(&program, &damaged, 0);
        let is_refused = code == Some(1) && error.starts_with("sum_column: ");
        // What a sum does not depend on: padding, reserved bytes, the schema.
        assert!(is_refused || (code == Some(0) && out == sum), "byte {at}: {code:?} {out} {error}");
    }
}

#[test]
fn nvcc_compiles_it() {
    let folder = tempfile::tempdir().unwrap();
    let cubin = folder.path().join("sum_column.cubin");
    let compiled = Command::new("nvcc")
        .args(["-std=c++17", "-O3", "-arch=sm_90", "-cubin", "-o"])
        .arg(&cubin)
        .arg(example())
        .output();
    match compiled {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => println!("skipped: nvcc does not start: {error}"),
    }
}
