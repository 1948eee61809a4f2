//! The Star Schema Benchmark on the CPU: against DataFusion whatever the codecs, and against the answers that are known.
#![cfg(feature = "sql")]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "support/generated.rs"]
mod generated;
#[path = "support/rows.rs"]
mod rows;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use codec_core::Choice;
use generated::session;
use query_demo::ssb::{ANSWERS_AT_SCALE_1, QUERIES};
use query_demo::{DeviceChoice, Engine, QueryOptions};
use rows::rows;

fn cpu() -> QueryOptions {
    QueryOptions { device: DeviceChoice::Cpu, ..QueryOptions::default() }
}

#[test]
fn every_query_agrees_with_datafusion_whatever_the_codecs() {
    let codec = |name| Choice::Prefer(codecs::REGISTRY.by_name(name).unwrap());
    let mut expected: Vec<Vec<String>> = Vec::new();
    for choice in [Choice::Auto, Choice::Size, codec("plain"), codec("flbp"), codec("rfor")] {
        let session = session(0.02, choice);
        if expected.is_empty() {
            expected = QUERIES.iter().map(|(_, sql)| rows(&session.reference(sql).unwrap())).collect();
        }
        for ((name, sql), expected) in QUERIES.iter().zip(&expected) {
            let result = session.query(sql, &cpu()).unwrap();
            assert!(matches!(result.engine, Engine::Cpu { .. }), "{name}: {:?}", result.engine);
            assert_eq!(rows(&result.batch), *expected, "{name}");
        }
    }
    assert!(expected.iter().filter(|rows| rows.len() > 1).count() >= 5);
}

#[test]
fn known_sums_at_scale_1() {
    let session = session(1.0, Choice::Auto);
    for ((name, sql), (groups, sum)) in QUERIES.iter().zip(ANSWERS_AT_SCALE_1) {
        let batch = session.query(sql, &cpu()).unwrap().batch;
        let measure =
            batch.columns().iter().zip(batch.schema().fields().clone().iter()).find_map(|(column, field)| {
                ["revenue", "profit"].contains(&field.name().as_str()).then(|| column.clone())
            });
        let total: i128 = measure
            .unwrap()
            .as_primitive::<Int64Type>()
            .values()
            .iter()
            .map(|&value| i128::from(value))
            .sum();
        assert_eq!((batch.num_rows() as u64, total), (groups, sum), "{name}");
    }
}

#[test]
fn results_are_sorted_as_asked() {
    let session = session(0.01, Choice::Auto);
    let result = session.query(QUERIES[6].1, &cpu()).unwrap().batch;
    let years = result.column(2).as_primitive::<arrow::datatypes::Int32Type>().values().to_vec();
    let revenue = result.column(3).as_primitive::<Int64Type>().values().to_vec();
    for row in 1..years.len() {
        assert!(
            (years[row - 1], std::cmp::Reverse(revenue[row - 1]))
                <= (years[row], std::cmp::Reverse(revenue[row]))
        );
    }
    assert!(years.len() > 10);
}
