//! The sink that aggregates.

use super::build::codes;
use super::evaluate::{Frame, Scratch};
use super::groups::LocalGroups;
use super::kernels;
use super::rows::{Flags, TILE};
use super::scan::Consumer;
use super::stage::Stage;
use super::worker::Worker;
use crate::QueryError;
use crate::plan::{Aggregate, Groups, Predicate, Value, Word, WordValue};

/// Rows are added to groups that each thread keeps for itself.
#[derive(Debug)]
pub struct Aggregator<'p> {
    aggregate: &'p Aggregate,
    needs: Vec<usize>,
}

impl<'p> Aggregator<'p> {
    /// For the rows that `stage` leaves.
    ///
    /// # Errors
    /// A plan that refers to what is not there.
    pub fn new(stage: &Stage<'_>, aggregate: &'p Aggregate) -> Result<Self, QueryError> {
        let mut needs = Vec::new();
        for key in &aggregate.keys {
            needs.extend(stage.needs_of_value(&key.value)?);
            needs.extend(stage.needs_of_predicate(&key.valid)?);
        }
        for word in &aggregate.words {
            if let Some(value) = word.value.value() {
                needs.extend(stage.needs_of_value(value)?);
            }
            needs.extend(stage.needs_of_predicate(&word.valid)?);
        }
        let presence_is_there = aggregate.presence.is_none_or(|word| word < aggregate.words.len());
        if presence_is_there { Ok(Self { aggregate, needs }) } else { Err(stage.malformed("the presence")) }
    }
}

impl Consumer for Aggregator<'_> {
    type Local = LocalGroups;

    fn local(&self) -> LocalGroups {
        LocalGroups::new(self.aggregate)
    }

    fn needs(&self) -> &[usize] {
        &self.needs
    }

    fn consume(
        &self,
        stage: &Stage<'_>,
        worker: &mut Worker,
        groups: &mut LocalGroups,
    ) -> Result<(), QueryError> {
        let (frame, scratch) = worker.frame(stage);
        if self.aggregate.groups == Groups::One {
            return self.add_to_one(&frame, scratch, groups.words_mut());
        }
        scratch.with_values(|scratch, places| {
            self.indexes(&frame, scratch, places)?;
            let places = places.get_mut(..frame.rows.len()).unwrap_or_default();
            groups.places(places, self.aggregate.words.len()).ok_or_else(|| stage.statistics())?;
            self.add_to_many(&frame, scratch, groups.words_mut(), places)
        })
    }
}

impl Aggregator<'_> {
    /// The index of each row's group.
    fn indexes(
        &self,
        frame: &Frame<'_>,
        scratch: &mut Scratch,
        indexes: &mut [i64; TILE],
    ) -> Result<(), QueryError> {
        indexes.fill(0);
        scratch.with_values(|scratch, parts| {
            for key in &self.aggregate.keys {
                codes(frame, &key.value, &key.valid, (key.nullable, key.range), scratch, parts)?;
                let stride = key.stride.cast_signed();
                kernels::combine(indexes, &parts[..], |index, code| {
                    index.wrapping_add(code.wrapping_mul(stride))
                });
            }
            Ok(())
        })
    }

    fn add_to_one(
        &self,
        frame: &Frame<'_>,
        scratch: &mut Scratch,
        totals: &mut [u64],
    ) -> Result<(), QueryError> {
        for (word, total) in self.aggregate.words.iter().zip(totals) {
            let part = if matches!((&word.value, &word.valid), (WordValue::Count, Predicate::Always(true))) {
                frame.rows.len() as u64
            } else {
                scratch.with_values(|scratch, values| {
                    contributions(frame, word, scratch, values)?;
                    let values = values.get(..frame.rows.len()).unwrap_or_default();
                    Ok::<_, QueryError>(if word.value.adds() {
                        kernels::fold(values, |sum, value| sum.wrapping_add(value.cast_unsigned()))
                    } else {
                        kernels::fold(values, |most, value| most.max(value.cast_unsigned()))
                    })
                })?
            };
            *total = word.value.combine(*total, part);
        }
        Ok(())
    }

    fn add_to_many(
        &self,
        frame: &Frame<'_>,
        scratch: &mut Scratch,
        totals: &mut [u64],
        places: &[i64],
    ) -> Result<(), QueryError> {
        for (number, word) in self.aggregate.words.iter().enumerate() {
            scratch.with_values(|scratch, values| {
                contributions(frame, word, scratch, values)?;
                let totals = totals.get_mut(number..).unwrap_or_default();
                if word.value.adds() {
                    scatter(totals, places, values, |sum, value| sum.wrapping_add(value));
                } else {
                    scatter(totals, places, values, u64::max);
                }
                Ok::<_, QueryError>(())
            })?;
        }
        Ok(())
    }
}

/// Combines each value with the total at its place. All places are within the totals: their groups were looked up.
fn scatter(totals: &mut [u64], places: &[i64], values: &[i64; TILE], combine: impl Fn(u64, u64) -> u64) {
    for (place, value) in places.iter().zip(values) {
        let place = usize::try_from(*place).unwrap_or(usize::MAX);
        if let Some(total) = totals.get_mut(place) {
            *total = combine(*total, value.cast_unsigned());
        }
    }
}

/// What each row that is left brings to the word: zero, which changes nothing, where it does not count.
fn contributions(
    frame: &Frame<'_>,
    word: &Word,
    scratch: &mut Scratch,
    values: &mut [i64; TILE],
) -> Result<(), QueryError> {
    match &word.value {
        WordValue::Count => values.fill(1),
        WordValue::Sum(value) => frame.value(value, scratch, values)?,
        WordValue::SumLow(value) => map(frame, value, scratch, values, |value| value & 0xFFFF_FFFF)?,
        WordValue::SumHigh(value) => map(frame, value, scratch, values, |value| value >> 32)?,
        WordValue::Greatest { value, min } => {
            map(frame, value, scratch, values, |value| value.wrapping_sub(*min).wrapping_add(1))?;
        }
        WordValue::Least { value, max } => {
            map(frame, value, scratch, values, |value| max.wrapping_sub(value).wrapping_add(1))?;
        }
    }
    if word.valid == Predicate::Always(true) {
        return Ok(());
    }
    scratch.with_flags(|scratch, flags: &mut Flags| {
        frame.predicate(&word.valid, scratch, flags)?;
        for (value, flag) in values.iter_mut().zip(flags) {
            *value &= 0_i64.wrapping_sub((*flag).into());
        }
        Ok(())
    })
}

fn map(
    frame: &Frame<'_>,
    value: &Value,
    scratch: &mut Scratch,
    values: &mut [i64; TILE],
    change: impl Fn(i64) -> i64,
) -> Result<(), QueryError> {
    frame.value(value, scratch, values)?;
    values.iter_mut().take(frame.rows.len()).for_each(|value| *value = change(*value));
    Ok(())
}
