//! The sink that makes a table.

use std::sync::{Mutex, PoisonError};

use super::evaluate::{Frame, Scratch};
use super::rows::TILE;
use super::scan::Consumer;
use super::stage::Stage;
use super::table::{Inserted, JoinTable};
use super::worker::Worker;
use crate::QueryError;
use crate::plan::{Build, Field, Predicate, Range, Value};

/// Rows become entries on all threads, and go in one thread at a time.
#[derive(Debug)]
pub struct Builder<'p> {
    build: &'p Build,
    needs: Vec<usize>,
    table: Mutex<JoinTable>,
}

impl<'p> Builder<'p> {
    /// An empty table.
    ///
    /// # Errors
    /// A plan that refers to what is not there, or more memory than there is.
    pub fn new(stage: &Stage<'_>, build: &'p Build) -> Result<Self, QueryError> {
        let mut needs = stage.needs_of_value(&build.key)?;
        for field in &build.fields {
            needs.extend(stage.needs_of_value(&field.value)?);
            needs.extend(stage.needs_of_predicate(&field.valid)?);
        }
        Ok(Self { build, needs, table: Mutex::new(JoinTable::new(build)?) })
    }

    /// What was built.
    pub fn finish(self) -> JoinTable {
        self.table.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Consumer for Builder<'_> {
    type Local = ();

    fn local(&self) {}

    fn needs(&self) -> &[usize] {
        &self.needs
    }

    fn consume(&self, stage: &Stage<'_>, worker: &mut Worker, (): &mut ()) -> Result<(), QueryError> {
        let (frame, scratch) = worker.frame(stage);
        scratch.with_values(|scratch, keys| {
            scratch.with_values(|scratch, entries| {
                frame.value(&self.build.key, scratch, keys)?;
                entries.fill(0);
                for field in &self.build.fields {
                    pack(&frame, field, scratch, entries)?;
                }
                let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
                for (key, entry) in keys.iter().zip(entries).take(frame.rows.len()) {
                    self.insert(stage, &mut table, *key, entry.cast_unsigned())?;
                }
                Ok(())
            })
        })
    }
}

impl Builder<'_> {
    fn insert(
        &self,
        stage: &Stage<'_>,
        table: &mut JoinTable,
        key: i64,
        entry: u64,
    ) -> Result<(), QueryError> {
        let inserted = if self.build.domain.has(key) { table.insert(key, entry) } else { Inserted::Outside };
        match inserted {
            Inserted::Repeated if self.build.unique => Err(QueryError::DuplicateKey {
                table: stage.name.to_owned(),
                column: self.build.key_name.clone(),
            }),
            Inserted::New | Inserted::Repeated => Ok(()),
            Inserted::Outside => Err(stage.statistics()),
        }
    }
}

/// Adds the field's code to the entry of each row that is left.
fn pack(
    frame: &Frame<'_>,
    field: &Field,
    scratch: &mut Scratch,
    entries: &mut [i64; TILE],
) -> Result<(), QueryError> {
    scratch.with_values(|scratch, values| {
        codes(frame, &field.value, &field.valid, (field.nullable, field.range), scratch, values)?;
        for (entry, code) in entries.iter_mut().zip(values).take(frame.rows.len()) {
            let code = code.cast_unsigned();
            let fits = code.checked_shr(field.bits.into()).unwrap_or_default() == 0;
            let moved =
                code.checked_shl(field.shift.into()).filter(|moved| fits && moved >> field.shift == code);
            *entry |= moved.ok_or_else(|| frame.stage.statistics())?.cast_signed();
        }
        Ok(())
    })
}

/// The code of each row's value, as fields of entries and parts of group keys have it: value - range.min; of a nullable one 1 more, and 0 for null.
///
/// # Errors
/// A value outside the range, or a plan that refers to what is not there.
pub fn codes(
    frame: &Frame<'_>,
    value: &Value,
    valid: &Predicate,
    (nullable, range): (bool, Range),
    scratch: &mut Scratch,
    codes: &mut [i64; TILE],
) -> Result<(), QueryError> {
    frame.value(value, scratch, codes)?;
    let span = range.span();
    let codes = codes.get_mut(..frame.rows.len()).unwrap_or_default();
    let mut outside = false;
    if nullable {
        scratch.with_flags(|scratch, flags| {
            frame.predicate(valid, scratch, flags)?;
            for (code, flag) in codes.iter_mut().zip(flags) {
                let offset = code.wrapping_sub(range.min).cast_unsigned();
                // One more must be a code, too.
                outside |= *flag == 1 && (offset > span || offset == u64::MAX);
                *code = if *flag == 1 { offset.wrapping_add(1).cast_signed() } else { 0 };
            }
            Ok::<_, QueryError>(())
        })?;
    } else {
        for code in &mut *codes {
            let offset = code.wrapping_sub(range.min).cast_unsigned();
            outside |= offset > span;
            *code = offset.cast_signed();
        }
    }
    if outside { Err(frame.stage.statistics()) } else { Ok(()) }
}
