//! `bench-codecs [--json FILE] [--seconds S] [FILTER]`: every codec and file measurement whose codec or data contains FILTER.

// The table goes to the standard output.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use bench::Report;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (mut json, mut budget, mut filter) = (None, Duration::from_millis(300), String::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = Some(arguments.next().ok_or("--json needs a file")?),
            "--seconds" => {
                budget =
                    Duration::from_secs_f64(arguments.next().ok_or("--seconds needs a number")?.parse()?);
            }
            _ => filter = argument,
        }
    }
    let mut rows = Vec::new();
    for case in bench::codecs::cases() {
        if case.matches(&filter) {
            for row in case.measure(budget) {
                println!("{row}");
                rows.push(row);
            }
        }
    }
    if "files".contains(&filter) {
        for row in bench::files::measure(budget)? {
            println!("{row}");
            rows.push(row);
        }
    }
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_string_pretty(&Report::new(rows))? + "\n")?;
    }
    Ok(())
}
