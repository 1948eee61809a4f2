//! Generated kernels run on the CPU under sanitizers and agree with the slow, obvious executor.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::cast_possible_truncation)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod gpu_shim;
mod support;

use gpu_shim::{ShimQueries, ShimQuery};
use query_demo::gpu::Options;
use query_demo::plan::{Index, Plan, ProbeKind, Step, Value};
use query_demo::scan::Tables;
use support::oracle;
use support::plans::{aggregate, between, build, by_tiny_and_name, is_valid, item_build, one_group, probe};
use support::tables::{CUTS, Cut, fact, facts, items};

fn tables(cut: Cut) -> Tables {
    Tables::from([
        ("facts".to_owned(), facts(cut)),
        ("items".to_owned(), items(cut, true)),
        ("pairs".to_owned(), items(cut, false)),
    ])
}

fn agree(tables: &Tables, plans: Vec<(String, Plan)>, options: &Options) {
    let queries = plans
        .iter()
        .map(|(name, plan)| ShimQuery::new(name.clone(), plan, tables, options).unwrap())
        .collect();
    let Some(program) = ShimQueries::compile(queries) else { return };
    for (number, (name, plan)) in plans.iter().enumerate() {
        let expected = oracle::run(plan, tables);
        for order in 0..3 {
            let found = program.run(number, order).map(|(groups, _)| groups);
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{name} in order {order}\n{plan}");
        }
    }
}

#[test]
fn first() {
    for cut in CUTS {
        let tables = tables(cut);
        let filter = vec![Step::Filter(between(fact::SMALL, 3, 40))];
        let one = Plan { pipelines: vec![aggregate(filter.clone(), vec![], one_group())] };
        let dense = Plan { pipelines: vec![aggregate(filter.clone(), vec![], by_tiny_and_name(false))] };
        let hash = Plan { pipelines: vec![aggregate(filter, vec![], by_tiny_and_name(true))] };
        let mut plans = vec![("one".to_owned(), one), ("dense".to_owned(), dense), ("hash".to_owned(), hash)];
        for index in [Index::Direct, Index::Hash { slots: 64 }] {
            for width in [1, 8, 16, 32, 64] {
                for kind in [ProbeKind::Inner, ProbeKind::Semi, ProbeKind::Anti] {
                    let step = probe(0, Value::Input(fact::KEY), is_valid(fact::KEY_VALID), kind);
                    plans.push((
                        format!("{index:?} {width} {kind:?}"),
                        Plan {
                            pipelines: vec![
                                build("items", vec![], item_build(width, index, true)),
                                aggregate(vec![step], vec![], one_group()),
                            ],
                        },
                    ));
                }
            }
        }
        agree(&tables, plans, &Options::default());
    }
}
