//! Files that change while they are read: an error, or the values of the file that was opened, never others and never a crash.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_possible_truncation)]

mod samples;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use cb2t::{REGISTRY, WriterOptions};
use samples::{is_same, read, two_columns, write};

struct OnDisk {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    batch: RecordBatch,
}

impl OnDisk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let batch = two_columns(40_000);
        let bytes =
            write(&batch, &REGISTRY, WriterOptions { row_group_rows: 4000, ..WriterOptions::default() });
        fs::write(folder.path().join("t.cb2t"), &bytes).unwrap();
        Self { folder, bytes, batch }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("t.cb2t")
    }

    /// Opens, reads and proves the file over and over while `change` works on it.
    fn read_while(&self, change: impl Fn(&Path, &AtomicBool) + Send + Sync) -> (usize, usize) {
        let stop = AtomicBool::new(false);
        let (mut errors, mut values) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| change(&self.path(), &stop));
            let end = Instant::now() + Duration::from_millis(1500);
            while Instant::now() < end {
                match cb2t::open(self.path())
                    .map_err(|error| error.to_string())
                    .and_then(|table| read(&table))
                {
                    Ok(batches) => {
                        assert!(is_same(&batches, &self.batch), "other values were read");
                        values += 1;
                    }
                    Err(_) => errors += 1,
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        (errors, values)
    }
}

#[test]
fn a_file_that_is_truncated_and_restored_while_it_is_read() {
    let file = OnDisk::new();
    let (errors, values) = file.read_while(|path, stop| {
        let mut round = 0;
        while !stop.load(Ordering::Relaxed) {
            round += 1;
            let target = OpenOptions::new().write(true).open(path).unwrap();
            target.set_len(file.bytes.len() as u64 * (round % 4) / 4).unwrap();
            target.write_all_at(&file.bytes, 0).unwrap();
            std::thread::sleep(Duration::from_millis(round % 3));
        }
    });
    assert!(errors + values > 0);
}

#[test]
fn a_file_whose_bytes_are_overwritten_while_it_is_read() {
    let file = OnDisk::new();
    let (errors, values) = file.read_while(|path, stop| {
        let target = OpenOptions::new().write(true).open(path).unwrap();
        let mut position = 0;
        while !stop.load(Ordering::Relaxed) {
            position = (position + 7919) % file.bytes.len();
            let end = (position + 100).min(file.bytes.len());
            let changed: Vec<u8> = file.bytes[position..end].iter().map(|byte| byte ^ 0x5A).collect();
            target.write_all_at(&changed, position as u64).unwrap();
            target.write_all_at(&file.bytes[position..end], position as u64).unwrap();
        }
    });
    assert!(errors + values > 0);
}

#[test]
fn a_file_that_is_replaced_keeps_its_values_for_who_has_it_open() {
    let file = OnDisk::new();
    let table = cb2t::open(file.path()).unwrap();
    let other = two_columns(7);
    let new = file.folder.path().join("new");
    fs::write(&new, write(&other, &REGISTRY, WriterOptions::default())).unwrap();
    fs::rename(&new, file.path()).unwrap();
    assert!(is_same(&read(&table).unwrap(), &file.batch));
    assert!(is_same(&read(&cb2t::open(file.path()).unwrap()).unwrap(), &other));
    fs::remove_file(file.path()).unwrap();
    assert!(is_same(&read(&table).unwrap(), &file.batch));
}

#[test]
fn a_file_that_was_cut_after_it_was_opened_is_an_error() {
    let file = OnDisk::new();
    let table = cb2t::open(file.path()).unwrap();
    File::create(file.path()).unwrap();
    let error = read(&table).unwrap_err();
    assert!(error.contains("cannot read") && error.contains("offset"), "{error}");
    assert!(table.verify(&|_, _| {}).is_err());
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_path(), folder.path(), Path::new("/dev/zero")] {
        let error = cb2t::open(path).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
}
