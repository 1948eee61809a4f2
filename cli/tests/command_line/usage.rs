//! Exit codes, refusals and help.

use std::process::Command;

use crate::program::{Folder, PROGRAM, orders};

/// A folder with `in.csv`, 3,000 rows, and `in.cb2t`, the same packed.
fn packed() -> Folder {
    let folder = Folder::new();
    folder.write("in.csv", orders(3000));
    folder.run("pack in.csv -o in.cb2t").done();
    folder
}

#[test]
fn success_is_0() {
    let folder = packed();
    for line in [
        "unpack in.cb2t -o out.parquet",
        "inspect in.cb2t",
        "schema in.csv",
        "head in.csv",
        "stats in.cb2t",
        "verify in.cb2t",
        "diff in.csv in.cb2t",
        "gen ssb --scale 0.001 -o ssb",
        "demo",
        "--version",
    ] {
        folder.run(line).done();
    }
}

#[test]
fn a_difference_is_1() {
    let folder = packed();
    folder.write("other.csv", orders(3000).replace("note 7\n", "note x\n"));
    let ended = folder.run("diff other.csv in.cb2t");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.text().contains("column \"note\": 1 row"), "{}", ended.text());
    assert!(ended.text().contains("row 7: left \"note x\", right \"note 7\""), "{}", ended.text());
}

#[test]
fn wrong_use_is_2() {
    let folder = packed();
    for (line, words) in [
        ("head in.cb2t --columns id,nope", &["in.cb2t", "no column nope", "city"][..]),
        ("head in.csv --columns id,xyz", &["in.csv", "xyz", "city"]),
        ("unpack in.cb2t --columns nope -o out.csv", &["no column nope"]),
        ("inspect in.cb2t --columns nope", &["no column nope"]),
        ("stats in.cb2t --columns nope", &["no column nope"]),
        ("pack in.csv --columns nope -o out.cb2t", &["in.csv", "nope"]),
        ("pack in.csv --codec nope -o out.cb2t", &["--codec nope", "auto, ", "flbp", "rfor"]),
        ("pack in.csv --codec id=nope -o out.cb2t", &["--codec nope", "auto, "]),
        ("pack in.csv --codec nope=flbp -o out.cb2t", &["--codec", "no column nope", "city"]),
        ("pack in.csv --tile-size 100 -o out.cb2t", &["--tile-size 100", "512 or 1024"]),
        ("pack in.csv --block-size 2G -o out.cb2t", &["--block-size", "1G"]),
        ("pack in.csv --json -o -", &["--json", "standard output"]),
        ("pack in.csv --verify -o -", &["--verify", "file"]),
        ("unpack in.cb2t -o -", &["--format"]),
        ("unpack in.cb2t -o out.xls", &["out.xls", "--format", "parquet, csv"]),
        ("unpack in.cb2t -o out.cb2t", &["pack"]),
        ("gen ssb --scale 0.001 --format csv -o ssb", &["csv", "parquet"]),
        ("gen ssb --scale 0.001 --tables lineitem -o ssb", &["--tables", "lineitem", "lineorder"]),
        ("gen ssb --scale 0.001 --codec nope -o ssb", &["--codec nope"]),
        ("gen ssb --scale 0.001 --codec nope=flbp -o ssb", &["--codec nope", "no table has"]),
    ] {
        folder.run(line).fails(2, words);
    }
    assert_eq!(folder.names(), ["in.cb2t", "in.csv"], "a refusal leaves nothing");
}

#[test]
fn impossible_arguments_are_2() {
    let folder = Folder::new();
    for (line, words) in [
        ("", &["Usage"][..]),
        ("pack", &["Usage"]),
        ("pack in.csv", &["--output"]),
        ("fly", &["fly"]),
        ("pack in.csv -o out.cb2t --rows 5..2", &["--rows", "ends before it begins"]),
        ("pack in.csv -o out.cb2t --rows many", &["--rows", "100..200"]),
        ("pack in.csv -o out.cb2t --memory 0", &["--memory", "512K"]),
        ("pack in.csv -o out.cb2t --row-group-rows 0", &["--row-group-rows"]),
        ("pack in.csv -o out.cb2t --delimiter ab", &["--delimiter", "one character"]),
        ("pack in.csv -o out.cb2t --format xls", &["--format", "parquet, csv"]),
        ("pack in.csv -o out.cb2t --threads 0", &["--threads"]),
        ("gen tpcds -o out", &["ssb", "tpch"]),
        ("gen ssb --scale 1.5 -o out", &["--scale"]),
    ] {
        folder.run(line).is_misuse(words);
    }
}

#[test]
fn an_existing_file_is_2_until_force() {
    let folder = packed();
    folder.write("out.csv", "precious");
    for line in ["pack in.csv -o out.csv", "unpack in.cb2t -o out.csv"] {
        folder.run(line).fails(2, &["out.csv exists", "--force"]);
        assert_eq!(folder.text("out.csv"), "precious");
    }
    folder.run("unpack in.cb2t -o out.csv --force").done();
    assert_eq!(folder.text("out.csv").lines().count(), 3001);
    folder.run("gen ssb --scale 0.001 -o ssb --tables part").done();
    folder.run("gen ssb --scale 0.001 -o ssb --tables part").fails(2, &["part.cb2t exists"]);
    folder.run("gen ssb --scale 0.001 -o ssb --tables part -f").done();
}

#[test]
fn bad_or_unsupported_input_is_3() {
    let folder = packed();
    folder.write("page.txt", "once upon a time\n");
    folder.write("broken.parquet", "PAR1 but no more");
    folder.write("broken.jsonl", "{\"a\": 1}\n{\"a\": \n");
    folder.run("pack in.csv -o list.cb2t --format csv").done();
    for (line, words) in [
        ("pack nope.csv -o out.cb2t", &["nope.csv", "No such file"][..]),
        ("pack in.csv nope.csv -o out.cb2t", &["nope.csv", "No such file"]),
        ("pack in.cb2t in.csv -o out.cb2t", &["in.cb2t", "alone"]),
        ("pack page.txt -o out.cb2t", &["page.txt", "--format"]),
        ("pack broken.parquet -o out.cb2t", &["broken.parquet"]),
        ("pack broken.jsonl -o out.cb2t", &["broken.jsonl", "row 1"]),
        ("pack . -o out.cb2t", &["directory"]),
        ("pack in.csv -o nope/out.cb2t", &["cannot create nope/out.cb2t: No such file"]),
        ("unpack nope.cb2t -o out.csv", &["nope.cb2t", "No such file"]),
        ("unpack in.csv -o out.csv", &["in.csv", "not a cb2t file"]),
        ("inspect in.csv", &["in.csv", "not a cb2t file"]),
        ("stats in.csv", &["in.csv", "not a cb2t file"]),
        ("verify in.csv", &["in.csv", "not a cb2t file"]),
        ("verify nope.cb2t", &["nope.cb2t", "No such file"]),
        ("schema nope.csv", &["nope.csv"]),
        ("head page.txt", &["page.txt", "--format"]),
        ("diff in.cb2t nope.csv", &["nope.csv"]),
        ("pack - -o out.cb2t", &["standard input", "--format"]),
    ] {
        folder.run(line).fails(3, words);
    }
    let left = folder.names();
    assert!(!left.iter().any(|name| name.starts_with("out") || name.starts_with('.')), "{left:?}");
}

#[test]
fn a_type_that_the_output_cannot_hold_is_3_and_named() {
    let folder = Folder::new();
    folder.write("in.jsonl", "{\"id\": 1, \"tags\": [\"a\"]}\n{\"id\": 2, \"tags\": []}\n");
    folder.run("pack in.jsonl -o in.cb2t").done();
    folder.run("unpack in.cb2t -o out.csv").fails(3, &["out.csv", "tags", "csv"]);
    folder.run("unpack in.cb2t -o out.csv --columns id").done();
    assert_eq!(folder.text("out.csv"), "id\n1\n2\n");
}

#[test]
fn a_device_is_written_and_stays_one() {
    let folder = packed();
    folder.run("pack in.csv -o /dev/null --force").done();
    folder.run("unpack in.cb2t -o /dev/null --format parquet").done();
    assert!(!std::path::Path::new("/dev/null").is_file());
    folder.run("pack in.csv -o /dev/full").fails(3, &["/dev/full", "No space left"]);
    for format in ["csv", "jsonl", "arrow", "arrow-stream", "parquet"] {
        let ended = folder.run(&format!("unpack in.cb2t -o /dev/full --format {format}"));
        ended.fails(3, &["/dev/full", "No space left"]);
    }
}

#[test]
fn every_command_explains_itself_with_an_example() {
    let help = Command::new(PROGRAM).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("Exit codes: 0 done; 1"), "{help}");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands.map_while(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 10, "{help}");
    for command in commands.iter().filter(|command| **command != "help") {
        let help = Command::new(PROGRAM).args([command, "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let example = format!("\n  cb2t {command} ");
        let has_example = help.contains(&example) || help.ends_with(&format!("\n  cb2t {command}\n"));
        assert!(help.contains("Example") && has_example, "{help}");
    }
}
