//! Queries on devices: columns are uploaded once and kept, kernels compiled once, then a query runs as often as one likes.

use std::ops::Range;
use std::time::Instant;

use gpu_decode::Device;

use crate::QueryError;
use crate::gpu::check::check;
use crate::gpu::options::{Options, Shape};
use crate::gpu::part::{Launched, PreparedPart};
use crate::gpu::presence::Complete;
use crate::gpu::store::Store;
use crate::plan::{GroupWords, Plan, Sink};
use crate::scan::{Tables, table};

/// The devices that queries run on, and the columns that are there.
#[derive(Debug)]
pub struct Gpu {
    devices: Vec<Device>,
    store: Store,
}

impl Gpu {
    /// Queries on these devices, at least one.
    ///
    /// # Errors
    /// No device.
    pub fn new(devices: Vec<Device>) -> Result<Self, QueryError> {
        if devices.is_empty() {
            return Err(QueryError::Options { reason: "no devices to run queries on".to_owned() });
        }
        Ok(Self { devices, store: Store::default() })
    }

    /// The devices.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The columns on the devices.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// Where the time of a run went, and what of a query is on the devices. Times of several devices are those of the slowest.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct GpuProfile {
    /// Milliseconds that reading, proving and uploading columns took when the query was prepared; columns that were there take none.
    pub upload_ms: f64,
    /// Milliseconds from the first compilation to the last loaded program.
    pub compile_ms: f64,
    /// Each program.
    pub programs: Vec<ProgramProfile>,
    /// Milliseconds of decoding columns beforehand.
    pub decode_ms: f64,
    /// Milliseconds of each kernel and of the filling before, by the device's clock, in order, as in the first run: later ones are not marked in between, and builds run side by side.
    pub kernels: Vec<KernelProfile>,
    /// Milliseconds of all kernels, from the first fill to the last kernel's end; in runs after the first with the copy of the results' beginning.
    pub kernels_ms: f64,
    /// Milliseconds from the first launch until the result was on the host.
    pub total_ms: f64,
    /// Bytes of the tiles that were not left out, of all inputs: at most these were read.
    pub tile_bytes: u64,
    /// Tiles of the scanned tables.
    pub tiles: u64,
    /// Tiles left out by their statistics.
    pub tiles_skipped: u64,
    /// Bytes of device memory for columns.
    pub column_bytes: u64,
    /// Bytes of device memory for tables, groups and results.
    pub table_bytes: u64,
    /// Times that the query ran again with larger hash tables.
    pub runs_again: u32,
    /// Devices that took part.
    pub devices: u32,
}

/// A program of a query.
#[derive(Debug, Clone, serde::Serialize)]
pub struct ProgramProfile {
    /// The pipeline.
    pub pipeline: usize,
    /// The launch shape.
    pub shape: Shape,
    /// Compiled or read from disk when it was loaded first.
    pub origin: gpu_decode::program::Origin,
    /// Milliseconds that it took when it was loaded first.
    pub ms: f64,
    /// Registers, spills, occupancy.
    pub resources: gpu_decode::program::Resources,
}

/// A kernel of a run.
#[derive(Debug, Clone, serde::Serialize)]
pub struct KernelProfile {
    /// Its name: `fill`, `pipeline N` or `compact`.
    pub name: String,
    /// Milliseconds by the device's clock.
    pub ms: f64,
}

/// A query that can run: its columns are on the devices, its kernels compiled.
#[derive(Debug)]
pub struct Prepared {
    plan: Complete,
    parts: Vec<PreparedPart>,
    upload_ms: f64,
    compile_ms: f64,
}

impl Prepared {
    /// Uploads what is not there yet and compiles what was not compiled before. The row groups of the table that is aggregated are spread over the devices; all else is on each.
    ///
    /// # Errors
    /// A plan that contradicts itself or that kernels cannot run, columns that cannot be read or are damaged, too little device memory, no NVRTC, or options that do not fit.
    pub fn new(gpu: &Gpu, plan: &Plan, tables: &Tables, options: &Options) -> Result<Self, QueryError> {
        let complete = Complete::new(plan);
        let plan = &complete.plan;
        check(plan)?;
        let name = plan.pipelines.last().map(|pipeline| pipeline.table.as_str()).unwrap_or_default();
        let row_groups = table(tables, name)?.row_groups();
        let shares = shares(row_groups, gpu.devices.len());
        let start = Instant::now();
        let mut parts = on_all(gpu.devices.iter().zip(shares), |(device, share)| {
            PreparedPart::upload(device, &gpu.store, plan, tables, options, share)
        })?;
        let upload_ms = milliseconds(start);
        let start = Instant::now();
        on_all(parts.iter_mut(), |part| part.compile(plan, options))?;
        Ok(Self { parts, upload_ms, compile_ms: milliseconds(start), plan: complete })
    }

    /// Runs the query.
    ///
    /// # Errors
    /// Whatever a kernel reports (a key that occurs twice, values that contradict their statistics), more groups than fit, or an error of a device.
    pub fn run(&mut self) -> Result<(GroupWords, GpuProfile), QueryError> {
        let plan = &self.plan.plan;
        let mut waiting: Vec<&mut PreparedPart> = self.parts.iter_mut().collect();
        let (mut runs, mut runs_again, mut start) = (Vec::new(), 0, Instant::now());
        while !waiting.is_empty() {
            start = Instant::now();
            // All devices are asked before one is waited for.
            let launched: Vec<Launched> =
                waiting.iter_mut().map(|part| part.launch()).collect::<Result<_, _>>()?;
            let mut again = Vec::new();
            for (part, launched) in waiting.into_iter().zip(&launched) {
                match part.collect(plan, launched, runs_again)? {
                    Some(run) => runs.push(run),
                    None => again.push(part),
                }
            }
            waiting = again;
            runs_again += 1;
        }
        let mut profile = GpuProfile {
            upload_ms: self.upload_ms,
            compile_ms: self.compile_ms,
            total_ms: milliseconds(start),
            devices: u32::try_from(self.parts.len()).unwrap_or(u32::MAX),
            ..GpuProfile::default()
        };
        self.parts.iter().for_each(|part| part.describe(&mut profile));
        let mut groups = Vec::new();
        for (found, times) in runs {
            groups.push(found);
            profile.runs_again = profile.runs_again.max(times.runs_again);
            // The slowest device's times.
            if times.kernels_ms + times.decode_ms >= profile.kernels_ms + profile.decode_ms {
                profile.decode_ms = times.decode_ms;
                profile.kernels_ms = times.kernels_ms;
                profile.kernels = times.kernels;
            }
        }
        Ok((self.plan.shown(merge(plan, groups)), profile))
    }

    /// The programs as they are compiled for the first device: of each pipeline, then the one that collects groups.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.parts.first().into_iter().flat_map(PreparedPart::sources)
    }
}

/// The groups that several devices found as those of one.
fn merge(plan: &Plan, mut parts: Vec<GroupWords>) -> GroupWords {
    match plan.pipelines.last().map(|pipeline| &pipeline.sink) {
        Some(Sink::Aggregate(aggregate)) if parts.len() > 1 => aggregate.merge(parts),
        _ => parts.pop().unwrap_or_default(),
    }
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// Does `work` for all `items`, each on a thread of its own where there are several.
fn on_all<I: Send, R: Send>(
    items: impl Iterator<Item = I>,
    work: impl Fn(I) -> Result<R, QueryError> + Sync,
) -> Result<Vec<R>, QueryError> {
    let mut items: Vec<I> = items.collect();
    if items.len() <= 1 {
        return items.pop().map(&work).into_iter().collect();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(move || work(item))).collect();
        // A panic is a bug and goes on here.
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Row groups for each of `count` devices: neighbours, of about as many rows each. Devices for which nothing is left get no share.
fn shares(row_groups: &[u64], count: usize) -> Vec<Range<usize>> {
    let rows: u64 = row_groups.iter().sum();
    let mut shares = Vec::new();
    let (mut start, mut before) = (0, 0_u64);
    for (index, group_rows) in row_groups.iter().enumerate() {
        before = before.saturating_add(*group_rows);
        let due = u128::from(rows) * (shares.len() as u128 + 1) / count.max(1) as u128;
        if u128::from(before) >= due && shares.len() + 1 < count {
            shares.push(start..index + 1);
            start = index + 1;
        }
    }
    if start < row_groups.len() || shares.is_empty() {
        shares.push(start..row_groups.len());
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_all_row_groups_once() {
        for count in 1..6 {
            for row_groups in
                [vec![], vec![5], vec![1; 10], vec![100, 1, 1, 1], vec![1, 1, 1, 100], vec![0; 4]]
            {
                let shares = shares(&row_groups, count);
                assert!(!shares.is_empty() && shares.len() <= count);
                let all: Vec<usize> = shares.iter().cloned().flatten().collect();
                assert_eq!(all, (0..row_groups.len()).collect::<Vec<_>>());
            }
        }
        assert_eq!(shares(&[1; 8], 4), [0..2, 2..4, 4..6, 6..8]);
    }
}
