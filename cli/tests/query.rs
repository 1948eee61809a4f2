//! `cb2t query` as its users run it.
#![cfg(feature = "query")]
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

fn cb2t(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cb2t")).current_dir(folder).args(arguments).output().unwrap()
}

fn tables() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = cb2t(folder.path(), &["gen", "ssb", "--scale", "0.01", "-o", "."]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const YEARS: &str = "SELECT d_year, count(*) AS lines, sum(lo_revenue) AS revenue FROM lineorder, ddate \
                     WHERE lo_orderdate = d_datekey AND d_year < 1995 GROUP BY d_year ORDER BY d_year";

#[test]
fn a_join_is_answered_in_every_format() {
    let folder = tables();
    let run = |more: &[&str]| {
        let arguments = [&["query", YEARS, "lineorder.cb2t", "ddate.cb2t", "--device", "cpu"], more].concat();
        let output = cb2t(folder.path(), &arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let (grid, said) = run(&[]);
    assert!(grid.contains("| d_year | lines |") && grid.contains("1994"), "{grid}");
    assert!(said.starts_with("device: cpu, "), "{said}");
    let (csv, _) = run(&["--csv"]);
    assert_eq!(csv.lines().count(), 4);
    assert!(csv.starts_with("d_year,lines,revenue\n1992,"), "{csv}");
    let (json, profile) = run(&["--json", "--profile"]);
    let rows: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2]["d_year"], 1994);
    assert!(profile.contains("\"plan_ms\""), "{profile}");
    let (explained, _) = run(&["--explain"]);
    assert!(explained.contains("pipeline 1: scan lineorder"), "{explained}");
    run(&["-o", "years.parquet"]);
    let head = cb2t(folder.path(), &["head", "years.parquet", "--json"]);
    assert_eq!(text(&head.stdout), json);
    let again = cb2t(folder.path(), &["query", YEARS, "lineorder.cb2t", "ddate.cb2t", "-o", "years.parquet"]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
}

#[test]
fn what_pipelines_cannot_express_runs_elsewhere_and_says_so() {
    let folder = tables();
    let sql = "SELECT lo_orderkey, lo_linenumber FROM lo ORDER BY lo_orderkey, lo_linenumber LIMIT 2";
    let output = cb2t(folder.path(), &["query", sql, "lo=lineorder.cb2t", "--csv"]);
    assert_eq!(text(&output.stdout).lines().count(), 3);
    let said = text(&output.stderr);
    assert!(said.contains("DataFusion") && said.contains("without an aggregate"), "{said}");
    let demanded = cb2t(folder.path(), &["query", sql, "lo=lineorder.cb2t", "--device", "cuda"]);
    assert_eq!(demanded.status.code(), Some(3));
    assert!(text(&demanded.stderr).contains("cannot express"), "{}", text(&demanded.stderr));
}

#[test]
fn mistakes_are_told() {
    let folder = tables();
    let code = |arguments: &[&str]| {
        let output = cb2t(folder.path(), arguments);
        (output.status.code(), text(&output.stderr))
    };
    let (status, said) = code(&["query", "SELECT sum(lo_missing) FROM lineorder", "lineorder.cb2t"]);
    assert!(status == Some(2) && said.contains("lo_missing"), "{said}");
    let (status, said) = code(&["query", "SELEC 1", "lineorder.cb2t"]);
    assert!(status == Some(2) && said.contains("SELEC"), "{said}");
    let (status, said) = code(&["query", "SELECT count(*) FROM nothing", "lineorder.cb2t"]);
    assert!(status == Some(2) && said.contains("nothing"), "{said}");
    let (status, said) = code(&["query", "DROP TABLE lineorder", "lineorder.cb2t"]);
    assert!(status == Some(2) && said.contains("only queries"), "{said}");
    let (status, said) = code(&["query", YEARS, "lineorder.cb2t", "ddate.cb2t", "--placement", "shelf"]);
    assert!(status == Some(2) && said.contains("global-stage"), "{said}");
    let (status, said) = code(&["query", YEARS, "lineorder.cb2t", "absent.cb2t"]);
    assert!(status == Some(3) && said.contains("absent.cb2t"), "{said}");
    let (status, said) = code(&["query", YEARS, "lineorder.cb2t", "lineorder=ddate.cb2t"]);
    assert!(status == Some(2) && said.contains("two tables"), "{said}");
}

#[test]
fn the_benchmark_checks_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["bench", "ssb", "--scale", "0.01", "--device", "cpu", "--repeat", "1", "--json"];
    let output = cb2t(folder.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 13);
    assert!(rows.iter().all(|row| row["checked"] == "datafusion"));
}
