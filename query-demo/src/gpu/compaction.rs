//! Where a pipeline goes over from all rows of a tile to the few that are left.
//!
//! A thread holds `ITEMS` rows of a tile, and code for each is unrolled. Once few rows are left, most of that code does nothing, and what is left of a warp's 1024 rows fits few rows a
//! thread: they change places through shared memory, and the remaining stages run on them. Their inputs are decoded as a whole all the same, and the values of those rows picked.

use crate::gpu::uses::{Stage, Uses};
use crate::plan::{
    Aggregate, Groups, Pipeline, Plan, Predicate, ProbeKind, Sink, Step, Value, WordValue, estimate,
};

/// Whether a pipeline goes over to the few rows that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compaction {
    /// Where that saves instructions, as far as can be estimated.
    #[default]
    Estimated,
    /// Never.
    Never,
    /// Before the stage (filter, probe or sink) with this number, if there is one: for tests.
    Before(usize),
}

/// Instructions a row, roughly: a predicate, a look-up, a part of a group's key, a word added in registers, in shared memory and in device memory; the storing of a decoded value, and
/// that of a row's place or of something that goes with it.
const PREDICATE: f64 = 3.0;
const LOOK_UP: f64 = 9.0;
const KEY: f64 = 3.0;
const ADD: f64 = 3.0;
const ADD_SHARED: f64 = 8.0;
const ADD_GLOBAL: f64 = 4.0;
const STORE: f64 = 1.1;
const TAKE: f64 = 4.0;
const CARRY: f64 = 1.0;
/// More rows than this part of a tile rarely fit the places that there are for them.
const MOST_LEFT: f64 = 0.08;
/// Instructions a row that must be saved: estimates are rough.
const LEAST_SAVED: f64 = 5.0;

/// The stage before which a pipeline goes over to the rows that are left; the sink is the stage behind all. `None`: not at all.
#[must_use]
pub fn compact_before(
    plan: &Plan,
    pipeline: &Pipeline,
    stages: &[Stage<'_>],
    uses: &Uses,
    compaction: Compaction,
) -> Option<usize> {
    match compaction {
        Compaction::Never => None,
        Compaction::Before(stage) => (1..=stages.len()).contains(&stage).then_some(stage),
        Compaction::Estimated => {
            let mut left = 1.0;
            let mut best = None;
            for (number, stage) in stages.iter().enumerate() {
                left *= kept(plan, pipeline, stage);
                let saved = saved(pipeline, stages, uses, number + 1);
                let better = best.is_none_or(|(_, most)| saved > most);
                if left <= MOST_LEFT && saved >= LEAST_SAVED && better {
                    best = Some((number + 1, saved));
                }
            }
            best.map(|(stage, _)| stage)
        }
    }
}

/// The fraction of rows that a stage keeps.
fn kept(plan: &Plan, pipeline: &Pipeline, stage: &Stage<'_>) -> f64 {
    match stage {
        Stage::Filter(predicate) => of_predicate(plan, pipeline, predicate),
        // Keys are taken to be spread evenly over the table that was built from, before its filters.
        Stage::Probe(_, probe) => {
            let found = plan.pipelines.get(probe.build).map_or(1.0, |build| of_pipeline(plan, build));
            if probe.kind == ProbeKind::Anti { 1.0 - found } else { found }
        }
    }
}

fn of_pipeline(plan: &Plan, pipeline: &Pipeline) -> f64 {
    let of_step = |step: &Step| match step {
        Step::Filter(predicate) => of_predicate(plan, pipeline, predicate),
        Step::Probe(probe) => kept(plan, pipeline, &Stage::Probe(0, probe)),
    };
    pipeline.steps.iter().map(of_step).product()
}

fn of_predicate(plan: &Plan, pipeline: &Pipeline, predicate: &Predicate) -> f64 {
    estimate(predicate, &pipeline.sets, &|value: &Value| Some(plan.range(pipeline, value)))
}

/// Instructions a row that are saved if the stages from `first` on see few rows.
fn saved(pipeline: &Pipeline, stages: &[Stage<'_>], uses: &Uses, first: usize) -> f64 {
    let late = stages.iter().skip(first).map(|stage| match stage {
        Stage::Filter(_) => PREDICATE,
        Stage::Probe(..) => LOOK_UP,
    });
    let keys = uses.keys.iter().filter(|&&known| known >= first).map(|_| KEY);
    let words = match &pipeline.sink {
        Sink::Aggregate(aggregate) => aggregate.words.iter().map(|word| add(aggregate, &word.value)).sum(),
        Sink::Build(_) => LOOK_UP,
    };
    let spans = || uses.inputs.iter().chain(&uses.probes).flatten();
    let loads = uses.inputs.iter().flatten().filter(|span| span.0 >= first).map(|_| STORE);
    let carried = spans().filter(|span| span.0 < first && span.1 >= first).count();
    let has_index = uses.keys.iter().any(|&known| known < first);
    let carried = if has_index { carried + 1 } else { carried };
    let cost = loads.sum::<f64>() + TAKE + std::iter::repeat_n(CARRY, carried).sum::<f64>();
    late.sum::<f64>() + keys.sum::<f64>() + words - cost
}

fn add(aggregate: &Aggregate, value: &WordValue) -> f64 {
    match aggregate.groups {
        Groups::One if *value == WordValue::Count => 0.0,
        Groups::One => ADD,
        _ if crate::gpu::tuple::is_shared(aggregate) => ADD_SHARED,
        _ => ADD_GLOBAL,
    }
}
