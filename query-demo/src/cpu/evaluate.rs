//! Values and predicates of the rows that are left of a tile, whatever their expression.

use super::kernels;
use super::lanes::{Lanes, Sign, with_lanes};
use super::rows::{Flags, Rows, TILE, place};
use super::stage::Stage;
use super::table::Stored;
use crate::QueryError;
use crate::plan::{Field, Predicate, Value};

/// A tile's decoded inputs and what its probes found, and which of its rows are left.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The pipeline.
    pub stage: &'a Stage<'a>,
    /// Of each input; those that the expression needs are decoded.
    pub columns: &'a [Column],
    /// The inverted entry that each probe found for each row.
    pub found: &'a [Lanes],
    /// The rows that expressions are evaluated for.
    pub rows: Rows<'a>,
}

/// An input of a tile.
#[derive(Debug)]
pub struct Column {
    /// The values, if they are decoded.
    pub lanes: Lanes,
    /// What they are as integers.
    pub sign: Sign,
    /// Whether they are.
    pub is_decoded: bool,
}

/// Memory for what expressions leave on the way.
#[derive(Debug, Default)]
pub struct Scratch {
    values: Vec<Box<[i64; TILE]>>,
    // Lent and taken back by pointer.
    #[allow(clippy::vec_box)]
    flags: Vec<Box<Flags>>,
}

impl Scratch {
    /// Lends room for values.
    pub fn with_values<T>(&mut self, act: impl FnOnce(&mut Self, &mut [i64; TILE]) -> T) -> T {
        let mut room = self.values.pop().unwrap_or_else(|| Box::new([0; TILE]));
        let left = act(self, &mut room);
        self.values.push(room);
        left
    }

    /// Lends room for flags.
    pub fn with_flags<T>(&mut self, act: impl FnOnce(&mut Self, &mut Flags) -> T) -> T {
        let mut room = self.flags.pop().unwrap_or_else(|| Box::new([0; TILE]));
        let left = act(self, &mut room);
        self.flags.push(room);
        left
    }
}

impl Frame<'_> {
    /// The value of each row that is left, one after the other.
    ///
    /// # Errors
    /// An expression that refers to what is not there.
    pub fn value(
        &self,
        value: &Value,
        scratch: &mut Scratch,
        values: &mut [i64; TILE],
    ) -> Result<(), QueryError> {
        match value {
            Value::Input(input) => {
                let column = self.columns.get(*input).ok_or_else(|| self.stage.malformed("an input"))?;
                with_lanes!(&column.lanes, lanes => kernels::widen(lanes, column.sign, self.rows, values));
            }
            Value::Field { probe, field } => {
                let (lanes, field) = self.field(*probe, *field)?;
                let first = field.range.min.wrapping_sub(i64::from(field.nullable));
                self.codes(lanes, field, values);
                values.iter_mut().take(self.rows.len()).for_each(|code| *code = code.wrapping_add(first));
            }
            Value::Literal(literal) => values.fill(*literal),
            Value::Add(left, right) => self.combine(left, right, scratch, values, i64::wrapping_add)?,
            Value::Subtract(left, right) => self.combine(left, right, scratch, values, i64::wrapping_sub)?,
            Value::Multiply(left, right) => self.combine(left, right, scratch, values, i64::wrapping_mul)?,
            Value::If(condition, yes, no) => {
                self.value(yes, scratch, values)?;
                scratch.with_flags(|scratch, flags| {
                    self.predicate(condition, scratch, flags)?;
                    scratch.with_values(|scratch, others| {
                        self.value(no, scratch, others)?;
                        for ((value, other), flag) in values.iter_mut().zip(others).zip(flags) {
                            *value = if *flag == 1 { *value } else { *other };
                        }
                        Ok::<_, QueryError>(())
                    })
                })?;
            }
        }
        Ok(())
    }

    fn combine(
        &self,
        left: &Value,
        right: &Value,
        scratch: &mut Scratch,
        values: &mut [i64; TILE],
        operation: impl Fn(i64, i64) -> i64,
    ) -> Result<(), QueryError> {
        self.value(left, scratch, values)?;
        let values = values.get_mut(..self.rows.len()).unwrap_or_default();
        if let Value::Literal(literal) = right {
            values.iter_mut().for_each(|value| *value = operation(*value, *literal));
            return Ok(());
        }
        scratch.with_values(|scratch, others| {
            self.value(right, scratch, others)?;
            kernels::combine(values, others, operation);
            Ok(())
        })
    }

    fn field(&self, probe: usize, field: usize) -> Result<(&Lanes, &Field), QueryError> {
        let lanes = self.found.get(probe);
        lanes.zip(self.stage.field(probe, field)).ok_or_else(|| self.stage.malformed("a field"))
    }

    /// The field's code in each row that is left.
    fn codes(&self, lanes: &Lanes, field: &Field, codes: &mut [i64; TILE]) {
        with_lanes!(lanes, stored => codes_of(stored, field, self.rows, codes));
    }

    /// Whether the predicate holds, for each row that is left: flags one after the other.
    ///
    /// # Errors
    /// An expression that refers to what is not there.
    pub fn predicate(
        &self,
        predicate: &Predicate,
        scratch: &mut Scratch,
        flags: &mut Flags,
    ) -> Result<(), QueryError> {
        match predicate {
            Predicate::Always(holds) => flags.fill(u8::from(*holds)),
            Predicate::Between { value, low, high } => {
                self.test(value, scratch, flags, |value| (*low <= value) & (value <= *high))?;
            }
            Predicate::Less(left, right) => {
                self.compare(left, right, scratch, flags, |left, right| left < right)?
            }
            Predicate::Equal(left, right) => {
                self.compare(left, right, scratch, flags, |left, right| left == right)?;
            }
            Predicate::InSet { value, set } => {
                let set = self.stage.pipeline.sets.get(*set).ok_or_else(|| self.stage.malformed("a set"))?;
                self.test(value, scratch, flags, |value| set.has(value))?;
            }
            Predicate::FieldValid { probe, field } => {
                let (lanes, field) = self.field(*probe, *field)?;
                if field.nullable {
                    scratch.with_values(|_, codes| {
                        self.codes(lanes, field, codes);
                        kernels::flag(codes, flags, |code| code != 0);
                    });
                } else {
                    flags.fill(1);
                }
            }
            Predicate::And(parts) => {
                flags.fill(1);
                self.gather(parts, scratch, flags, |flag, other| flag & other)?;
            }
            Predicate::Or(parts) => {
                flags.fill(0);
                self.gather(parts, scratch, flags, |flag, other| flag | other)?;
            }
            Predicate::Not(inner) => {
                self.predicate(inner, scratch, flags)?;
                flags.iter_mut().for_each(|flag| *flag ^= 1);
            }
        }
        Ok(())
    }

    fn test(
        &self,
        value: &Value,
        scratch: &mut Scratch,
        flags: &mut Flags,
        test: impl Fn(i64) -> bool,
    ) -> Result<(), QueryError> {
        scratch.with_values(|scratch, values| {
            self.value(value, scratch, values)?;
            kernels::flag(values.get(..self.rows.len()).unwrap_or_default(), flags, test);
            Ok(())
        })
    }

    fn compare(
        &self,
        left: &Value,
        right: &Value,
        scratch: &mut Scratch,
        flags: &mut Flags,
        test: impl Fn(i64, i64) -> bool,
    ) -> Result<(), QueryError> {
        scratch.with_values(|scratch, lefts| {
            self.value(left, scratch, lefts)?;
            scratch.with_values(|scratch, rights| {
                self.value(right, scratch, rights)?;
                let lefts = lefts.get(..self.rows.len()).unwrap_or_default();
                kernels::flag_pairs(lefts, rights, flags, test);
                Ok(())
            })
        })
    }

    fn gather(
        &self,
        parts: &[Predicate],
        scratch: &mut Scratch,
        flags: &mut Flags,
        operation: impl Fn(u8, u8) -> u8,
    ) -> Result<(), QueryError> {
        scratch.with_flags(|scratch, others| {
            for part in parts {
                self.predicate(part, scratch, others)?;
                for (flag, other) in flags.iter_mut().zip(&*others) {
                    *flag = operation(*flag, *other);
                }
            }
            Ok(())
        })
    }
}

fn codes_of<E: Stored>(stored: &[E; TILE], field: &Field, rows: Rows<'_>, codes: &mut [i64; TILE]) {
    // A shift past the entry or no bits at all give code 0.
    let mask = u64::MAX.checked_shr(64_u32.saturating_sub(field.bits.into())).unwrap_or_default();
    let code = |stored: E| {
        let entry = (!stored).to_u64();
        (entry.checked_shr(field.shift.into()).unwrap_or_default() & mask).cast_signed()
    };
    match rows {
        Rows::All(count) => {
            codes.iter_mut().zip(stored).take(count).for_each(|(target, &stored)| *target = code(stored));
        }
        Rows::Some(rows) => {
            codes.iter_mut().zip(rows).for_each(|(target, &row)| *target = code(stored[place(row)]));
        }
    }
}
