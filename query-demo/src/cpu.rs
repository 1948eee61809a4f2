//! Plans on the CPU: a tile at a time, through loops over decoded values.
//!
//! Each thread takes runs of tiles of a row group. A tile goes through the pipeline's steps in buffers that stay in the nearest cache; an input is decoded when a step needs it and rows
//! are left; which are left is a list of their places in the tile. What is common has loops of its own, and everything else is evaluated over integers of 64 bits.
//!
//! | module | idea |
//! | --- | --- |
//! | `scan` | tiles handed to threads |
//! | `row_group` | the blocks of one row group, and what their statistics exclude |
//! | `stage` | a pipeline with all that it refers to |
//! | `worker` | one tile on its way through the steps |
//! | `rows` | which rows are left |
//! | `lanes` | one decoded buffer |
//! | `filter`, `probe` | steps whose value is an input |
//! | `evaluate`, `kernels` | any expression |
//! | `table`, `build` | tables for probes |
//! | `groups`, `aggregate` | groups and their words |

mod aggregate;
mod build;
mod evaluate;
mod filter;
mod groups;
mod kernels;
pub(crate) mod lanes;
mod probe;
mod row_group;
mod rows;
mod scan;
mod stage;
mod table;
mod worker;

use serde::Serialize;

use self::aggregate::Aggregator;
use self::build::Builder;
use self::groups::LocalGroups;
use self::stage::Stage;
use self::table::JoinTable;
use crate::QueryError;
use crate::plan::{Aggregate, GroupWords, Plan, Sink};
use crate::scan::{Tables, table};

/// What running a plan took.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CpuProfile {
    /// Wall time of the builds.
    pub build_milliseconds: f64,
    /// Wall time of the aggregation.
    pub aggregate_milliseconds: f64,
    /// Each pipeline, in the plan's order.
    pub pipelines: Vec<PipelineProfile>,
}

/// What running a pipeline took.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PipelineProfile {
    /// The table scanned.
    pub table: String,
    /// Wall time.
    pub milliseconds: f64,
    /// Bytes of blocks that were read.
    pub bytes_read: u64,
    /// Tiles that statistics excluded.
    pub tiles_skipped: u64,
    /// Tiles that were looked at.
    pub tiles_scanned: u64,
    /// Rows that were left after the last step.
    pub rows_left: u64,
}

/// Runs a plan on the threads of rayon's pool that it is called from.
///
/// # Errors
/// A table that is missing or damaged, values that contradict its statistics, a key that repeats where it must not, or a plan that refers to what is not there.
pub fn run(plan: &Plan, tables: &Tables) -> Result<(GroupWords, CpuProfile), QueryError> {
    let mut profile = CpuProfile::default();
    let mut built: Vec<JoinTable> = Vec::new();
    for pipeline in &plan.pipelines {
        let stage = Stage::new(plan, pipeline, table(tables, &pipeline.table)?, &built)?;
        match &pipeline.sink {
            Sink::Build(build) => {
                let builder = Builder::new(&stage, build)?;
                let (_, pipeline_profile) = scan::scan(&stage, &builder)?;
                profile.build_milliseconds += pipeline_profile.milliseconds;
                profile.pipelines.push(pipeline_profile);
                built.push(builder.finish());
            }
            Sink::Aggregate(aggregate) => {
                let (groups, pipeline_profile) = run_aggregate(&stage, aggregate)?;
                profile.aggregate_milliseconds = pipeline_profile.milliseconds;
                profile.pipelines.push(pipeline_profile);
                return Ok((groups, profile));
            }
        }
    }
    Err(QueryError::unsupported("a plan that does not end in an aggregation"))
}

fn run_aggregate(
    stage: &Stage<'_>,
    aggregate: &Aggregate,
) -> Result<(GroupWords, PipelineProfile), QueryError> {
    let start = std::time::Instant::now();
    let (locals, mut profile) = scan::scan(stage, &Aggregator::new(stage, aggregate)?)?;
    let locals = if locals.is_empty() { vec![LocalGroups::new(aggregate)] } else { locals };
    let parts = locals.into_iter().map(|local| local.finish(aggregate)).collect();
    let groups = aggregate.merge(parts);
    profile.milliseconds = start.elapsed().as_secs_f64() * 1e3;
    Ok((groups, profile))
}
