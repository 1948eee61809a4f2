//! Tiles of a table handed to threads: row groups a few at a time, each in runs of tiles.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rayon::prelude::*;

use super::PipelineProfile;
use super::row_group::{RowGroup, RowGroupBytes, Tile};
use super::stage::Stage;
use super::worker::Worker;
use crate::QueryError;

/// Tiles that a thread takes at once: enough that taking them costs nothing, few enough that all threads are busy to the end.
const RUN_TILES: u64 = 64;

/// Where the rows that are left of tiles go.
pub trait Consumer: Sync {
    /// What each thread keeps.
    type Local: Send;

    /// What a thread begins with.
    fn local(&self) -> Self::Local;

    /// Inputs that it needs.
    fn needs(&self) -> &[usize];

    /// Takes the rows that are left of a tile, at least one.
    ///
    /// # Errors
    /// Rows that it cannot take.
    fn consume(
        &self,
        stage: &Stage<'_>,
        worker: &mut Worker,
        local: &mut Self::Local,
    ) -> Result<(), QueryError>;
}

/// What a thread works with.
struct Thread<L> {
    worker: Worker,
    local: L,
}

/// Sends every tile of the table through the pipeline's steps, and what is left to `consumer`. Memory: a row group's blocks for each thread, and what the consumer keeps.
///
/// # Errors
/// The first that occurs on any thread.
pub fn scan<C: Consumer>(
    stage: &Stage<'_>,
    consumer: &C,
) -> Result<(Vec<C::Local>, PipelineProfile), QueryError> {
    let start = Instant::now();
    let tests = stage.pipeline.row_tests();
    let idle = Mutex::new(Vec::new());
    let counts = Counts::default();
    let row_groups: Vec<(u32, u64)> =
        (0..).zip(stage.table.row_groups().iter().copied()).filter(|&(_, rows)| rows > 0).collect();
    for some in row_groups.chunks(rayon::current_num_threads().max(1)) {
        let bytes: Vec<RowGroupBytes<'_>> = some
            .par_iter()
            .map(|&(row_group, rows)| read(stage, &tests, row_group, rows))
            .collect::<Result<_, _>>()?;
        let proven: Vec<RowGroup<'_>> =
            bytes.iter().map(|bytes| bytes.prove(stage)).collect::<Result<_, _>>()?;
        counts.bytes_read.fetch_add(bytes.iter().map(RowGroupBytes::bytes_read).sum(), Ordering::Relaxed);
        let runs: Vec<(&RowGroup<'_>, u64)> = proven
            .iter()
            .flat_map(|row_group| {
                let starts = (0..row_group.tile_count().div_ceil(RUN_TILES)).map(|run| run * RUN_TILES);
                starts.map(move |first_tile| (row_group, first_tile))
            })
            .collect();
        runs.into_par_iter().with_max_len(1).try_for_each(|(row_group, first_tile)| {
            let taken = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut thread =
                taken.unwrap_or_else(|| Thread { worker: Worker::new(stage), local: consumer.local() });
            let tiles = first_tile..row_group.tile_count().min(first_tile + RUN_TILES);
            for index in tiles {
                run_tile(stage, consumer, &mut thread, Tile { row_group, index }, &tests, &counts)?;
            }
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
            Ok::<_, QueryError>(())
        })?;
    }
    let threads = idle.into_inner().unwrap_or_else(PoisonError::into_inner);
    let profile = PipelineProfile {
        table: stage.name.to_owned(),
        milliseconds: start.elapsed().as_secs_f64() * 1e3,
        bytes_read: counts.bytes_read.into_inner(),
        tiles_skipped: counts.tiles_skipped.into_inner(),
        tiles_scanned: counts.tiles_scanned.into_inner(),
        rows_left: counts.rows_left.into_inner(),
    };
    Ok((threads.into_iter().map(|thread| thread.local).collect(), profile))
}

/// Of all threads.
#[derive(Debug, Default)]
struct Counts {
    bytes_read: AtomicU64,
    tiles_skipped: AtomicU64,
    tiles_scanned: AtomicU64,
    rows_left: AtomicU64,
}

/// Reads the inputs that have tests first: where these exclude every tile, the others need not be read.
fn read<'t>(
    stage: &Stage<'t>,
    tests: &[(usize, i64, i64)],
    row_group: u32,
    rows: u64,
) -> Result<RowGroupBytes<'t>, QueryError> {
    let is_tested = |input| tests.iter().any(|&(tested, ..)| tested == input);
    let mut bytes = RowGroupBytes::new(stage, row_group, rows);
    bytes.read(stage, is_tested)?;
    let excluded = {
        let proven = bytes.prove(stage)?;
        !tests.is_empty() && (0..proven.tile_count()).all(|tile| proven.is_excluded(stage, tests, tile))
    };
    if !excluded {
        bytes.read(stage, |input| !is_tested(input))?;
    }
    Ok(bytes)
}

fn run_tile<C: Consumer>(
    stage: &Stage<'_>,
    consumer: &C,
    thread: &mut Thread<C::Local>,
    tile: Tile<'_>,
    tests: &[(usize, i64, i64)],
    counts: &Counts,
) -> Result<(), QueryError> {
    if tile.row_group.is_excluded(stage, tests, tile.index) {
        counts.tiles_skipped.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    }
    counts.tiles_scanned.fetch_add(1, Ordering::Relaxed);
    let rows = thread.worker.run_steps(stage, tile)?;
    if rows == 0 {
        return Ok(());
    }
    counts.rows_left.fetch_add(rows as u64, Ordering::Relaxed);
    thread.worker.decode(stage, tile, consumer.needs())?;
    consumer.consume(stage, &mut thread.worker, &mut thread.local)
}
