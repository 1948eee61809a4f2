//! `bench-peers [--json FILE] [--seconds S]`: cb2t's codecs and, on the same columns, in the same run, the crate `fastlanes`. One core. (Vortex and DuckDB: `bench/peers.py`.)
//!
//! `cargo run --release -- --json FILE`; with `--no-default-features` without Vortex, which needs libclang and some ten minutes to build.

// A table goes to the standard output; a peer that cannot do its part ends the run.
#![allow(clippy::print_stdout)]

mod fastlanes_peer;

use std::error::Error;
use std::time::Duration;

use bench::{Report, Row};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (mut json, mut budget) = (None, Duration::from_millis(300));
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or("an option needs a value")?;
        match argument.as_str() {
            "--json" => json = Some(value),
            "--seconds" => budget = Duration::from_secs_f64(value.parse()?),
            _ => return Err(format!("unknown option {argument}").into()),
        }
    }
    let mut rows: Vec<Row> = Vec::new();
    let mut add = |more: Vec<Row>| {
        more.iter().for_each(|row| println!("{row}"));
        rows.extend(more);
    };
    // Side by side, so that whatever else the machine does falls on both.
    for bit_width in 1..=32 {
        add(vec![fastlanes_peer::decode(bit_width, budget), fastlanes_peer::encode(bit_width, budget)]);
    }
    for case in bench::codecs::cases() {
        add(case.measure(budget));
    }
    add(bench::files::measure(budget)?);
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_string_pretty(&Report::new(rows))? + "\n")?;
    }
    Ok(())
}
