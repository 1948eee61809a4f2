//! Reads a file to Arrow again and again, for a profiler: `cargo run --release -p bench --example unpack FILE [RUNS]`.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

use cb2t::ReadOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file?")?;
    let runs: u32 = arguments.next().map_or(Ok(5), |runs| runs.parse())?;
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        let table = cb2t::open(&path)?;
        let mut rows = 0;
        for batch in table.read(&ReadOptions::default())? {
            rows += batch?.num_rows() as u64;
        }
        assert_eq!(rows, table.row_count(), "rows");
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{:.1} ms", best * 1e3);
    Ok(())
}
