//! An output appears whole or not at all, whatever ends the program or the disk.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod program;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use program::{Ended, Folder, PROGRAM, orders};

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// A folder with an input that takes some hundreds of milliseconds to pack in a debug build, and how long it took.
fn slow() -> (Folder, Duration) {
    let folder = Folder::new();
    folder.write("in.csv", orders(15_000));
    let started = Instant::now();
    folder.run("pack in.csv -o whole.cb2t --row-group-rows 1500").done();
    (folder, started.elapsed())
}

/// Packs over `out.cb2t` and sends a signal after `delay`.
fn ended_by(folder: &Folder, signal: i32, delay: Duration) -> ExitStatus {
    let mut command = folder.command("pack in.csv -o out.cb2t --row-group-rows 1500 --force".split(' '));
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(delay);
    let kill = format!("kill -{signal} {}", child.id());
    // Who has ended already cannot be reached.
    Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status().unwrap();
    child.wait().unwrap()
}

/// What a signal left under the output's name: the old file, or the new one if the program came to its end.
fn assert_old_or_new(folder: &Folder, old: Option<&[u8]>, status: ExitStatus) {
    let found = std::fs::read(folder.path("out.cb2t")).ok();
    let whole = folder.read("whole.cb2t");
    let is_new = found.as_deref() == Some(&whole);
    assert!(
        is_new || (found.as_deref() == old && !status.success()),
        "{status}: {:?} bytes",
        found.map(|f| f.len())
    );
}

/// Delays from nothing to a little more than a whole run.
fn delays(whole: Duration, count: u32) -> impl Iterator<Item = Duration> {
    (0..count).map(move |index| whole.mul_f64(1.1) * index / count)
}

#[test]
fn a_killed_pack_leaves_the_old_file_or_none() {
    let (folder, whole) = slow();
    let mut cut_short = 0;
    for (index, delay) in delays(whole, 30).enumerate() {
        let old: Option<&[u8]> = if index % 2 == 0 { None } else { Some(b"old") };
        match old {
            Some(old) => folder.write("out.cb2t", old),
            None => drop(std::fs::remove_file(folder.path("out.cb2t"))),
        }
        let status = ended_by(&folder, SIGKILL, delay);
        cut_short += u32::from(status.signal() == Some(SIGKILL));
        assert_old_or_new(&folder, old, status);
    }
    assert!(cut_short >= 15, "only {cut_short} of 30 runs were killed before their end");
}

#[test]
fn an_interrupted_pack_leaves_nothing_at_all() {
    let (folder, whole) = slow();
    let mut cut_short = 0;
    for (index, delay) in delays(whole, 12).enumerate() {
        let signal = if index % 2 == 0 { SIGTERM } else { SIGINT };
        folder.write("out.cb2t", "old");
        let status = ended_by(&folder, signal, delay);
        cut_short += u32::from(status.signal() == Some(signal));
        assert_old_or_new(&folder, Some(b"old"), status);
        assert_eq!(folder.names(), ["in.csv", "out.cb2t", "whole.cb2t"], "{status} after {delay:?}");
    }
    assert!(cut_short >= 6, "only {cut_short} of 12 runs were interrupted before their end");
}

/// Runs the program where no file may grow beyond `blocks` of 512 or 1024 bytes: a write beyond fails, as on a full disk.
fn run_within(folder: &Folder, blocks: u32, line: &str) -> Ended {
    let script = format!("ulimit -f {blocks}; trap '' XFSZ; exec {PROGRAM} {line}");
    let mut command = Command::new("sh");
    let output = command.args(["-c", &script]).current_dir(folder.path("")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Ended { command: line.to_owned(), code: output.status.code(), stdout: output.stdout, stderr }
}

/// The same commands wherever the disk fills: each must name the file, end with 3 and take back what it wrote.
fn assert_full(folder: &Folder, target: &str, run: impl Fn(&str) -> Ended) {
    for (line, name) in [
        (format!("pack in.csv -o {target}out.cb2t"), "out.cb2t"),
        (format!("pack in.csv -o {target}out.cb2t --codec plain --verify"), "out.cb2t"),
        (format!("unpack whole.cb2t -o {target}out.csv"), "out.csv"),
        (format!("unpack whole.cb2t -o {target}out.jsonl"), "out.jsonl"),
        (format!("unpack whole.cb2t -o {target}out.arrow"), "out.arrow"),
        (format!("unpack whole.cb2t -o {target}out.arrows"), "out.arrows"),
        (format!("unpack whole.cb2t -o {target}out.parquet"), "out.parquet"),
        (format!("gen ssb --scale 0.01 --tables lineorder -o {target}ssb"), "ssb"),
    ] {
        run(&line).fails(3, &[name]);
        let left = if target.is_empty() { folder.names() } else { Vec::new() };
        assert!(!left.iter().any(|name| name.contains("out.")), "{line}: {left:?}");
    }
}

#[test]
fn a_file_that_cannot_grow_is_taken_back() {
    let (folder, _) = slow();
    let refused = run_within(&folder, 10, "pack in.csv -o out.cb2t");
    if refused.code.is_none() {
        eprintln!("skipped: the shell cannot ignore SIGXFSZ");
        return;
    }
    assert_full(&folder, "", |line| run_within(&folder, 10, line));
    assert_eq!(std::fs::read_dir(folder.path("ssb")).unwrap().count(), 0);
    // The old file survives a new one that does not fit.
    folder.write("out.cb2t", "old");
    run_within(&folder, 10, "pack in.csv -o out.cb2t --force").fails(3, &["out.cb2t", "File too large"]);
    assert_eq!(folder.text("out.cb2t"), "old");
}

#[test]
fn a_full_disk_is_named_and_left_empty() {
    let (folder, _) = slow();
    std::fs::create_dir(folder.path("disk")).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(folder.path("disk"))
        .stderr(Stdio::null())
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("skipped: a small file system cannot be mounted here");
        return;
    }
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        assert_full(&folder, "disk/", |line| folder.run(line));
        let left: Vec<_> = std::fs::read_dir(folder.path("disk")).unwrap().collect();
        assert!(left.iter().all(|entry| entry.as_ref().unwrap().file_name() == "ssb"), "{left:?}");
    }));
    let unmount = Command::new("umount").arg(folder.path("disk")).status().unwrap();
    assert!(unmount.success());
    checked.unwrap();
}
