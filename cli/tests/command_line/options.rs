//! What the options of `pack` and `unpack` do.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::program::{Folder, orders};

fn written() -> Folder {
    let folder = Folder::new();
    folder.write("in.csv", orders(5000));
    folder
}

/// The codecs of the blocks of one column's buffer.
fn codecs(folder: &Folder, file: &str, column: &str, buffer: &str) -> BTreeSet<String> {
    let inspected = folder.run(&format!("inspect {file} --json --columns {column}")).json();
    let buffers = inspected["columns"][0]["buffers"].as_array().unwrap();
    buffers
        .iter()
        .filter(|found| found["buffer"] == buffer)
        .flat_map(|found| found["codecs"].as_object().unwrap().keys().cloned())
        .collect()
}

fn names(codecs: &[&str]) -> BTreeSet<String> {
    codecs.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn columns_are_selected_in_the_order_asked_for() {
    let folder = written();
    folder.run("pack in.csv -o out.cb2t --columns price,id --verify").done();
    assert_eq!(folder.run("head out.cb2t -n 1 --json").done(), "{\"price\":0.0,\"id\":0}\n");
    folder.run("pack out.cb2t -o again.cb2t --columns id --verify").done();
    assert_eq!(folder.run("head again.cb2t -n 1 --json").done(), "{\"id\":0}\n");
    folder.run("unpack out.cb2t -o out.csv --columns id,price --rows 0..1").done();
    assert_eq!(folder.text("out.csv"), "id,price\n0,0.0\n");
}

#[test]
fn rows_are_cut_to_those_that_exist() {
    let folder = written();
    folder.run("pack in.csv -o in.cb2t").done();
    let cases =
        [("..3", 0, 3), ("4998..", 4998, 2), ("4998..9000", 4998, 2), ("7..7", 7, 0), ("6000..7000", 0, 0)];
    for (rows, first, count) in cases {
        for input in ["in.csv", "in.cb2t"] {
            folder.run(&format!("pack {input} -o cut.cb2t --rows {rows} --verify --force")).done();
            folder.run("unpack cut.cb2t -o cut.csv --force").done();
            folder.run(&format!("unpack in.cb2t -o direct.csv --rows {rows} --force")).done();
            assert_eq!(folder.text("cut.csv"), folder.text("direct.csv"), "{input} {rows}");
            let text = folder.text("cut.csv");
            let ids: Vec<usize> =
                text.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
            assert_eq!(ids, (first..first + count).collect::<Vec<_>>(), "{input} {rows}");
        }
    }
}

#[test]
fn codecs_are_chosen_for_all_columns_or_for_one() {
    let folder = written();
    folder.run("pack in.csv -o all.cb2t --codec plain --verify").done();
    assert_eq!(codecs(&folder, "all.cb2t", "id", "values"), names(&["plain"]));
    folder.run("pack in.csv -o one.cb2t --codec plain,id=rfor --codec price=flbp --verify").done();
    assert_eq!(codecs(&folder, "one.cb2t", "id", "values"), names(&["rfor"]));
    assert_eq!(codecs(&folder, "one.cb2t", "price", "values"), names(&["flbp"]));
    assert_eq!(codecs(&folder, "one.cb2t", "day", "values"), names(&["plain"]));
    folder.run("pack in.csv -o auto.cb2t --codec plain --codec auto --verify").done();
    folder.run("pack in.csv -o default.cb2t --verify").done();
    assert_eq!(folder.read("auto.cb2t"), folder.read("default.cb2t"));
    assert!(folder.read("all.cb2t").len() > folder.read("auto.cb2t").len());
}

#[test]
fn tiles_blocks_and_row_groups_have_the_sizes_asked_for() {
    let folder = written();
    let options = "--tile-size 512 --block-size 8K --row-group-rows 2100";
    folder.run(&format!("pack in.csv -o in.cb2t --verify {options}")).done();
    let inspected = folder.run("inspect in.cb2t --json --blocks --columns id").json();
    assert_eq!(inspected["row_groups"], serde_json::json!([2100, 2100, 800]));
    let buffers = inspected["columns"][0]["buffers"].as_array().unwrap();
    let blocks: Vec<(u64, u64)> = buffers
        .iter()
        .flat_map(|buffer| buffer["blocks"].as_array().unwrap())
        .map(|block| (block["tile_size"].as_u64().unwrap(), block["values"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        blocks,
        [(512, 1024), (512, 1024), (512, 52), (512, 1024), (512, 1024), (512, 52), (512, 800)]
    );
}

#[test]
fn dictionaries_are_ordered_unless_the_input_is_read_once() {
    let folder = written();
    folder.run("pack in.csv -o twice.cb2t").done();
    folder.run("pack in.csv -o once.cb2t --single-pass --verify").done();
    folder.run_with("pack - --format csv -o stream.cb2t --verify", orders(5000).as_bytes()).done();
    for (file, ordered) in [("twice.cb2t", true), ("once.cb2t", false), ("stream.cb2t", false)] {
        let inspected = folder.run(&format!("inspect {file} --json --columns city")).json();
        let dictionary = &inspected["columns"][0]["dictionary"];
        assert_eq!(*dictionary, serde_json::json!({ "entries": 4, "ordered": ordered }), "{file}");
        folder.run(&format!("diff in.csv {file}")).done();
    }
}

#[test]
fn nulls_headers_and_delimiters_are_as_told() {
    let folder = Folder::new();
    folder.write("in.csv", "1|NA|x\n2|-|NA\n");
    folder.run("pack in.csv -o in.cb2t --delimiter | --no-header --null NA --null - --verify").done();
    let lines = "{\"column_1\":1,\"column_2\":null,\"column_3\":\"x\"}\n{\"column_1\":2,\"column_2\":null,\"column_3\":null}\n";
    assert_eq!(folder.run("head in.cb2t --json").done(), lines);
    folder.write("in.tsv", "a\tb\n1\t2,3\n");
    assert_eq!(folder.run("head in.tsv --json").done(), "{\"a\":1,\"b\":\"2,3\"}\n");
    folder.write("tabs.csv", "a\tb\n1\t2,3\n");
    assert_eq!(folder.run("head tabs.csv --delimiter \\t --json").done(), "{\"a\":1,\"b\":\"2,3\"}\n");
}

#[test]
fn several_inputs_become_one_table() {
    let folder = Folder::new();
    let whole = orders(3000);
    let lines: Vec<&str> = whole.lines().collect();
    for (index, part) in lines[1..].chunks(1100).enumerate() {
        folder.write(&format!("part{index}.csv"), format!("{}\n{}\n", lines[0], part.join("\n")));
    }
    folder.write("whole.csv", &whole);
    folder.run("pack part0.csv part1.csv part2.csv -o parts.cb2t --verify").done();
    assert!(folder.run("diff whole.csv parts.cb2t").done().starts_with("equal: 3000 rows"));
    // A column that is all numbers in one part and text in another is text in all.
    folder.write("a.csv", "x\n1\n");
    folder.write("b.csv", "x\ntwo\n");
    folder.run("pack a.csv b.csv -o ab.cb2t --verify").done();
    assert_eq!(folder.run("head ab.cb2t --json").done(), "{\"x\":\"1\"}\n{\"x\":\"two\"}\n");
    folder.write("c.csv", "y\n1\n");
    folder.run("pack a.csv c.csv -o ac.cb2t").fails(3, &["c.csv", "\"x\"", "\"y\""]);
}

#[test]
fn columns_of_one_name_are_kept_apart() {
    let folder = Folder::new();
    folder.write("in.csv", format!("a,b,a,b\n{}", "1,x,2,y\n3,x,4,z\n".repeat(50)));
    folder.run("pack in.csv -o in.cb2t --verify").done();
    assert!(folder.run("diff in.csv in.cb2t").done().starts_with("equal: 100 rows, 4 columns"));
    folder.run("unpack in.cb2t -o out.csv").done();
    assert_eq!(folder.text("out.csv"), folder.text("in.csv"));
}

#[test]
fn explain_shows_what_was_tried_and_achieved() {
    let folder = written();
    let ended = folder.run("pack in.csv -o in.cb2t --explain");
    ended.done();
    let mut lines = ended.stderr.lines();
    assert!(
        lines.next().unwrap().starts_with("packed 5,000 rows of 5 columns into in.cb2t: "),
        "{}",
        ended.stderr
    );
    let header: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(header[..3], ["column", "buffer", "codec"]);
    let tried: BTreeSet<&str> = ended
        .stderr
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter_map(|words| (words.len() > 3 && words[..2] == ["id", "values"]).then(|| words[2]))
        .collect();
    let chosen = codecs(&folder, "in.cb2t", "id", "values");
    assert!(tried.len() > 1 && chosen.iter().all(|codec| tried.contains(codec.as_str())), "{}", ended.stderr);
}

#[test]
fn the_report_of_pack_agrees_with_the_file() {
    let folder = written();
    let report = folder.run("pack in.csv -o in.cb2t --row-group-rows 2000 --json").json();
    assert_eq!(
        (&report["rows"], &report["columns"], &report["row_groups"]),
        (&5000.into(), &5.into(), &3.into())
    );
    assert_eq!(report["input_bytes"], folder.read("in.csv").len());
    assert_eq!(report["file_bytes"], folder.read("in.cb2t").len());
    assert!(report["seconds"].as_f64().unwrap() > 0.0);
    let buffers = report["buffers"].as_array().unwrap();
    for buffer in buffers {
        let chosen = |key: &str| -> u64 {
            buffer["codecs"].as_array().unwrap().iter().map(|codec| codec[key].as_u64().unwrap()).sum()
        };
        assert_eq!(buffer["blocks"], chosen("chosen_blocks"), "{buffer}");
        assert_eq!(buffer["bytes"], chosen("chosen_bytes"), "{buffer}");
    }
    let of_report: u64 = buffers.iter().map(|buffer| buffer["bytes"].as_u64().unwrap()).sum();
    let inspected = folder.run("inspect in.cb2t --json").json();
    let bytes = |column: &Value| column["bytes"].as_u64().unwrap();
    assert_eq!(of_report, inspected["columns"].as_array().unwrap().iter().map(bytes).sum::<u64>());
}

#[test]
fn a_schema_is_taken_from_json_or_from_another_file() {
    let folder = written();
    folder.write("few.csv", "id,city,price,day,note\n1,2,3,2026-01-01,5\n");
    folder.run("pack in.csv -o in.cb2t").done();
    folder.write("schema.json", folder.run("schema in.cb2t --json").done());
    let own = "{\"id\":1,\"city\":2,\"price\":3,\"day\":\"2026-01-01\",\"note\":5}\n";
    let given = "{\"id\":1,\"city\":\"2\",\"price\":3.0,\"day\":\"2026-01-01\",\"note\":\"5\"}\n";
    assert_eq!(folder.run("head few.csv --json").done(), own);
    for schema in ["schema.json", "in.cb2t", "in.csv"] {
        folder.run(&format!("pack few.csv -o few.cb2t --schema {schema} --verify --force")).done();
        assert_eq!(folder.run("head few.cb2t --json").done(), given, "{schema}");
        assert_eq!(folder.run("schema few.cb2t --json").done(), folder.text("schema.json"), "{schema}");
        folder.run(&format!("diff few.csv few.cb2t --schema {schema}")).done();
    }
    folder.write("wrong.csv", "id,city,price,day,note\none,2,3,2026-01-01,5\n");
    folder.run("pack wrong.csv -o out.cb2t --schema schema.json").fails(3, &["wrong.csv", "row 0", "id"]);
    folder.run("unpack in.cb2t -o in.arrow").done();
    for input in ["in.cb2t", "in.arrow"] {
        let line = format!("pack {input} -o out.cb2t --schema schema.json");
        folder.run(&line).fails(3, &[input, "schema of its own"]);
    }
}

#[test]
fn a_row_that_does_not_fit_the_inferred_schema_is_an_error() {
    let folder = Folder::new();
    folder.write("in.csv", "x\n1\n2\nthree\n");
    folder.run("pack in.csv -o in.cb2t --infer-rows 2").fails(3, &["in.csv", "row 2", "three"]);
    folder.run("pack in.csv -o in.cb2t").done();
    assert_eq!(folder.run("schema in.cb2t").done(), "x: Utf8\n");
}

#[test]
fn threads_change_nothing_in_the_file() {
    let folder = written();
    folder.run("pack in.csv -o one.cb2t --threads 1 --row-group-rows 700").done();
    folder.run("--threads 3 pack in.csv -o three.cb2t --row-group-rows 700").done();
    assert_eq!(folder.read("one.cb2t"), folder.read("three.cb2t"));
}

#[test]
fn a_file_may_replace_itself() {
    let folder = written();
    folder.run("pack in.csv -o in.cb2t").done();
    folder.run("pack in.cb2t -o in.cb2t --force --codec plain").done();
    folder.run("diff in.csv in.cb2t").done();
}

#[test]
fn unpack_can_prove_first_and_reports() {
    let folder = written();
    folder.run("pack in.csv -o in.cb2t").done();
    let report = folder.run("unpack in.cb2t -o out.csv.gz --verify --json").json();
    assert_eq!((&report["rows"], &report["format"]), (&5000.into(), &"csv".into()));
    assert_eq!(folder.read("out.csv.gz")[..2], [0x1f, 0x8b]);
    folder.run("diff out.csv.gz in.csv").done();
    let ended = folder.run("unpack in.cb2t -o - --format csv --json");
    assert_eq!(ended.done().lines().count(), 5001);
    assert_eq!(serde_json::from_str::<Value>(&ended.stderr).unwrap()["rows"], 5000);
}
