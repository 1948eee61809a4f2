//! The CPU executor agrees with the definition of plans, row by row.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod support;

use query_demo::cpu;
use query_demo::plan::{
    Aggregate, Build, GroupWords, Groups, Index, Pipeline, Plan, Predicate, ProbeKind, Range, Step, Value,
};
use query_demo::scan::Tables;
use query_demo::{QueryError, cpu::CpuProfile};

use support::oracle;
use support::plans::*;
use support::random::Random;
use support::tables::{CUTS, Cut, KEYS, fact, facts, items};

fn tables(cut: Cut) -> Tables {
    Tables::from([
        ("facts".to_owned(), facts(cut)),
        ("items".to_owned(), items(cut, true)),
        ("repeats".to_owned(), items(cut, false)),
    ])
}

/// Both executors' groups, which agree.
fn agreed(pipelines: Vec<Pipeline>, tables: &Tables) -> (GroupWords, CpuProfile) {
    let plan = Plan { pipelines };
    let expected = oracle::run(&plan, tables).unwrap();
    let (found, profile) = cpu::run(&plan, tables).unwrap();
    assert!(found == expected, "{plan}");
    (found, profile)
}

fn filter(predicate: Predicate) -> Step {
    Step::Filter(predicate)
}

#[test]
fn every_way_to_group_agrees() {
    for cut in CUTS {
        let tables = tables(cut);
        agreed(vec![aggregate(vec![], vec![], one_group())], &tables);
        let steps = || vec![filter(between(fact::SMALL, 10, 30))];
        for hashed in [false, true] {
            agreed(vec![aggregate(steps(), vec![], by_tiny_and_name(hashed))], &tables);
        }
        // Too many slots to keep for each thread.
        let date = (Value::Input(fact::DATE), ALWAYS, false, Range { min: -3000, max: 21_000 });
        let byte = (Value::Input(fact::BYTE), ALWAYS, false, Range { min: 0, max: 255 });
        agreed(vec![aggregate(steps(), vec![], grouped(vec![date, byte], false))], &tables);
    }
}

#[test]
fn groups_are_found_without_a_presence() {
    let tables = tables(CUTS[2]);
    let without = Aggregate { presence: None, ..by_tiny_and_name(false) };
    agreed(vec![aggregate(vec![], vec![], without)], &tables);
}

#[test]
fn every_test_of_an_input_agrees() {
    for cut in CUTS.into_iter().filter(|cut| cut.rows < 8000) {
        let tables = tables(cut);
        for input in 0..support::tables::fact_inputs().len() {
            let value = Value::Input(input);
            for (low, high) in [(-3, 2), (0, 0), (1, 1), (-7, 200), (300, i64::MAX), (i64::MIN, 4), (9, 8)] {
                let mut steps = vec![filter(between(input, low, high)), filter(between(fact::BYTE, 3, 240))];
                steps.push(filter(is_there(input)));
                agreed(vec![aggregate(steps, vec![], one_group())], &tables);
            }
            for set in 0..sets().len() {
                let in_set = Predicate::InSet { value: value.clone(), set };
                for test in [in_set.clone(), Predicate::Not(Box::new(in_set))] {
                    let mut steps = vec![filter(test), filter(is_there(input))];
                    agreed(vec![aggregate(steps.clone(), sets(), one_group())], &tables);
                    steps.insert(0, filter(between(fact::BYTE, 3, 240)));
                    agreed(vec![aggregate(steps, sets(), one_group())], &tables);
                }
            }
        }
    }
}

#[test]
fn random_expressions_agree() {
    for (seed, cut) in (0..).zip(CUTS) {
        let tables = tables(cut);
        let mut random = Random::new(seed + 90);
        for _ in 0..if cut.rows > 8000 { 20 } else { 100 } {
            let steps = (0..random.within(0, 3)).map(|_| filter(random_predicate(&mut random, 3))).collect();
            let hashed = random.percent(50);
            let by = if random.percent(50) { one_group() } else { by_tiny_and_name(hashed) };
            agreed(vec![aggregate(steps, sets(), by)], &tables);
        }
    }
}

/// Sums of every field of probe 0, and whether it is null.
fn field_words(build: &Build) -> Aggregate {
    use query_demo::plan::{Word, WordValue};
    let mut words = one_group().words;
    for field in 0..build.fields.len() {
        let value = Value::Field { probe: 0, field };
        words.push(Word { value: WordValue::Sum(value), valid: Predicate::FieldValid { probe: 0, field } });
    }
    Aggregate { words, ..one_group() }
}

#[test]
fn every_table_finds_the_same_by_every_key() {
    for cut in CUTS.into_iter().filter(|cut| cut.rows < 8000) {
        let tables = tables(cut);
        for (entry_width, greatest) in
            [(1, KEYS.max), (1, 1 << 20), (8, KEYS.max), (16, KEYS.max), (32, 1 << 20), (64, KEYS.max)]
        {
            for index in [Index::Direct, Index::Hash { slots: 1024 }] {
                let domain = Range { min: KEYS.min, max: greatest };
                let build_of = Build { domain, ..item_build(entry_width, index, true) };
                let key = Value::Input(fact::KEY);
                let computed = subtract(Value::Input(fact::BYTE), Value::Input(fact::SMALL));
                let keys = [
                    (key, is_valid(fact::KEY_VALID)),
                    (computed, ALWAYS),
                    (Value::Input(fact::TINY), ALWAYS),
                ];
                for (key, valid) in keys {
                    for first in [vec![], vec![filter(between(fact::SMALL, 5, 20))]] {
                        for kind in [ProbeKind::Inner, ProbeKind::Semi, ProbeKind::Anti] {
                            let mut steps = first.clone();
                            steps.push(probe(0, key.clone(), valid.clone(), kind));
                            let words = match kind {
                                ProbeKind::Inner => field_words(&build_of),
                                _ => one_group(),
                            };
                            let built = build("items", vec![filter(between(1, 0, 4))], build_of.clone());
                            agreed(vec![built, aggregate(steps, vec![], words)], &tables);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn fields_are_filtered_and_grouped_by() {
    for cut in CUTS {
        let tables = tables(cut);
        let colors = build("items", vec![], item_build(8, Index::Direct, true));
        let weights = build("items", vec![], item_build(16, Index::Hash { slots: 1024 }, true));
        let field = |probe, field| Value::Field { probe, field };
        let steps = vec![
            probe(0, Value::Input(fact::KEY), is_valid(fact::KEY_VALID), ProbeKind::Inner),
            filter(Predicate::Between { value: field(0, 0), low: 1, high: 5 }),
            // The second key is a field of the first entry.
            probe(1, add(field(0, 0), Value::Literal(10)), ALWAYS, ProbeKind::Inner),
            filter(Predicate::Or(vec![
                Predicate::Not(Box::new(Predicate::FieldValid { probe: 1, field: 1 })),
                Predicate::Less(field(1, 1), Value::Input(fact::SMALL)),
            ])),
        ];
        let color = (field(0, 0), ALWAYS, false, Range { min: 0, max: 6 });
        let weight =
            (field(1, 1), Predicate::FieldValid { probe: 1, field: 1 }, true, Range { min: -500, max: 500 });
        for hashed in [false, true] {
            let by = grouped(vec![color.clone(), weight.clone()], hashed);
            agreed(vec![colors.clone(), weights.clone(), aggregate(steps.clone(), vec![], by)], &tables);
        }
    }
}

#[test]
fn builds_probe_what_was_built_before() {
    let tables = tables(CUTS[3]);
    let some = build("items", vec![filter(between(1, 2, 3))], item_build(1, Index::Direct, true));
    let semi = probe(0, Value::Input(0), ALWAYS, ProbeKind::Semi);
    let fewer = build("items", vec![semi], item_build(32, Index::Direct, true));
    let steps = vec![probe(1, Value::Input(fact::KEY), is_valid(fact::KEY_VALID), ProbeKind::Inner)];
    let words = field_words(&item_build(32, Index::Direct, true));
    let (groups, _) = agreed(vec![some, fewer, aggregate(steps, vec![], words)], &tables);
    assert!(groups.words[0] > 0);
}

#[test]
fn keys_may_repeat_only_where_they_may() {
    for index in [Index::Direct, Index::Hash { slots: 1024 }] {
        for entry_width in [1, 8] {
            let tables = tables(CUTS[2]);
            let steps = vec![probe(0, Value::Input(fact::KEY), is_valid(fact::KEY_VALID), ProbeKind::Semi)];
            let last = aggregate(steps, vec![], one_group());
            let repeats = |unique| build("repeats", vec![], item_build(entry_width, index, unique));
            agreed(vec![repeats(false), last.clone()], &tables);
            let plan = Plan { pipelines: vec![repeats(true), last] };
            let error = cpu::run(&plan, &tables).unwrap_err();
            assert!(matches!(error, QueryError::DuplicateKey { .. }), "{error}");
        }
    }
}

#[test]
fn values_outside_what_statistics_say_are_refused() {
    let tables = tables(CUTS[2]);
    let refused = |pipelines: Vec<Pipeline>| {
        let error = cpu::run(&Plan { pipelines }, &tables).unwrap_err();
        assert!(matches!(error, QueryError::Statistics { .. }), "{error}");
    };
    let last = || aggregate(vec![], vec![], one_group());
    for index in [Index::Direct, Index::Hash { slots: 1024 }] {
        for entry_width in [1, 8, 16, 32, 64] {
            let narrow = Range { min: KEYS.min + 7, max: KEYS.max };
            let outside = Build { domain: narrow, ..item_build(entry_width, index, true) };
            refused(vec![build("items", vec![], outside), last()]);
            for field in 0..item_build(entry_width, index, true).fields.len() {
                let mut lying = item_build(entry_width, index, true);
                lying.fields[field].range.min = lying.fields[field].range.max;
                refused(vec![build("items", vec![], lying), last()]);
            }
        }
    }
    for hashed in [false, true] {
        let byte = |range| (Value::Input(fact::BYTE), ALWAYS, false, range);
        let lying = grouped(vec![byte(Range { min: 1, max: 255 })], hashed);
        refused(vec![aggregate(vec![], vec![], lying)]);
        let lying = grouped(vec![byte(Range { min: 0, max: 200 })], hashed);
        refused(vec![aggregate(vec![], vec![], lying)]);
    }
    let fewer = Aggregate { groups: Groups::Dense { slots: 100 }, ..by_tiny_and_name(false) };
    refused(vec![aggregate(vec![], vec![], fewer)]);
}

#[test]
fn malformed_plans_are_refused() {
    let tables = tables(CUTS[2]);
    let refused = |pipelines: Vec<Pipeline>| {
        let error = cpu::run(&Plan { pipelines }, &tables).unwrap_err();
        assert!(matches!(error, QueryError::Unsupported { .. }), "{error}");
    };
    let filtered = |predicate| aggregate(vec![filter(predicate)], vec![], one_group());
    refused(vec![]);
    refused(vec![build("items", vec![], item_build(8, Index::Direct, true))]);
    refused(vec![filtered(between(99, 0, 1))]);
    refused(vec![filtered(Predicate::InSet { value: Value::Input(0), set: 0 })]);
    refused(vec![filtered(Predicate::FieldValid { probe: 0, field: 0 })]);
    let semi = probe(0, Value::Input(fact::KEY), ALWAYS, ProbeKind::Semi);
    let field = Predicate::FieldValid { probe: 0, field: 0 };
    let built = build("items", vec![], item_build(8, Index::Direct, true));
    refused(vec![built, aggregate(vec![semi.clone(), filter(field)], vec![], one_group())]);
    refused(vec![aggregate(vec![semi], vec![], one_group())]);
    refused(vec![aggregate(vec![], vec![], Aggregate { presence: Some(50), ..by_tiny_and_name(false) })]);
    let mut missing = aggregate(vec![], vec![], one_group());
    missing.table = "nothing".into();
    refused(vec![missing]);
}

#[test]
fn tiles_are_skipped_by_their_statistics() {
    let cut = CUTS[3];
    let tables = tables(cut);
    // Dates ascend from -3000, one every three rows.
    let steps =
        vec![filter(Predicate::And(vec![between(fact::DATE, -2900, -2800), between(fact::TINY, 0, 9)]))];
    let (_, profile) = agreed(vec![aggregate(steps, vec![], one_group())], &tables);
    let pipeline = &profile.pipelines[0];
    assert_eq!((pipeline.tiles_skipped, pipeline.tiles_scanned), (8, 1));
    let steps = vec![filter(between(fact::DATE, 100_000, 100_000))];
    let (_, profile) = agreed(vec![aggregate(steps, vec![], one_group())], &tables);
    let (all, dates) = (pipeline.bytes_read, profile.pipelines[0].bytes_read);
    assert_eq!((profile.pipelines[0].tiles_skipped, profile.pipelines[0].rows_left), (9, 0));
    assert!(dates * 4 < all, "{dates} of {all} bytes were read");
}

#[test]
fn partial_groups_merge_to_the_groups_of_all() {
    let tables = tables(CUTS[3]);
    let (low, high) = (between(fact::SMALL, 0, 20), between(fact::SMALL, 21, 99));
    for by in [one_group(), by_tiny_and_name(false), by_tiny_and_name(true)] {
        let (all, _) = agreed(vec![aggregate(vec![], vec![], by.clone())], &tables);
        let parts = [low.clone(), high.clone()]
            .map(|part| agreed(vec![aggregate(vec![filter(part)], vec![], by.clone())], &tables).0);
        assert_eq!(by.merge(parts.to_vec()), all);
        assert_eq!(by.merge(vec![all.clone()]), all);
    }
}
