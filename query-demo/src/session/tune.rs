//! The launch shape that was fastest for a query's kernels on a device, found by trying and kept on disk beside the compiled programs.

use gpu_decode::{Device, cache};

use crate::QueryError;
use crate::gpu::tuple::tuple_code;
use crate::gpu::{Gpu, Options, Prepared, ShapeOptions};
use crate::plan::Plan;
use crate::scan::Tables;

/// Shapes that are tried: threads a thread block, and thread blocks that a multiprocessor must be able to hold.
const CANDIDATES: [(u32, u32); 6] = [(512, 1), (768, 1), (256, 2), (256, 3), (128, 4), (128, 6)];
/// Runs of which the fastest counts.
const RUNS: usize = 3;

/// Tries the candidates and prepares the query in the best, which is remembered.
pub fn prepare(gpu: &Gpu, plan: &Plan, tables: &Tables, options: &Options) -> Result<Prepared, QueryError> {
    let mut best: Option<(f64, ShapeOptions)> = None;
    for (threads_per_block, min_blocks) in CANDIDATES {
        let shape = ShapeOptions {
            threads_per_block: Some(threads_per_block),
            min_blocks: Some(min_blocks),
            ..options.shape
        };
        let milliseconds = match time(gpu, plan, tables, &Options { shape, ..options.clone() }) {
            Ok(milliseconds) => milliseconds,
            // A shape that does not fit this query is none of its candidates.
            Err(QueryError::Options { .. }) => continue,
            Err(error) => return Err(error),
        };
        if best.is_none_or(|(least, _)| milliseconds < least) {
            best = Some((milliseconds, shape));
        }
    }
    let shape = best.map_or(options.shape, |(_, shape)| shape);
    if let (Some(key), Ok(text)) = (key(gpu, plan, options), serde_json::to_vec(&shape)) {
        cache::write(&key, &text);
    }
    Prepared::new(gpu, plan, tables, &Options { shape, ..options.clone() })
}

fn time(gpu: &Gpu, plan: &Plan, tables: &Tables, options: &Options) -> Result<f64, QueryError> {
    let mut prepared = Prepared::new(gpu, plan, tables, options)?;
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        least = least.min(prepared.run()?.1.total_ms);
    }
    Ok(least)
}

/// `options` with the shape that was found for such a query before, unless they ask for one.
pub fn remembered(gpu: &Gpu, plan: &Plan, options: &Options) -> Options {
    let asked = options.shape != ShapeOptions::default();
    let known = key(gpu, plan, options).filter(|_| !asked).and_then(|key| cache::read(&key));
    let shape = known.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or(options.shape);
    Options { shape, ..options.clone() }
}

/// The kernels' tuple code stands for the query: literals are not part of it.
fn key(gpu: &Gpu, plan: &Plan, options: &Options) -> Option<String> {
    let mut parts: Vec<String> =
        gpu.devices().iter().map(|device: &Device| device.info().name.clone()).collect();
    for pipeline in 0..plan.pipelines.len() {
        parts.push(tuple_code(plan, pipeline).ok()?.text);
    }
    Some(cache::key("launch shape", options.placement.name(), &parts))
}
