//! `cb2t bench`: this format beside Parquet, in one run, on the same rows.

pub mod codecs;
pub mod decode;
pub mod files;
#[cfg(feature = "query")]
pub mod ssb;

use std::time::Instant;

use crate::args::{Bench, BenchCommand};
use crate::error::{CliError, Outcome};

pub fn run(args: &Bench) -> Result<Outcome, CliError> {
    match &args.command {
        BenchCommand::Files(files) => files::run(files),
        BenchCommand::Codecs(codecs) => codecs::run(codecs),
        BenchCommand::Decode(decode) => decode::run(decode),
        #[cfg(feature = "query")]
        BenchCommand::Ssb(ssb) => ssb::run(ssb),
    }
}

/// The median of the seconds that `work` takes, over `repeat` runs after one that is not counted; and what the last run returned.
fn median<T>(repeat: usize, mut work: impl FnMut() -> Result<T, CliError>) -> Result<(f64, T), CliError> {
    let mut last = work()?;
    let mut seconds = Vec::with_capacity(repeat.max(1));
    for _ in 0..repeat.max(1) {
        let started = Instant::now();
        last = work()?;
        seconds.push(started.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok((seconds.get(seconds.len() / 2).copied().unwrap_or_default(), last))
}

/// What a figure needs beside it: the processor, the threads, the program.
fn machine() -> serde_json::Value {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, model)| model);
    serde_json::json!({
        "cpu": model.unwrap_or("unknown"), "threads": rayon::current_num_threads(), "program": concat!("cb2t ", env!("CARGO_PKG_VERSION")),
        "os": std::env::consts::OS, "architecture": std::env::consts::ARCH,
    })
}
