//! What the sample of a block promised is what the block took, within a tenth, on the tables of the benchmarks.
#![allow(clippy::unwrap_used)]

mod program;

use program::{Folder, shared_data};

/// Buffers smaller than this vary more than they matter: of the day of the month, some tiles have one value and others two.
const LEAST_BYTES: u64 = 32 << 10;

#[test]
fn lineorder_and_lineitem_take_what_was_estimated() {
    let folder = Folder::new();
    folder.run("gen ssb --scale 0.05 -o . --tables lineorder").done();
    folder.run("gen tpch --scale 0.02 -o . --tables lineitem").done();
    check(&folder, "lineorder.cb2t");
    check(&folder, "lineitem.cb2t");
}

#[test]
fn flights_take_what_was_estimated() {
    let Some(data) = shared_data() else { return };
    let folder = Folder::new();
    let flights = data.join("nycflights13/flights_part1.csv.gz");
    folder.run_arguments(["pack", flights.to_str().unwrap(), "-o", "flights.cb2t"], &[]).done();
    check(&folder, "flights.cb2t");
}

fn check(folder: &Folder, file: &str) {
    let report = folder.run(&format!("inspect --why --json {file}")).json();
    let (mut checked, mut promised, mut taken) = (0, 0, 0);
    for buffer in report["buffers"].as_array().unwrap() {
        for codec in buffer["codecs"].as_array().unwrap().iter().filter(|codec| codec["tried_blocks"] != 0) {
            let number = |key: &str| codec[key].as_u64().unwrap();
            let (estimated, achieved) = (number("chosen_estimated_bytes"), number("chosen_bytes"));
            promised += estimated;
            taken += achieved;
            if achieved >= LEAST_BYTES {
                checked += 1;
                assert!(
                    is_near(estimated, achieved),
                    "{file}: {estimated} for {achieved} of {codec} in {buffer}"
                );
            }
        }
    }
    assert!(checked > 4, "{file}: only {checked} buffers are large enough");
    assert!(is_near(promised, taken), "{file}: {promised} for {taken} in all");
}

fn is_near(estimated: u64, achieved: u64) -> bool {
    estimated.abs_diff(achieved) * 10 <= achieved
}
