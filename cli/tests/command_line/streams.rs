//! Standard input and output, pipes, files without an extension.

use std::io::Read;
use std::process::Stdio;

use crate::program::{Folder, orders};

const FORMATS: [&str; 6] = ["csv", "tsv", "jsonl", "parquet", "arrow", "arrow-stream"];

fn packed(rows: usize) -> Folder {
    let folder = Folder::new();
    folder.write("in.csv", orders(rows));
    folder.run("pack in.csv -o in.cb2t").done();
    folder
}

#[test]
fn every_format_goes_through_pipes_both_ways() {
    let folder = packed(2000);
    for format in FORMATS {
        let unpacked = folder.run(&format!("unpack in.cb2t -o - --format {format}"));
        assert_eq!((unpacked.code, unpacked.stderr.as_str()), (Some(0), ""), "{format}");
        folder.run(&format!("unpack in.cb2t -o file.{format} --format {format}")).done();
        assert_eq!(unpacked.stdout, folder.read(&format!("file.{format}")), "{format}");
        let line = format!("pack - --format {format} -o back.cb2t --force");
        folder.run_with(&line, &unpacked.stdout).done();
        folder.run("diff in.cb2t back.cb2t --ignore-types").done();
    }
}

#[test]
fn what_gives_itself_away_needs_no_format() {
    let folder = packed(100);
    for format in ["jsonl", "parquet", "arrow", "arrow-stream"] {
        let unpacked = folder.run(&format!("unpack in.cb2t -o - --format {format}")).stdout;
        folder.run_with("pack - -o back.cb2t --force", &unpacked).done();
        folder.run("diff in.cb2t back.cb2t --ignore-types").done();
        folder.write("bare", &unpacked);
        folder.run("diff bare in.cb2t --ignore-types").done();
    }
}

#[test]
fn a_cb2t_file_comes_and_goes_by_pipes_too() {
    let folder = packed(2000);
    let packed = folder.run("pack in.csv -o -");
    assert_eq!(packed.code, Some(0), "{}", packed.stderr);
    assert_eq!(packed.stdout, folder.read("in.cb2t"));
    let bytes = packed.stdout;
    let head = folder.run("head in.cb2t").done().to_owned();
    assert_eq!(folder.run_with("head -", &bytes).done(), head);
    assert_eq!(folder.run_with("unpack - -o - --format csv", &bytes).done().lines().count(), 2001);
    assert!(folder.run_with("verify -", &bytes).done().starts_with("standard input: sound: 2,000 rows"));
    assert!(folder.run_with("inspect -", &bytes).done().starts_with("standard input: 2,000 rows"));
    assert_eq!(folder.run_with("schema -", &bytes).done(), folder.run("schema in.cb2t").done());
    assert_eq!(folder.run_with("stats -", &bytes).done(), folder.run("stats in.cb2t").done());
    folder.run_with("diff - in.cb2t", &bytes).done();
    folder.run_with("pack - -o again.cb2t --verify", &bytes).done();
    folder.run("diff again.cb2t in.cb2t").done();
    folder.write("bare", &bytes);
    assert_eq!(folder.run("head bare").done(), head);
    folder.run("pack bare -o from_bare.cb2t").done();
    assert_eq!(folder.read("from_bare.cb2t"), bytes);
}

#[test]
fn gzip_is_seen_through() {
    let folder = packed(500);
    for name in ["t.csv.gz", "t.tsv.gz", "t.jsonl.gz"] {
        folder.run(&format!("unpack in.cb2t -o {name}")).done();
        folder.run(&format!("pack {name} -o back.cb2t --force --verify")).done();
        folder.run("diff in.cb2t back.cb2t --ignore-types").done();
        let format = name.split('.').nth(1).unwrap();
        let line = format!("pack - --format {format} -o back.cb2t --force");
        folder.run_with(&line, &folder.read(name)).done();
        folder.run("diff in.cb2t back.cb2t --ignore-types").done();
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = packed(20_000);
    let lines = FORMATS.map(|format| format!("unpack in.cb2t -o - --format {format}")).into_iter().chain(
        ["head in.cb2t -n 20000", "head in.cb2t -n 20000 --json", "pack in.csv -o -"].map(String::from),
    );
    for line in lines {
        let mut command = folder.command(line.split_whitespace());
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 1];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{line}");
    }
}

#[test]
fn an_empty_input_is_an_empty_table() {
    let folder = Folder::new();
    folder.write("names.csv", "a,b\n");
    folder.run("pack names.csv -o names.cb2t --verify").done();
    for format in FORMATS {
        folder.run(&format!("unpack names.cb2t -o out.{format} --format {format}")).done();
    }
    assert_eq!(folder.text("out.csv"), "a,b\n");
    assert!(folder.run("verify names.cb2t").done().contains("sound: 0 rows"));
    assert!(folder.run("inspect names.cb2t").done().contains("0 rows, 2 columns, 0 row groups"));
    folder.run("diff names.csv names.cb2t").done();
}
