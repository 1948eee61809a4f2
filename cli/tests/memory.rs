//! Memory stays within what was asked for, whatever the size of the input.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_possible_wrap)]

mod program;

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::ipc::writer::StreamWriter;
use program::Folder;

const MEGABYTE: u64 = 1 << 20;

/// The most memory that a child had, in bytes: its high-water mark, looked at until it ends.
fn peak_bytes(child: &mut Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(kilobytes) = mark.and_then(|mark| mark.trim().strip_suffix(" kB")) {
            peak = kilobytes.parse::<u64>().unwrap() * 1024;
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn peak(mut command: Command) -> u64 {
    peak_bytes(&mut command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// What the program takes to do next to nothing. It is over so soon that one run may end between two looks, before it has all that it takes.
fn base(folder: &Folder) -> u64 {
    folder.write("one.csv", "a\n1\n");
    (0..10).map(|_| peak(folder.command(["schema", "one.csv"]))).max().unwrap()
}

/// Writes `count` batches as an Arrow stream.
fn feed(
    sink: impl Write + Send + 'static,
    count: usize,
    batch: impl Fn(usize) -> RecordBatch + Send + 'static,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut writer = StreamWriter::try_new(sink, &batch(0).schema()).unwrap();
        for index in 0..count {
            writer.write(&batch(index)).unwrap();
        }
        writer.finish().unwrap();
    })
}

/// Packs a stream within `memory` and returns the peak.
fn peak_of_stream(
    folder: &Folder,
    memory: u64,
    count: usize,
    batch: impl Fn(usize) -> RecordBatch + Send + 'static,
) -> u64 {
    let arguments =
        format!("pack - --format arrow-stream -o out.cb2t --codec plain --force --memory {memory}");
    let mut command = folder.command(arguments.split(' '));
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let feeding = feed(child.stdin.take().unwrap(), count, batch);
    let peak = peak_bytes(&mut child);
    feeding.join().unwrap();
    peak
}

/// The budget, a row group more, and the program.
#[track_caller]
fn assert_within(what: &str, folder: &Folder, memory: u64, peak: u64) {
    let base = base(folder);
    let row_group = memory / 4;
    eprintln!(
        "{what}: {} MiB of {} MiB, and {} MiB for the program",
        peak / MEGABYTE,
        memory / MEGABYTE,
        base / MEGABYTE
    );
    assert!(peak <= memory + row_group + base, "{what}: {peak} bytes, budget {memory}, program {base}");
}

fn numbers(index: usize) -> RecordBatch {
    let column = |column: i64| -> ArrayRef {
        let start = index as i64 * 65_536;
        Arc::new(Int64Array::from_iter_values((start..start + 65_536).map(|row| row * (7919 + column))))
    };
    RecordBatch::try_from_iter((0..8).map(|index| (format!("c{index}"), column(index)))).unwrap()
}

/// 200 columns of booleans with nulls: a quarter of a byte of Arrow's memory a value, two bytes while they are collected.
fn booleans(index: usize) -> RecordBatch {
    let column: ArrayRef = Arc::new(BooleanArray::from_iter(
        (0..65_536).map(|row| [Some(true), None, Some(false)][(row + index) % 3]),
    ));
    RecordBatch::try_from_iter((0..200).map(|index| (format!("c{index}"), column.clone()))).unwrap()
}

/// 128 texts of 20 kB.
fn texts(index: usize) -> RecordBatch {
    let text = |row: usize| format!("{index} {row} ").repeat(20_000 / 6);
    let column: ArrayRef = Arc::new(StringArray::from_iter_values((0..128).map(text)));
    RecordBatch::try_from_iter([("text", column)]).unwrap()
}

#[test]
fn ten_times_the_budget_is_packed_within_it() {
    let folder = Folder::new();
    let memory = 32 * MEGABYTE;
    // 80 batches of 4 MiB.
    let peak = peak_of_stream(&folder, memory, 80, numbers);
    assert_eq!(folder.run("inspect out.cb2t --json").json()["rows"], 80 * 65_536);
    assert_within("numbers", &folder, memory, peak);
}

#[test]
fn booleans_count_as_what_they_take() {
    let folder = Folder::new();
    let memory = 32 * MEGABYTE;
    let peak = peak_of_stream(&folder, memory, 5, booleans);
    assert_within("booleans", &folder, memory, peak);
}

#[test]
fn long_rows_come_in_short_batches() {
    let folder = Folder::new();
    let memory = 64 * MEGABYTE;
    feed(std::fs::File::create(folder.path("in.arrows")).unwrap(), 80, texts).join().unwrap();
    folder.run("pack in.arrows -o in.cb2t --codec plain").done();
    // 200 MB of text in one row group of Parquet; fewer in formats that a debug build reads slowly.
    for (name, rows) in [("in.parquet", ".."), ("in.csv", "..5000"), ("in.jsonl", "..2500")] {
        let unpack = format!("unpack in.cb2t -o {name} --rows {rows} --memory {memory}");
        let unpacking = peak_of(&folder, &unpack);
        // What is written is for the writer to hold: Parquet's row group.
        if name != "in.parquet" {
            assert_within(&format!("unpacking {name}"), &folder, memory, unpacking);
        }
        let pack = format!("pack {name} -o out.cb2t --codec plain --force --memory {memory}");
        assert_within(&format!("packing {name}"), &folder, memory, peak_of(&folder, &pack));
    }
}

fn peak_of(folder: &Folder, arguments: &str) -> u64 {
    peak(folder.command(arguments.split(' ')))
}

#[test]
fn more_rows_take_no_more_memory() {
    let folder = Folder::new();
    folder.run("gen ssb --scale 0.05 --tables lineorder --format parquet -o ssb").done();
    let pack = |rows: &str| {
        peak_of(
            &folder,
            &format!("pack ssb/lineorder.parquet -o out.cb2t --codec flbp --force --memory 8M --rows {rows}"),
        )
    };
    let (few, all) = (pack("..100000"), pack(".."));
    eprintln!("100,000 rows: {} MiB, 300,000 rows: {} MiB", few / MEGABYTE, all / MEGABYTE);
    assert!(all < few + few / 4, "{few} bytes for a third of the rows, {all} for all");
}
