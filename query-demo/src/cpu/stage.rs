//! A pipeline with all that it refers to, and its steps with the inputs that each needs.

use arrow_io::table::Table;
use codec_core::BlockError;

use super::table::JoinTable;
use crate::QueryError;
use crate::plan::{Build, Field, Input, Pipeline, Plan, Predicate, Probe, ProbeKind, Set, Sink, Step, Value};

/// A pipeline that is about to run.
#[derive(Debug)]
pub struct Stage<'p> {
    /// Name of the table scanned.
    pub name: &'p str,
    /// The pipeline.
    pub pipeline: &'p Pipeline,
    /// The table scanned.
    pub table: &'p Table,
    /// What its probes look into.
    pub probes: Vec<Probed<'p>>,
    /// What happens to a tile, in order.
    pub actions: Vec<Action<'p>>,
}

/// A probe and the table that it looks into.
#[derive(Debug, Clone, Copy)]
pub struct Probed<'p> {
    /// The probe.
    pub probe: &'p Probe,
    /// What the table is.
    pub build: &'p Build,
    /// The table.
    pub table: &'p JoinTable,
}

/// That the value of an input lies within a range.
#[derive(Debug, Clone, Copy)]
pub struct RangeTest {
    /// Index of the input.
    pub input: usize,
    /// Least value that passes.
    pub low: i64,
    /// Greatest value that passes.
    pub high: i64,
}

/// A part of a step, and the inputs that must be decoded for it.
#[derive(Debug)]
pub enum Action<'p> {
    /// Drops the rows that fail any of neighbouring tests: their flags are cheaper than the lists of rows that each of them leaves.
    Ranges(Vec<RangeTest>),
    /// Drops the rows whose value is not in the set.
    InSet {
        /// Index of the input.
        input: usize,
        /// The set.
        set: &'p Set,
    },
    /// Drops the rows for which the predicate does not hold.
    Filter {
        /// The predicate, not a conjunction.
        predicate: &'p Predicate,
        /// Indexes of inputs.
        needs: Vec<usize>,
    },
    /// Looks rows up.
    Probe {
        /// Which probe.
        number: usize,
        /// Indexes of inputs.
        needs: Vec<usize>,
    },
}

impl<'p> Stage<'p> {
    /// The pipeline `pipeline` over `table`; `tables` are what earlier pipelines built.
    ///
    /// # Errors
    /// A plan that refers to what is not there.
    pub fn new(
        plan: &'p Plan,
        pipeline: &'p Pipeline,
        table: &'p Table,
        tables: &'p [JoinTable],
    ) -> Result<Self, QueryError> {
        let name = pipeline.table.as_str();
        let mut stage = Self { name, pipeline, table, probes: Vec::new(), actions: Vec::new() };
        for step in &pipeline.steps {
            match step {
                Step::Filter(predicate) => stage.filter(predicate)?,
                Step::Probe(probe) => {
                    let Some(Sink::Build(build)) = plan.pipelines.get(probe.build).map(|built| &built.sink)
                    else {
                        return Err(stage.malformed("a probe"));
                    };
                    let table = tables.get(probe.build).ok_or_else(|| stage.malformed("a probe"))?;
                    // A null finds nothing, which is what the rows of an anti join look for.
                    if probe.kind != ProbeKind::Anti {
                        stage.filter(&probe.valid)?;
                    }
                    let mut needs = stage.needs_of_predicate(&probe.valid)?;
                    needs.extend(stage.needs_of_value(&probe.key)?);
                    stage.actions.push(Action::Probe { number: stage.probes.len(), needs });
                    stage.probes.push(Probed { probe, build, table });
                }
            }
        }
        Ok(stage)
    }

    /// Adds the conjunction's parts one by one, so that each decodes only what it needs itself.
    fn filter(&mut self, predicate: &'p Predicate) -> Result<(), QueryError> {
        match predicate {
            Predicate::And(parts) => parts.iter().try_for_each(|part| self.filter(part)),
            Predicate::Always(true) => Ok(()),
            Predicate::Between { value: Value::Input(input), low, high } => {
                self.needs_of_predicate(predicate)?;
                let test = RangeTest { input: *input, low: *low, high: *high };
                match self.actions.last_mut() {
                    Some(Action::Ranges(tests)) => tests.push(test),
                    _ => self.actions.push(Action::Ranges(vec![test])),
                }
                Ok(())
            }
            Predicate::InSet { value: Value::Input(input), set } => {
                self.needs_of_predicate(predicate)?;
                let set = self.pipeline.sets.get(*set).ok_or_else(|| self.malformed("a set"))?;
                self.actions.push(Action::InSet { input: *input, set });
                Ok(())
            }
            predicate => {
                let needs = self.needs_of_predicate(predicate)?;
                self.actions.push(Action::Filter { predicate, needs });
                Ok(())
            }
        }
    }

    /// The inputs in `value`, all of whose references are there.
    ///
    /// # Errors
    /// One that is not.
    pub fn needs_of_value(&self, value: &Value) -> Result<Vec<usize>, QueryError> {
        self.needs(|visit| value.visit(&mut |value| visit(value)))
    }

    /// As [`Stage::needs_of_value`].
    ///
    /// # Errors
    /// As there.
    pub fn needs_of_predicate(&self, predicate: &Predicate) -> Result<Vec<usize>, QueryError> {
        self.needs(|visit| predicate.visit(&mut |value| visit(value)))
    }

    fn needs(&self, walk: impl FnOnce(&mut dyn FnMut(&Value))) -> Result<Vec<usize>, QueryError> {
        let mut needs = Vec::new();
        let mut missing = None;
        walk(&mut |value| match value {
            Value::Input(input) if *input < self.pipeline.inputs.len() => {
                if !needs.contains(input) {
                    needs.push(*input);
                }
            }
            Value::Field { probe, field } if self.field(*probe, *field).is_some() => {}
            missed => missing = Some(self.pipeline.show_value(missed)),
        });
        missing.map_or(Ok(needs), |missing| Err(self.malformed(&missing)))
    }

    /// A field of what an earlier probe found.
    #[must_use]
    pub fn field(&self, probe: usize, field: usize) -> Option<&'p Field> {
        let probed = self.probes.get(probe).filter(|probed| probed.probe.kind == ProbeKind::Inner)?;
        probed.build.fields.get(field)
    }

    /// That the plan refers to what is not there.
    #[must_use]
    pub fn malformed(&self, what: &str) -> QueryError {
        QueryError::unsupported(format!("a plan over {} in which {what} refers to nothing", self.name))
    }

    /// That values contradict the statistics.
    #[must_use]
    pub fn statistics(&self) -> QueryError {
        QueryError::Statistics { table: self.name.to_owned() }
    }

    /// That a block of `input` is damaged.
    #[must_use]
    pub fn block_error(
        &self,
        input: &Input,
        row_group: u32,
        block_index: u32,
        source: BlockError,
    ) -> QueryError {
        let (table, column) = (self.name.to_owned(), input.name.clone());
        QueryError::Block { table, column, row_group, block_index, source: Box::new(source) }
    }
}
