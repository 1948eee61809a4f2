//! The kernels that the Star Schema Benchmark's queries generate, run on the CPU under sanitizers: over codecs, placements and launch shapes by turns, against the pipelines on the CPU.
#![cfg(feature = "sql")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::cast_possible_truncation)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, dead_code, missing_docs)]

#[path = "support/generated.rs"]
mod generated;
mod gpu_shim;

use codec_core::Choice;
use generated::session;
use gpu_shim::{ShimQueries, ShimQuery, codec, sorted};
use query_demo::gpu::{Options, Placement, Recode, ShapeOptions};
use query_demo::ssb::QUERIES;
use query_demo::{Session, cpu};

/// Threads a thread block, and values of a tile of 1024 a thread: a warp or the thread block decodes a tile.
const SHAPES: [(u32, u32); 3] = [(128, 32), (64, 32), (128, 8)];

/// Runs the queries, the n-th with the n-th of the options.
fn agree(session: &Session, options: impl Fn(usize) -> Options) {
    let compiled: Vec<_> = QUERIES.iter().map(|(_, sql)| session.compile(sql).unwrap()).collect();
    let queries = compiled.iter().enumerate();
    let queries = queries
        .map(|(number, query)| ShimQuery::new(&query.plan, session.tables(), &options(number)).unwrap());
    let Some(program) = ShimQueries::compile(queries.collect()) else { return };
    let mut groups = 0;
    for (number, query) in compiled.iter().enumerate() {
        let (expected, _) = cpu::run(&query.plan, session.tables()).unwrap();
        let (found, _) = program.run(number, 1 + number as u64 % 2).unwrap();
        assert_eq!(sorted(&found), sorted(&expected), "{}, with {:?}", QUERIES[number].0, options(number));
        groups += found.indexes.len();
    }
    assert!(groups > 60, "{groups} groups are too few to tell anything");
}

#[test]
fn queries_agree_over_codecs_placements_and_launch_shapes() {
    let prefer = |name| Choice::Prefer(codec(name));
    for (turn, choice) in
        [Choice::Auto, prefer("flbp"), prefer("rfor"), prefer("plain")].into_iter().enumerate()
    {
        agree(&session(0.005, choice), |number| {
            let (threads, items) = SHAPES[(number + turn) % SHAPES.len()];
            Options {
                placement: Placement::ALL[(number + turn) % Placement::ALL.len()],
                shape: ShapeOptions {
                    threads_per_block: Some(threads),
                    // The default of `shared` is its own.
                    items_per_thread: Some(items).filter(|_| threads == 128),
                    min_blocks: None,
                    pack_indexes: number % 2 == 0,
                },
                baseline: Some(codec("plain")),
                recode: if number % 4 == 3 { Recode::Slow } else { Recode::Never },
                ..Options::default()
            }
        });
    }
}
