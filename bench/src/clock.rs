//! Best and median of many runs.

use std::time::{Duration, Instant};

/// How long something took, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Of the fastest run: what the machine does when nothing else runs on it.
    pub best_ns: f64,
    /// Of the run in the middle.
    pub median_ns: f64,
    /// Runs.
    pub runs: usize,
}

impl Timing {
    /// Gigabytes a second of the fastest run, for `bytes` a run.
    #[must_use]
    pub fn gigabytes_per_second(&self, bytes: usize) -> f64 {
        bytes as f64 / self.best_ns
    }
}

/// Runs `work` once to warm up and then again and again for `budget`, at least five times.
pub fn time(budget: Duration, mut work: impl FnMut()) -> Timing {
    work();
    let mut runs: Vec<f64> = Vec::new();
    let start = Instant::now();
    while start.elapsed() < budget || runs.len() < 5 {
        let run = Instant::now();
        work();
        runs.push(run.elapsed().as_secs_f64() * 1e9);
    }
    runs.sort_by(f64::total_cmp);
    Timing {
        best_ns: runs.first().copied().unwrap_or(f64::NAN),
        median_ns: runs.get(runs.len() / 2).copied().unwrap_or(f64::NAN),
        runs: runs.len(),
    }
}
