//! Generated kernels run on the CPU under sanitizers and agree with the definition of plans, row by row: every step, sink, placement, launch shape and codec.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::cast_possible_truncation)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod gpu_shim;
mod support;

use codec_core::Choice;
use gpu_shim::{ShimQueries, ShimQuery, codec, sorted};
use query_demo::QueryError;
use query_demo::gpu::tuple::tuple_code;
use query_demo::gpu::{Options, Placement, Recode, ShapeOptions};
use query_demo::plan::{
    Aggregate, Build, Groups, Index, Pipeline, Plan, Predicate, ProbeKind, Range, Step, Value, Word,
    WordValue,
};
use query_demo::scan::Tables;
use support::oracle;
use support::plans::{
    ALWAYS, add, aggregate, between, build, by_tiny_and_name, grouped, is_valid, item_build, multiply,
    one_group, probe, random_predicate, sets, subtract,
};
use support::random::Random;
use support::tables::{CUTS, Cut, fact, facts_encoded, items};

fn tables(cut: Cut, choice: Choice) -> Tables {
    Tables::from([
        ("facts".to_owned(), facts_encoded(cut, choice)),
        ("items".to_owned(), items(cut, true)),
        ("repeats".to_owned(), items(cut, false)),
    ])
}

/// Launch shapes by number: threads a thread block, and whether a warp or the thread block decodes a tile.
const SHAPES: [(u32, bool); 5] = [(64, true), (128, false), (256, false), (32, true), (64, false)];

fn options(placement: Placement, shape: usize, tile_size: u32) -> Options {
    let (threads, by_warp) = SHAPES[shape % SHAPES.len()];
    let items = tile_size / if by_warp { 32 } else { threads };
    let shape = ShapeOptions {
        threads_per_block: Some(threads),
        items_per_thread: Some(items),
        min_blocks: None,
        pack_indexes: shape.is_multiple_of(2),
    };
    // Columns keep their codecs: that is what is tested.
    Options { placement, shape, recode: Recode::Never, ..Options::default() }
}

fn filter(predicate: Predicate) -> Step {
    Step::Filter(predicate)
}

fn key_probe(kind: ProbeKind) -> Step {
    probe(0, Value::Input(fact::KEY), is_valid(fact::KEY_VALID), kind)
}

/// Sums of every field of probe 0, and whether it is null.
fn field_words(build: &Build) -> Aggregate {
    let mut words = one_group().words;
    for field in 0..build.fields.len() {
        let value = Value::Field { probe: 0, field };
        words.push(Word { value: WordValue::Sum(value), valid: Predicate::FieldValid { probe: 0, field } });
    }
    Aggregate { words, ..one_group() }
}

/// Plans that are all different: groups of every kind.
fn groupings() -> Vec<Vec<Pipeline>> {
    let some = || vec![filter(between(fact::SMALL, 10, 30))];
    let part = |input, valid, nullable, min, max| (Value::Input(input), valid, nullable, Range { min, max });
    let flag = part(fact::FLAG, is_valid(fact::FLAG_VALID), true, 0, 1);
    let byte = part(fact::BYTE, ALWAYS, false, 0, 255);
    let date = part(fact::DATE, ALWAYS, false, -3000, 21_000);
    let small = part(fact::SMALL, ALWAYS, false, 10, 30);
    let positive =
        Predicate::Less(Value::Input(fact::SMALL), multiply(Value::Input(fact::SMALL), Value::Literal(2)));
    let few_slots = Aggregate { groups: Groups::Hash { slots: 2 }, ..by_tiny_and_name(true) };
    let without = Aggregate { presence: None, ..grouped(vec![flag.clone()], false) };
    vec![
        vec![aggregate(some(), vec![], one_group())],
        // In shared memory, with copies and without; in device memory; places beyond 16 bits.
        vec![aggregate(some(), vec![], grouped(vec![flag.clone()], false))],
        vec![aggregate(some(), vec![], grouped(vec![byte.clone()], false))],
        vec![aggregate(vec![], vec![], grouped(vec![byte.clone(), flag], false))],
        vec![aggregate(some(), vec![], by_tiny_and_name(false))],
        vec![aggregate(some(), vec![], grouped(vec![date, byte], false))],
        vec![aggregate(some(), vec![], by_tiny_and_name(true))],
        vec![aggregate(some(), vec![], few_slots)],
        vec![aggregate(vec![], vec![], without)],
        // The filter that narrows the key comes behind another one that looks at it.
        vec![aggregate(vec![filter(positive), some().remove(0)], vec![], grouped(vec![small], false))],
        // Nothing is left.
        vec![aggregate(vec![filter(between(fact::SMALL, 90, 99))], vec![], by_tiny_and_name(false))],
        vec![aggregate(vec![filter(between(fact::SMALL, 90, 99))], vec![], one_group())],
    ]
}

/// Plans that look up keys: every table, with few slots where they are hashed, and every kind of probe.
fn look_ups() -> Vec<Vec<Pipeline>> {
    let mut plans = Vec::new();
    for (number, entry_width) in [1, 8, 16, 32, 64].into_iter().enumerate() {
        for index in [Index::Direct, Index::Hash { slots: 256 }] {
            let built = item_build(entry_width, index, true);
            let kind = [ProbeKind::Inner, ProbeKind::Semi, ProbeKind::Anti][number % 3];
            let kind = if index == Index::Direct { kind } else { ProbeKind::Inner };
            let words = if kind == ProbeKind::Inner { field_words(&built) } else { one_group() };
            let steps = if entry_width == 16 {
                let computed = subtract(Value::Input(fact::BYTE), Value::Input(fact::SMALL));
                vec![filter(between(fact::SMALL, 5, 20)), probe(0, computed, ALWAYS, kind)]
            } else {
                vec![key_probe(kind)]
            };
            plans.push(vec![
                build("items", vec![filter(between(1, 0, 4))], built),
                aggregate(steps, vec![], words),
            ]);
        }
    }
    // A large table of few keys: their bits are asked first, and entries are fetched when a filter looks at them, or at the end.
    let built = item_build(16, Index::Direct, true);
    let large = Build { domain: Range { min: built.domain.min, max: 40_000 }, ..built };
    let few = build("items", vec![filter(between(1, 0, 4))], large.clone());
    let color = Value::Field { probe: 0, field: 0 };
    let of_color = filter(Predicate::Between { value: color.clone(), low: 1, high: 3 });
    let by_color = grouped(vec![(color, ALWAYS, false, Range { min: 0, max: 6 })], false);
    for (steps, words) in [(vec![], field_words(&large)), (vec![of_color], by_color)] {
        let steps = [vec![key_probe(ProbeKind::Inner), filter(between(fact::SMALL, 5, 20))], steps].concat();
        plans.push(vec![few.clone(), aggregate(steps, vec![], words)]);
    }
    for index in [Index::Direct, Index::Hash { slots: 2048 }] {
        for (entry_width, kind) in [(1, ProbeKind::Semi), (8, ProbeKind::Anti)] {
            let built = build("repeats", vec![], item_build(entry_width, index, false));
            plans.push(vec![built, aggregate(vec![key_probe(kind)], vec![], one_group())]);
        }
    }
    plans
}

/// Plans of several builds and steps: keys that are fields, fields that are filtered and grouped by, builds that probe.
fn chains() -> Vec<Vec<Pipeline>> {
    let field = |probe, field| Value::Field { probe, field };
    let colors = build("items", vec![], item_build(8, Index::Direct, true));
    let weights = build("items", vec![], item_build(16, Index::Hash { slots: 1024 }, true));
    let steps = vec![
        key_probe(ProbeKind::Inner),
        filter(Predicate::Between { value: field(0, 0), low: 1, high: 5 }),
        probe(1, add(field(0, 0), Value::Literal(10)), ALWAYS, ProbeKind::Inner),
        filter(Predicate::Or(vec![
            Predicate::Not(Box::new(Predicate::FieldValid { probe: 1, field: 1 })),
            Predicate::Less(field(1, 1), Value::Input(fact::SMALL)),
        ])),
    ];
    let color = (field(0, 0), ALWAYS, false, Range { min: 0, max: 6 });
    let weight =
        (field(1, 1), Predicate::FieldValid { probe: 1, field: 1 }, true, Range { min: -500, max: 500 });
    let by = |hashed| grouped(vec![color.clone(), weight.clone()], hashed);
    let semi = probe(0, Value::Input(0), ALWAYS, ProbeKind::Semi);
    vec![
        vec![colors.clone(), weights.clone(), aggregate(steps.clone(), vec![], by(false))],
        vec![colors, weights, aggregate(steps, vec![], by(true))],
        vec![
            build("items", vec![filter(between(1, 2, 3))], item_build(1, Index::Direct, true)),
            build("items", vec![semi], item_build(32, Index::Direct, true)),
            aggregate(
                vec![probe(1, Value::Input(fact::KEY), is_valid(fact::KEY_VALID), ProbeKind::Inner)],
                vec![],
                field_words(&item_build(32, Index::Direct, true)),
            ),
        ],
    ]
}

/// Plans of random filters over all inputs.
fn random_filters(seed: u64, count: usize) -> Vec<Vec<Pipeline>> {
    let mut random = Random::new(seed + 900);
    let mut plan = |number: usize| {
        let steps = (0..=random.within(0, 2)).map(|_| filter(random_predicate(&mut random, 3))).collect();
        let by = if number.is_multiple_of(2) { one_group() } else { by_tiny_and_name(number % 4 == 1) };
        vec![aggregate(steps, sets(), by)]
    };
    (0..count).map(&mut plan).collect()
}

/// Runs every plan in two orders of threads and compares with what the plan means.
fn agree(tables: &Tables, plans: Vec<Vec<Pipeline>>, options: &Options) {
    let plans: Vec<Plan> = plans.into_iter().map(|pipelines| Plan { pipelines }).collect();
    let query = |plan: &Plan| ShimQuery::new(plan, tables, options).unwrap();
    let Some(program) = ShimQueries::compile(plans.iter().map(query).collect()) else { return };
    for (number, plan) in plans.iter().enumerate() {
        let expected = oracle::run(plan, tables).unwrap();
        for order in [1, 2] {
            let (found, _) = program.run(number, order).unwrap();
            assert!(
                sorted(&found) == expected,
                "in order {order}, with {options:?}:\n{plan}\n{found:?}\n{expected:?}"
            );
        }
    }
}

/// Every n-th plan from the `first` on.
fn some(plans: Vec<Vec<Pipeline>>, first: usize, step: usize) -> Vec<Vec<Pipeline>> {
    plans.into_iter().skip(first % step).step_by(step).collect()
}

#[test]
fn every_way_to_group_agrees() {
    for (number, cut) in CUTS.into_iter().enumerate() {
        let options = options(Placement::Register, number, cut.tile_size);
        agree(&tables(cut, Choice::Auto), some(groupings(), number, 2), &options);
    }
}

#[test]
fn every_look_up_agrees() {
    for (number, cut) in CUTS.into_iter().enumerate().skip(1).take(3) {
        let options = options(Placement::Register, number + 2, cut.tile_size);
        agree(&tables(cut, Choice::Auto), some(look_ups(), number, 2), &options);
    }
}

#[test]
fn large_tables_of_few_keys_are_looked_up_late() {
    let late = look_ups().into_iter().filter(|pipelines| {
        let plan = Plan { pipelines: pipelines.clone() };
        let text = tuple_code(&plan, 1).unwrap().text;
        text.contains("DirectTable<u32, u16> table0") && text.contains("BitTable<u32> keys0")
    });
    assert_eq!(late.count(), 2);
}

#[test]
fn chains_of_probes_agree() {
    for (number, cut) in CUTS.into_iter().enumerate().skip(2).take(2) {
        let options = options(Placement::Register, number, cut.tile_size);
        agree(&tables(cut, Choice::Auto), chains(), &options);
    }
}

#[test]
fn random_filters_agree() {
    for (number, cut) in CUTS.into_iter().enumerate().skip(2).take(2) {
        let options = options(Placement::Register, number + 1, cut.tile_size);
        agree(&tables(cut, Choice::Auto), random_filters(number as u64, 8), &options);
    }
}

#[test]
fn every_placement_agrees() {
    for (number, placement) in Placement::ALL.into_iter().enumerate() {
        let cut = CUTS[2 + number % 2];
        let options =
            Options { baseline: Some(codec("plain")), ..options(placement, number + 3, cut.tile_size) };
        let mut plans = some(groupings(), number, 5);
        plans.extend(some(look_ups(), number, 7));
        plans.extend(some(chains(), number, 3));
        agree(&tables(cut, Choice::Auto), plans, &options);
    }
}

#[test]
fn every_codec_agrees() {
    for (number, name) in ["plain", "flbp", "rfor", "dfor", "dict", "deflate"].into_iter().enumerate() {
        let cut = CUTS[2 + number % 2];
        let options = options(Placement::Register, number, cut.tile_size);
        let mut plans = some(groupings(), number, 5);
        plans.extend(some(look_ups(), number, 7));
        plans.extend(random_filters(number as u64 + 50, 1));
        agree(&tables(cut, Choice::Prefer(codec(name))), plans, &options);
    }
}

#[test]
fn blocks_that_a_scan_would_rather_have_otherwise_are_encoded_again() {
    for name in ["rfor", "dfor", "dict"] {
        let options = Options { recode: Recode::Slow, ..options(Placement::Register, 1, CUTS[2].tile_size) };
        agree(&tables(CUTS[2], Choice::Prefer(codec(name))), some(groupings(), 0, 5), &options);
    }
}

/// What the kernels report for a plan whose tables or ranges contradict the rows.
fn reported(tables: &Tables, plans: Vec<Vec<Pipeline>>) -> Vec<QueryError> {
    let query = |pipelines: &Vec<Pipeline>| {
        let plan = Plan { pipelines: pipelines.clone() };
        ShimQuery::new(&plan, tables, &Options::default()).unwrap()
    };
    let Some(program) = ShimQueries::compile(plans.iter().map(query).collect()) else { return Vec::new() };
    (0..plans.len()).map(|number| program.run(number, 0).unwrap_err()).collect()
}

#[test]
fn keys_that_repeat_are_reported() {
    let mut plans = Vec::new();
    for index in [Index::Direct, Index::Hash { slots: 1024 }] {
        for entry_width in [1, 8] {
            let repeats = build("repeats", vec![], item_build(entry_width, index, true));
            plans.push(vec![repeats, aggregate(vec![key_probe(ProbeKind::Semi)], vec![], one_group())]);
        }
    }
    for error in reported(&tables(CUTS[2], Choice::Auto), plans) {
        let QueryError::DuplicateKey { table, column } = error else { panic!("{error}") };
        assert!(table == "repeats" && column == "id");
    }
}

#[test]
fn values_outside_what_statistics_say_are_reported() {
    let last = || aggregate(vec![], vec![], one_group());
    let mut plans = Vec::new();
    for index in [Index::Direct, Index::Hash { slots: 1024 }] {
        for entry_width in [1, 16] {
            let built = item_build(entry_width, index, true);
            let domain = Range { min: built.domain.min + 7, max: built.domain.max };
            plans.push(vec![build("items", vec![], Build { domain, ..built })]);
        }
    }
    for field in 0..3 {
        let mut lying = item_build(32, Index::Direct, true);
        lying.fields[field].range.min = lying.fields[field].range.max;
        plans.push(vec![build("items", vec![], lying)]);
    }
    plans.iter_mut().for_each(|plan| plan.push(last()));
    for hashed in [false, true] {
        for (min, max) in [(1, 255), (0, 200)] {
            let byte = (Value::Input(fact::BYTE), ALWAYS, false, Range { min, max });
            plans.push(vec![aggregate(vec![], vec![], grouped(vec![byte], hashed))]);
        }
    }
    for error in reported(&tables(CUTS[2], Choice::Auto), plans) {
        assert!(matches!(error, QueryError::Statistics { .. }), "{error}");
    }
}

#[test]
fn hash_tables_grow_until_all_keys_have_room() {
    let tables = tables(CUTS[3], Choice::Auto);
    let few = Aggregate { groups: Groups::Hash { slots: 2 }, ..by_tiny_and_name(true) };
    let steps = vec![key_probe(ProbeKind::Inner)];
    let built = build("items", vec![], item_build(8, Index::Hash { slots: 2 }, true));
    let plan = Plan { pipelines: vec![built, aggregate(steps, vec![], few)] };
    let query = ShimQuery::new(&plan, &tables, &Options::default()).unwrap();
    let Some(program) = ShimQueries::compile(vec![query]) else { return };
    let (found, again) = program.run(0, 2).unwrap();
    assert!(sorted(&found) == oracle::run(&plan, &tables).unwrap() && again >= 2, "{again}");
}

#[test]
fn tiles_are_left_out_by_their_statistics() {
    let tables = tables(CUTS[3], Choice::Auto);
    // Dates ascend from -3000, one every three rows.
    let steps = |low, high| {
        let parts = vec![between(fact::DATE, low, high), between(fact::TINY, 0, 9)];
        vec![filter(Predicate::And(parts))]
    };
    let plans = [(-2900, -2800), (100_000, 100_001)]
        .map(|(low, high)| Plan { pipelines: vec![aggregate(steps(low, high), vec![], one_group())] });
    let queries: Vec<ShimQuery> =
        plans.iter().map(|plan| ShimQuery::new(plan, &tables, &Options::default()).unwrap()).collect();
    let skipped: Vec<usize> = queries.iter().map(|query| query.tiles_skipped).collect();
    assert_eq!(skipped, [8, 9]);
    let Some(program) = ShimQueries::compile(queries) else { return };
    for (number, plan) in plans.iter().enumerate() {
        assert!(program.run(number, 0).unwrap().0 == oracle::run(plan, &tables).unwrap());
    }
}
