//! Every file of the shared data that its own reader can read: packed, verified, unpacked to Arrow and to Parquet, and compared with the original in types, metadata
//! and values.
#![allow(clippy::unwrap_used, clippy::panic)]

mod program;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use program::{Folder, shared_data};

/// Files that are no tables, are too large for a test, or have no reader here.
const LEFT_OUT: [(&str, &str); 7] = [
    ("README.md", "about the folder"),
    ("parquet-testing/LICENSE.txt", "about the folder"),
    ("parquet-testing/data/large_string_map.brotli.parquet", "expands to more than 2 GB"),
    ("alp/bitcoin_transactions_f_tw.f64le.bin.gz", "raw doubles, not a table"),
    ("alp/food_prices_tw.f64le.bin.gz", "raw doubles, not a table"),
    ("alp/nyc29_tw.f64le.bin.gz", "raw doubles, not a table"),
    ("nycflights13/flights_part", "parts of one table: a test of its own"),
];

/// Files that must be refused, and what the message says.
const REFUSED: [(&str, &str); 13] = [
    ("bad_data/ARROW-GH-41317.parquet", "Expected list element type of I32"),
    ("bad_data/ARROW-GH-41321.parquet", "unexpected end of file"),
    ("bad_data/ARROW-GH-45185.parquet", "first repetition level"),
    ("bad_data/ARROW-GH-47662.parquet", "insufficient values"),
    ("bad_data/ARROW-RS-GH-6229-DICTHEADER.parquet", "Integer overflow"),
    ("bad_data/ARROW-RS-GH-6229-LEVELS.parquet", "Insufficient repetition levels"),
    ("bad_data/PARQUET-1481.parquet", "Unexpected Type -7"),
    ("data/datapage_v1-corrupt-checksum.parquet", "CRC checksum mismatch"),
    ("data/rle-dict-uncompressed-corrupt-checksum.parquet", "CRC checksum mismatch"),
    ("data/dict-page-offset-zero.parquet", "Expected list element type of I64"),
    ("data/nation.dict-malformed.parquet", "Invalid page header"),
    // One document over many lines, and text in Latin-1.
    ("vega/earthquakes.json.gz", "each line must hold one whole JSON object"),
    ("silesia/dickens.gz", "invalid UTF-8"),
];

/// Text is cut to this length in debug builds, whose CSV reader takes a second a megabyte.
const EXCERPT_BYTES: u64 = if cfg!(debug_assertions) { 200_000 } else { u64::MAX };

/// All files below a folder of the shared data; none where it is missing.
fn files(below: &str) -> Vec<PathBuf> {
    let Some(data) = shared_data() else { return Vec::new() };
    let (mut folders, mut found) = (vec![data.join(below)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    let left_out = |path: &Path| LEFT_OUT.iter().any(|(name, _)| begins(path, &data.join(name)));
    found.retain(|path| !left_out(path));
    found.sort();
    found
}

fn begins(path: &Path, with: &Path) -> bool {
    path.to_str().unwrap().starts_with(with.to_str().unwrap())
}

fn is_binary(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "parquet" || extension == "arrow")
}

/// How the program is told to read a file.
fn options(path: &Path) -> &'static [&'static str] {
    let text = path.to_str().unwrap();
    let named = [".parquet", ".arrow", ".csv", ".csv.gz", ".tsv.gz", ".json.gz"];
    match () {
        () if text.contains("/alp/samples/") => &["--no-header"],
        () if text.contains("/nycflights13/") || text.contains("/penguins/") => &["--null", "NA"],
        () if named.iter().any(|extension| text.ends_with(extension)) => &[],
        // Lines of text are a table of one column, where the delimiter does not occur.
        () => &["--format", "csv", "--no-header", "--delimiter", "\u{1}"],
    }
}

/// The file, or its beginning where it is long text.
fn excerpt(folder: &Folder, path: &Path) -> PathBuf {
    let refused = REFUSED.iter().any(|(name, _)| path.ends_with(name));
    if is_binary(path) || EXCERPT_BYTES == u64::MAX || refused {
        return path.to_owned();
    }
    let file = File::open(path).unwrap();
    let gzip = path.extension().is_some_and(|extension| extension == "gz");
    let text: Box<dyn Read> = if gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut text = BufReader::new(text);
    let mut beginning = Vec::new();
    text.by_ref().take(EXCERPT_BYTES).read_to_end(&mut beginning).unwrap();
    text.read_until(b'\n', &mut beginning).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let name = name.strip_suffix(".gz").unwrap_or(name);
    folder.write(name, beginning);
    folder.path(name)
}

/// Packs, verifies, unpacks and compares the table of some files.
#[track_caller]
fn round_trip(folder: &Folder, paths: &[PathBuf], options: &[&str]) {
    let run = |arguments: &[&str]| folder.run_arguments(arguments, &[]);
    let inputs: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let pack = [&["pack", "-o", "t.cb2t", "--force"], inputs.as_slice(), options].concat();
    run(&pack).done();
    run(&["verify", "t.cb2t"]).done();
    run(&["unpack", "t.cb2t", "-o", "t.arrow", "--force"]).done();
    run(&["unpack", "t.cb2t", "-o", "t.parquet", "--force"]).done();
    assert!(run(&["diff", "t.cb2t", "t.arrow"]).done().starts_with("equal: "));
    assert!(run(&["diff", "t.arrow", "t.parquet"]).done().starts_with("equal: "));
    let [input] = inputs.as_slice() else { return };
    // `diff` takes no format: lines of text get the extension that stands for it.
    let (input, options) = match options {
        ["--format", format, rest @ ..] => {
            let named = format!("t.{format}");
            std::fs::copy(input, folder.path(&named)).unwrap();
            (named, rest)
        }
        _ => ((*input).to_owned(), options),
    };
    let diff = [&["diff", &input, "t.arrow"], options].concat();
    assert!(run(&diff).done().starts_with("equal: "));
}

fn every_file(below: &str) {
    for path in files(below) {
        let folder = Folder::new();
        let refusal = REFUSED.iter().find(|(name, _)| path.ends_with(name));
        let input = excerpt(&folder, &path);
        let options = options(&path);
        match refusal {
            None => round_trip(&folder, &[input], options),
            Some((_, words)) => {
                let arguments = [&["pack", "-o", "t.cb2t", input.to_str().unwrap()], options].concat();
                folder.run_arguments(arguments, &[]).fails(3, &[input.to_str().unwrap(), words]);
                assert_eq!(folder.names(), [""; 0], "{}", path.display());
            }
        }
    }
}

#[test]
fn parquet_testing() {
    every_file("parquet-testing");
}

#[test]
fn tables() {
    for folder in [
        "airportsdata",
        "fec-candidate",
        "impala",
        "nycflights13",
        "penguins",
        "sec-num",
        "tpch-lineitem",
        "vega",
    ] {
        every_file(folder);
    }
}

#[test]
fn samples_of_doubles() {
    every_file("alp");
}

#[test]
fn lines_of_text() {
    for folder in ["dbtext", "fastq", "genome", "logs", "silesia", "text", "utf8"] {
        every_file(folder);
    }
}

#[test]
fn flights_in_four_parts() {
    let Some(data) = shared_data() else { return };
    let folder = Folder::new();
    let parts: Vec<PathBuf> = (1..=4)
        .map(|part| excerpt(&folder, &data.join(format!("nycflights13/flights_part{part}.csv.gz"))))
        .collect();
    round_trip(&folder, &parts, &["--null", "NA"]);
    let whole = parts.iter().map(|part| lines(part) - 1).sum::<usize>();
    let inspected = folder.run("inspect t.cb2t --json").json();
    assert_eq!(inspected["rows"], whole);
    assert_eq!(inspected["columns"][18]["type"], "Timestamp(s, \"UTC\")");
}

fn lines(path: &Path) -> usize {
    let file = File::open(path).unwrap();
    let gzip = path.extension().is_some_and(|extension| extension == "gz");
    let text: Box<dyn Read> = if gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    BufReader::new(text).lines().count()
}

#[test]
fn no_folder_is_forgotten() {
    let Some(data) = shared_data() else { return };
    let tested = [
        "airportsdata",
        "alp",
        "dbtext",
        "fastq",
        "fec-candidate",
        "genome",
        "impala",
        "logs",
        "nycflights13",
        "parquet-testing",
        "penguins",
        "sec-num",
        "silesia",
        "text",
        "tpch-lineitem",
        "utf8",
        "vega",
    ];
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(!path.is_dir() || tested.contains(&name), "{name}: no test reads this folder");
    }
}
