//! How many rows a predicate keeps, as far as ranges tell: only the order of steps depends on it.

use crate::plan::{Predicate, Range, Set};

/// What is guessed where nothing is known.
const UNKNOWN: f64 = 0.5;

/// The fraction of rows for which `predicate` holds, if values were spread evenly over their ranges.
pub fn estimate(
    predicate: &Predicate,
    sets: &[Set],
    range: &dyn Fn(&crate::plan::Value) -> Option<Range>,
) -> f64 {
    let of = |predicate: &Predicate| estimate(predicate, sets, range);
    match predicate {
        Predicate::Always(truth) => f64::from(u8::from(*truth)),
        Predicate::Between { value, low, high } => {
            range(value).map_or(UNKNOWN, |range| width(Range { min: *low, max: *high }) / width(range))
        }
        Predicate::InSet { value, set } => match (range(value), sets.get(*set)) {
            (Some(range), Some(set)) => {
                let members: u32 = set.words.iter().map(|word| word.count_ones()).sum();
                f64::from(members) / width(range)
            }
            _ => UNKNOWN,
        },
        Predicate::Less(..) | Predicate::FieldValid { .. } => UNKNOWN,
        Predicate::Equal(left, right) => match (range(left), range(right)) {
            (Some(left), Some(right)) => 1.0 / width(left).max(width(right)),
            _ => UNKNOWN,
        },
        Predicate::And(parts) => parts.iter().map(of).product(),
        Predicate::Or(parts) => 1.0 - parts.iter().map(|part| 1.0 - of(part)).product::<f64>(),
        Predicate::Not(inner) => 1.0 - of(inner),
    }
    .clamp(0.0, 1.0)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn width(range: Range) -> f64 {
    range.span() as f64 + 1.0
}
