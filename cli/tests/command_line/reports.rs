//! What `head`, `schema`, `stats`, `inspect`, `diff`, `gen` and `demo` print.

use serde_json::{Value, json};

use crate::program::{Folder, orders};

fn packed() -> Folder {
    let folder = Folder::new();
    folder.write("in.csv", orders(3000));
    folder.run("pack in.csv -o in.cb2t --row-group-rows 2000").done();
    folder
}

/// What readers of the reports rely on; more may come.
#[track_caller]
fn has_keys(object: &Value, keys: &[&str]) {
    for key in keys {
        assert!(object.as_object().unwrap().contains_key(*key), "{object} lacks {key:?}");
    }
}

#[test]
fn head_and_schema_read_every_format_alike() {
    let folder = packed();
    let (head, schema) =
        (folder.run("head in.cb2t -n 3").done().to_owned(), folder.run("schema in.cb2t").done().to_owned());
    assert_eq!(schema, "id: Int64\ncity: Utf8\nprice: Float64\nday: Date32\nnote: Utf8\n");
    for name in ["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.arrow", "t.arrows", "t.csv.gz", "t.jsonl.gz"] {
        folder.run(&format!("unpack in.cb2t -o {name}")).done();
        let from_text = name.contains("jsonl");
        assert_eq!(folder.run(&format!("head {name} -n 3")).done(), head, "{name}");
        // JSON has no dates.
        let expected = if from_text { schema.replace("Date32", "Utf8") } else { schema.clone() };
        assert_eq!(folder.run(&format!("schema {name}")).done(), expected, "{name}");
    }
}

#[test]
fn head_shows_a_grid_with_numbers_on_the_right() {
    let folder = Folder::new();
    let long = "long ".repeat(20);
    folder.write("in.jsonl", format!("{{\"n\":7,\"text\":\"{long}\"}}\n{{\"n\":1000,\"text\":\"two\\nlines\"}}\n{{\"n\":null,\"text\":null}}\n"));
    let expected = "\
+------+--------------------------------------------------+
|    n | text                                             |
+------+--------------------------------------------------+
|    7 | long long long long long long long long long lo… |
| 1000 | two\\nlines                                       |
|      |                                                  |
+------+--------------------------------------------------+
";
    assert_eq!(folder.run("head in.jsonl").done(), expected);
    assert_eq!(folder.run("head in.jsonl -n 0").done().lines().count(), 4);
    let json = folder.run("head in.jsonl -n 1 --json");
    assert_eq!(json.json(), json!({ "n": 7, "text": long }));
}

#[test]
fn nested_schemas_are_trees() {
    let folder = Folder::new();
    folder.write("in.jsonl", "{\"id\":1,\"tags\":[{\"key\":\"a\",\"counts\":[1,2]}]}\n");
    folder.run("pack in.jsonl -o in.cb2t").done();
    let expected =
        "id: Int64\ntags: List\n  item: Struct\n    key: Utf8\n    counts: List\n      item: Int64\n";
    let schema = folder.run("schema in.cb2t");
    let mut lines: Vec<&str> = schema.done().lines().collect();
    let mut wanted: Vec<&str> = expected.lines().collect();
    // JSON objects name their fields in any order.
    lines.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(lines, wanted);
    let inspected = folder.run("inspect in.cb2t").done().to_owned();
    for line in ["tags ", "tags.item ", "tags.item.counts.item "] {
        assert!(inspected.lines().any(|found| found.starts_with(line)), "{inspected}");
    }
    assert!(!inspected.contains("Struct("), "{inspected}");
}

#[test]
fn inspect_adds_up() {
    let folder = packed();
    let text = folder.run("inspect in.cb2t").done().to_owned();
    assert!(text.starts_with("in.cb2t: 3,000 rows, 5 columns, 2 row groups, "), "{text}");
    let one = folder.run("inspect in.cb2t --columns id").done().to_owned();
    assert!(one.lines().next().unwrap().contains("the columns below "), "{one}");
    let inspected = folder.run("inspect in.cb2t --json --blocks").json();
    has_keys(&inspected, &["file", "rows", "row_groups", "file_bytes", "created_by", "columns"]);
    assert_eq!(inspected["row_groups"], json!([2000, 1000]));
    assert_eq!(inspected["file_bytes"], folder.read("in.cb2t").len());
    let columns = inspected["columns"].as_array().unwrap();
    assert_eq!(columns.len(), 5);
    for column in columns {
        has_keys(
            column,
            &[
                "column",
                "type",
                "nullable",
                "rows",
                "nulls",
                "nans",
                "arrow_bytes",
                "bytes",
                "min",
                "max",
                "dictionary",
                "buffers",
            ],
        );
        let mut bytes = 0;
        for buffer in column["buffers"].as_array().unwrap() {
            has_keys(
                buffer,
                &["row_group", "buffer", "limb", "value_width", "values", "bytes", "codecs", "blocks"],
            );
            for block in buffer["blocks"].as_array().unwrap() {
                has_keys(block, &["codec", "offset", "bytes", "values", "tiles", "tile_size"]);
            }
            bytes += buffer["bytes"].as_u64().unwrap();
        }
        assert_eq!(column["bytes"], bytes, "{column}");
    }
    // As many lines as blocks, below the headline, a blank line and the names.
    let blocks = folder.run("inspect in.cb2t --blocks").done().lines().count() - 3;
    let counted: usize = columns
        .iter()
        .flat_map(|column| column["buffers"].as_array().unwrap())
        .map(|buffer| buffer["blocks"].as_array().unwrap().len())
        .sum();
    assert_eq!(blocks, counted);
}

#[test]
fn stats_come_from_the_values() {
    let folder = packed();
    let stats = folder.run("stats in.cb2t --json").json();
    has_keys(&stats, &["file", "rows", "columns"]);
    let columns = stats["columns"].as_array().unwrap();
    for column in columns {
        has_keys(column, &["column", "type", "rows", "nulls", "nans", "distinct", "min", "max"]);
    }
    assert_eq!((&columns[0]["min"], &columns[0]["max"]), (&json!("0"), &json!("2999")));
    // A fifth of the cities is an empty field, which is null.
    let city = &columns[1];
    let nulls = (0..3000).filter(|row| row / 7 % 5 == 3).count();
    assert_eq!((&city["nulls"], &city["distinct"]), (&json!(nulls), &json!(4)));
    assert_eq!((&city["min"], &city["max"]), (&json!("New York, NY"), &json!("Łódź")));
    assert_eq!((&columns[3]["min"], &columns[3]["max"]), (&json!("2026-03-01"), &json!("2026-03-28")));
    let text = folder.run("stats in.cb2t --columns city").done().to_owned();
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn diff_reports_as_json() {
    let folder = packed();
    folder.write("other.csv", orders(2999).replace("\n7,", "\n8,"));
    let ended = folder.run("diff in.cb2t other.csv --json --show 1");
    assert_eq!(ended.code, Some(1));
    let found: Value = serde_json::from_str(ended.text()).unwrap();
    has_keys(&found, &["equal", "left_rows", "right_rows", "schema", "columns"]);
    assert_eq!((&found["left_rows"], &found["right_rows"]), (&json!(3000), &json!(2999)));
    let id = &found["columns"][0];
    has_keys(id, &["column", "differing_rows", "not_compared", "first"]);
    assert_eq!(id["first"], json!([{ "row": 7, "left": "7", "right": "8" }]));
    assert_eq!(folder.run("diff in.cb2t in.cb2t --json").json()["equal"], true);
}

#[test]
fn diff_ignores_what_it_is_told_to() {
    let folder = packed();
    folder.write("few.csv", "x\n1\n2\n");
    folder.write("few.jsonl", "{\"x\":1.0}\n{\"x\":2.0}\n");
    assert_eq!(folder.run("diff few.csv few.jsonl").code, Some(1));
    folder.run("diff few.csv few.jsonl --ignore-types").done();
    folder.run("unpack in.cb2t -o in.parquet").done();
    folder.run("diff in.cb2t in.parquet").done();
}

#[test]
fn gen_and_demo_report_as_json() {
    let folder = Folder::new();
    let lines = folder.run("gen ssb --scale 0.001 -o ssb --json --codec auto,lo_orderdate=rfor");
    let tables: Vec<Value> = lines.done().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(tables.len(), 5);
    for table in &tables {
        has_keys(table, &["table", "file", "rows", "file_bytes", "seconds"]);
        let verified = folder.run(&format!("verify {} --json", table["file"].as_str().unwrap())).json();
        has_keys(&verified, &["file", "sound", "rows", "blocks", "tiles", "bytes"]);
        assert_eq!((&verified["sound"], &verified["rows"]), (&json!(true), &table["rows"]));
        assert_eq!(verified["bytes"], table["file_bytes"]);
    }
    for format in ["parquet", "arrow"] {
        folder.run(&format!("gen ssb --scale 0.001 -o ssb --format {format} --tables part")).done();
        folder.run(&format!("diff ssb/part.cb2t ssb/part.{format}")).done();
    }
    folder.run("gen tpch --scale 0.001 -o tpch --tables lineitem,orders").done();
    assert_eq!(folder.run("verify tpch/lineitem.cb2t --json").json()["rows"], 6005);
    let demo = folder.run("demo --json").json();
    assert_eq!((&demo["equal"], &demo["rows"]), (&json!(true), &json!(3322)));
}
