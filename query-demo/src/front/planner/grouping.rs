//! The end of a query's last pipeline: groups and what is computed for each.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::logical_expr::Expr;

use super::builder::Builder;
use super::slots;
use crate::QueryError;
use crate::front::aggregates::{Words, function};
use crate::front::lower::{Lowered, Lowering};
use crate::front::output::Output;
use crate::plan::{Aggregate, GroupKey, Groups, Predicate, Sink};

/// Groups are indexed directly up to so many indexes.
const MAX_DENSE_GROUPS: u64 = 1 << 21;
/// A hash table of groups begins with no more slots.
const MAX_FIRST_SLOTS: u64 = 1 << 22;

/// What an aggregation asks for, over the graph.
pub struct Wanted {
    /// The parts of the groups' key.
    pub groups: Vec<Expr>,
    /// The aggregate functions.
    pub functions: Vec<Expr>,
}

/// Ends a pipeline with an aggregation.
pub fn aggregation(
    builder: &mut Builder<'_>,
    wanted: &Wanted,
    schema: Arc<Schema>,
) -> Result<Output, QueryError> {
    let mut keys = Vec::new();
    for expr in &wanted.groups {
        if matches!(expr, Expr::GroupingSet(_)) {
            return Err(QueryError::unsupported("GROUPING SETS, CUBE or ROLLUP"));
        }
        keys.push(Lowering::new(builder).value(expr)?);
    }
    let groups: Option<Vec<GroupKey>> = group_keys(&keys);
    let too_wide = || QueryError::unsupported("groups whose key is wider than 63 bits");
    let keys_and_entries: Vec<_> =
        groups.ok_or_else(too_wide)?.into_iter().zip(keys.into_iter().map(|key| key.dictionary)).collect();
    let rows = builder.rows();
    let mut words = Words::default();
    let mut functions = Vec::new();
    for expr in &wanted.functions {
        let function = function(expr)?;
        let grouped = !keys_and_entries.is_empty();
        functions.push(words.function(expr, function, &mut Lowering::new(builder), rows, grouped)?);
    }
    let keys: Vec<GroupKey> = keys_and_entries.iter().map(|(key, _)| key.clone()).collect();
    let product = keys.iter().fold(1_u64, |product, key| product.saturating_mul(key.codes));
    let groups = match keys.len() {
        0 => Groups::One,
        _ if product <= MAX_DENSE_GROUPS => Groups::Dense { slots: product },
        _ => Groups::Hash { slots: slots(product.min(rows).min(MAX_FIRST_SLOTS / 2)) },
    };
    let presence = match groups {
        Groups::Dense { .. } => Some(words.presence(|value| builder.is_positive(value))),
        Groups::One | Groups::Hash { .. } => None,
    };
    let output = Output { schema, keys: keys_and_entries, functions, words: words.words.len(), order: None };
    builder.sink(Sink::Aggregate(Aggregate { keys, words: words.words, groups, presence }));
    Ok(output)
}

/// The parts of a group's key; `None` where their product does not fit 63 bits.
fn group_keys(keys: &[Lowered]) -> Option<Vec<GroupKey>> {
    let mut stride = 1_u64;
    let mut parts = Vec::new();
    for key in keys.iter().rev() {
        let nullable = key.valid != Predicate::Always(true);
        let codes = key.range.span().checked_add(1)?.checked_add(nullable.into())?;
        let (value, valid, range) = (key.value.clone(), key.valid.clone(), key.range);
        parts.push(GroupKey { value, valid, nullable, range, codes, stride });
        stride = stride.checked_mul(codes).filter(|&product| product < 1 << 63)?;
    }
    parts.reverse();
    Some(parts)
}
