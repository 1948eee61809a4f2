//! Filters on an input, without a detour over wide values.

use super::evaluate::{Column, Scratch};
use super::kernels;
use super::lanes::{Sign, with_lanes};
use super::rows::{Rows, Selection, TILE};
use super::stage::Stage;
use crate::plan::{Predicate, Set, Value};

/// Drops the rows for which `predicate` does not hold, and returns true; or returns false where it is no test of a single input.
pub fn by_input(
    stage: &Stage<'_>,
    predicate: &Predicate,
    columns: &[Column],
    scratch: &mut Scratch,
    selection: &mut Selection,
) -> bool {
    match predicate {
        Predicate::Between { value: Value::Input(input), low, high } => {
            let Some(column) = columns.get(*input) else { return false };
            with_lanes!(&column.lanes, values => {
                between(values, column.sign, (*low, *high), scratch, selection);
            });
            true
        }
        Predicate::InSet { value: Value::Input(input), set } => {
            let (Some(column), Some(set)) = (columns.get(*input), stage.pipeline.sets.get(*set)) else {
                return false;
            };
            with_lanes!(&column.lanes, values => in_set(values, column.sign, set, selection));
            true
        }
        Predicate::Always(false) => {
            selection.clear();
            true
        }
        _ => false,
    }
}

fn between<V: codec_core::Value>(
    values: &[V; TILE],
    sign: Sign,
    (low, high): (i64, i64),
    scratch: &mut Scratch,
    selection: &mut Selection,
) {
    let (least, greatest) = sign.domain(V::WIDTH);
    if low <= least && greatest <= high {
        return;
    }
    let (low, high) = (low.max(least), high.min(greatest));
    if low > high {
        selection.clear();
        return;
    }
    // Within the domain, the low bits of a difference are the difference.
    let span = V::from_u64(high.wrapping_sub(low).cast_unsigned());
    let low = V::from_u64(low.cast_unsigned());
    match selection.rows() {
        Rows::All(_) => scratch.with_flags(|_, flags| {
            kernels::between(values, low, span, flags);
            selection.keep(flags);
        }),
        Rows::Some(_) => selection.retain(|row| values[row % TILE].wrapping_sub(low) <= span),
    }
}

fn in_set<V: codec_core::Value>(values: &[V; TILE], sign: Sign, set: &Set, selection: &mut Selection) {
    let (base, words) = (set.base, set.words.as_slice());
    selection.retain(|row| {
        let value = sign.widen(values[row % TILE]);
        let bit = value.wrapping_sub(base).cast_unsigned();
        let word = usize::try_from(bit / 32).ok().and_then(|word| words.get(word));
        word.copied().unwrap_or_default() >> (bit % 32) & 1 == 1
    });
}
