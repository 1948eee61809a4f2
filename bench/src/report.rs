//! Rows of results, and the machine they are from.

use std::fs;

use serde::Serialize;

use crate::clock::Timing;

/// One measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Who was measured: cb2t, or a peer and its version.
    pub who: String,
    /// The codec or mode.
    pub codec: String,
    /// The data.
    pub data: String,
    /// What was done.
    pub what: String,
    /// Nanoseconds of the fastest run.
    pub best_ns: f64,
    /// Nanoseconds of the run in the middle.
    pub median_ns: f64,
    /// Runs.
    pub runs: usize,
    /// Gigabytes of values a second in the fastest run; absent where it is the time that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gigabytes_per_second: Option<f64>,
    /// Uncompressed over compressed bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

impl Row {
    /// A measurement of `value_bytes` of values.
    #[must_use]
    pub fn speed(who: &str, codec: &str, data: &str, what: &str, timing: Timing, value_bytes: usize) -> Self {
        let gigabytes_per_second = Some(timing.gigabytes_per_second(value_bytes));
        Self { gigabytes_per_second, ..Self::time(who, codec, data, what, timing) }
    }

    /// A measurement of a time.
    #[must_use]
    pub fn time(who: &str, codec: &str, data: &str, what: &str, timing: Timing) -> Self {
        Self {
            who: who.into(),
            codec: codec.into(),
            data: data.into(),
            what: what.into(),
            best_ns: timing.best_ns,
            median_ns: timing.median_ns,
            runs: timing.runs,
            gigabytes_per_second: None,
            ratio: None,
        }
    }

    /// With the compression ratio.
    #[must_use]
    pub fn with_ratio(self, ratio: f64) -> Self {
        Self { ratio: Some(ratio), ..self }
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:18} {:10} {:32} {:14} ", self.who, self.codec, self.data, self.what)?;
        match self.gigabytes_per_second {
            Some(speed) => write!(formatter, "{speed:8.2} GB/s")?,
            None => write!(formatter, "{:8.3} ms  ", self.best_ns / 1e6)?,
        }
        self.ratio.map_or(Ok(()), |ratio| write!(formatter, "  ratio {ratio:.2}"))
    }
}

/// All rows of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The command that was run.
    pub command: String,
    /// When, in seconds since 1970.
    pub unix_time: u64,
    /// The processor's name.
    pub machine: String,
    /// Logical cores.
    pub cores: usize,
    /// Whether more than one thread was at work.
    pub threads: &'static str,
    /// The measurements.
    pub rows: Vec<Row>,
}

impl Report {
    /// A report of `rows` from this machine.
    #[must_use]
    pub fn new(rows: Vec<Row>) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            command: std::env::args().collect::<Vec<_>>().join(" "),
            unix_time: now.map(|now| now.as_secs()).unwrap_or_default(),
            machine: processor().unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            threads: "one, but for the files",
            rows,
        }
    }
}

/// The processor's name and the vector instructions that matter here, where the system tells.
fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let flags = field("flags").unwrap_or_default();
    let wide = ["avx2", "avx512f"].into_iter().filter(|name| flags.split(' ').any(|flag| flag == *name));
    Some(format!("{} ({})", field("model name")?, wide.collect::<Vec<_>>().join(", ")))
}
