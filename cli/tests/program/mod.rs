//! Runs the program in a folder of its own, and finds the shared data.
#![allow(dead_code, clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_cb2t");

/// A folder that goes when the test ends; the program runs in it.
pub struct Folder(tempfile::TempDir);

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub command: String,
    /// The exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// The names of all files, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program, to be run in this folder.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(PROGRAM);
        command.current_dir(self.0.path()).args(arguments);
        command
    }

    /// Runs the program with the words of `line` as arguments.
    pub fn run(&self, line: &str) -> Ended {
        self.run_with(line, &[])
    }

    /// The same, with `input` on standard input.
    pub fn run_with(&self, line: &str, input: &[u8]) -> Ended {
        self.run_arguments(line.split_whitespace(), input)
    }

    /// The same, with arguments that may hold blanks.
    pub fn run_arguments<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> Ended {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = format!("{command:?}");
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // The program may end before it has read everything.
        let feeding = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        feeding.join().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        Ended { command: shown, code: output.status.code(), stdout: output.stdout, stderr }
    }
}

impl Ended {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// The standard output of a run that must have succeeded.
    #[track_caller]
    pub fn done(&self) -> &str {
        assert_eq!(self.code, Some(0), "{}\n{}", self.command, self.stderr);
        self.text()
    }

    /// The JSON document on standard output of a run that must have succeeded.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.done()).unwrap()
    }

    /// A run that must have failed with this exit code, one line that holds all of `words`, and nothing on standard output.
    #[track_caller]
    pub fn fails(&self, code: i32, words: &[&str]) {
        let Self { command, stderr, .. } = self;
        assert_eq!(self.code, Some(code), "{command}\n{stderr}");
        assert_eq!(self.text(), "", "{command}");
        assert!(
            stderr.starts_with("cb2t: ") && stderr.trim_end().lines().count() == 1,
            "{command}\n{stderr}"
        );
        for word in words {
            assert!(stderr.contains(word), "{command}\n{stderr}lacks {word:?}");
        }
    }

    /// A run whose arguments must have been refused before it began: the parser's own message and exit code 2.
    #[track_caller]
    pub fn is_misuse(&self, words: &[&str]) {
        let Self { command, stderr, .. } = self;
        assert_eq!(self.code, Some(2), "{command}\n{stderr}");
        for word in words {
            assert!(stderr.contains(word), "{command}\n{stderr}lacks {word:?}");
        }
    }
}

/// A table of numbers with runs, strings, nulls and dates, as CSV.
pub fn orders(rows: usize) -> String {
    const NAMES: [&str; 5] = ["Łódź", "Oslo", "Rome", "", "New York, NY"];
    let mut text = String::from("id,city,price,day,note\n");
    for row in 0..rows {
        let city = NAMES[row / 7 % NAMES.len()];
        let price = (row * 7919) % 10_000;
        let day = 1 + row / 100 % 28;
        writeln!(text, "{row},\"{city}\",{}.{:02},2026-03-{day:02},note {row}", price / 100, price % 100)
            .unwrap();
    }
    text
}

/// The folder of shared data; `None`, with a printed reason, where it is missing.
pub fn shared_data() -> Option<PathBuf> {
    let folder = std::env::var_os("CB2T_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from);
    if !folder.exists() {
        eprintln!("skipped: {} is missing; set CB2T_DATA to the folder of test data", folder.display());
        return None;
    }
    Some(folder)
}
