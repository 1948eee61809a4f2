//! Whether a plan's numbers agree with each other: kernels index memory by them.

use crate::QueryError;
use crate::gpu::uses::{Stage, stages};
use crate::plan::{Aggregate, Build, Groups, Index, Pipeline, Plan, Predicate, ProbeKind, Sink, Step, Value};

/// Checks all that generated code relies on.
///
/// # Errors
/// A plan that refers to what does not exist, or whose sizes do not agree; or what no kernel does.
pub fn check(plan: &Plan) -> Result<(), QueryError> {
    for (index, pipeline) in plan.pipelines.iter().enumerate() {
        let place = Place { plan, index, pipeline };
        place.inputs()?;
        place.steps()?;
        match &pipeline.sink {
            Sink::Build(build) => place.build(build)?,
            Sink::Aggregate(aggregate) => place.aggregate(aggregate)?,
        }
    }
    match plan.pipelines.last().map(|pipeline| &pipeline.sink) {
        Some(Sink::Aggregate(_)) => Ok(()),
        _ => Err(QueryError::unsupported("a plan that does not end in an aggregation")),
    }
}

struct Place<'p> {
    plan: &'p Plan,
    index: usize,
    pipeline: &'p Pipeline,
}

impl Place<'_> {
    fn wrong<T>(&self, what: impl std::fmt::Display) -> Result<T, QueryError> {
        Err(QueryError::unsupported(format!("pipeline {}, over {}: {what}", self.index, self.pipeline.table)))
    }

    fn inputs(&self) -> Result<(), QueryError> {
        if self.pipeline.inputs.is_empty() {
            return self.wrong("no inputs");
        }
        for input in &self.pipeline.inputs {
            if !matches!(input.value_width, 8 | 16 | 32 | 64) {
                return self.wrong(format!("{} has {} bits", input.name, input.value_width));
            }
        }
        Ok(())
    }

    fn steps(&self) -> Result<(), QueryError> {
        let mut probes = 0;
        for stage in stages(&self.pipeline.steps) {
            match stage {
                Stage::Filter(predicate) => self.predicate(predicate, probes)?,
                Stage::Probe(number, probe) => {
                    self.value(&probe.key, probes)?;
                    self.predicate(&probe.valid, probes)?;
                    let build = self.plan.pipelines.get(probe.build).map(|pipeline| &pipeline.sink);
                    if probe.build >= self.index || !matches!(build, Some(Sink::Build(_))) {
                        return self.wrong(format!("probe {number} looks into pipeline {}", probe.build));
                    }
                    probes += 1;
                }
            }
        }
        Ok(())
    }

    fn value(&self, value: &Value, probes: usize) -> Result<(), QueryError> {
        let mut result = Ok(());
        value.visit(&mut |variable| {
            if result.is_ok() {
                result = self.variable(variable, probes);
            }
        });
        result?;
        self.sets_of_value(value)
    }

    fn predicate(&self, predicate: &Predicate, probes: usize) -> Result<(), QueryError> {
        let mut result = Ok(());
        predicate.visit(&mut |variable| {
            if result.is_ok() {
                result = self.variable(variable, probes);
            }
        });
        result?;
        self.sets(predicate)
    }

    fn variable(&self, variable: &Value, probes: usize) -> Result<(), QueryError> {
        match variable {
            Value::Input(input) if *input >= self.pipeline.inputs.len() => {
                self.wrong(format!("there is no input {input}"))
            }
            Value::Field { probe, field } => {
                let kind = self.pipeline.probes().nth(*probe).map(|probe| probe.kind);
                let build = self.plan.probed(self.pipeline, *probe);
                let exists = build.is_some_and(|build| *field < build.fields.len() && build.entry_width > 1);
                if *probe >= probes || kind != Some(ProbeKind::Inner) || !exists {
                    return self.wrong(format!("field {field} of probe {probe} is not there"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn sets(&self, predicate: &Predicate) -> Result<(), QueryError> {
        match predicate {
            Predicate::InSet { set, .. } if *set >= self.pipeline.sets.len() => {
                self.wrong(format!("there is no set {set}"))
            }
            Predicate::InSet { value, .. } | Predicate::Between { value, .. } => self.sets_of_value(value),
            Predicate::Less(left, right) | Predicate::Equal(left, right) => {
                self.sets_of_value(left)?;
                self.sets_of_value(right)
            }
            Predicate::And(parts) | Predicate::Or(parts) => parts.iter().try_for_each(|part| self.sets(part)),
            Predicate::Not(inner) => self.sets(inner),
            Predicate::Always(_) | Predicate::FieldValid { .. } => Ok(()),
        }
    }

    fn sets_of_value(&self, value: &Value) -> Result<(), QueryError> {
        match value {
            Value::Add(left, right) | Value::Subtract(left, right) | Value::Multiply(left, right) => {
                self.sets_of_value(left)?;
                self.sets_of_value(right)
            }
            Value::If(condition, yes, no) => {
                self.sets(condition)?;
                self.sets_of_value(yes)?;
                self.sets_of_value(no)
            }
            Value::Input(_) | Value::Field { .. } | Value::Literal(_) => Ok(()),
        }
    }

    fn all_probes(&self) -> usize {
        self.pipeline.steps.iter().filter(|step| matches!(step, Step::Probe(_))).count()
    }

    fn build(&self, build: &Build) -> Result<(), QueryError> {
        let probes = self.all_probes();
        self.value(&build.key, probes)?;
        if build.domain.min > build.domain.max || build.domain.span() == u64::MAX {
            return self.wrong("keys over all 64-bit integers");
        }
        let width = build.entry_width;
        if !matches!(width, 1 | 8 | 16 | 32 | 64) || (width == 1 && !build.fields.is_empty()) {
            return self.wrong(format!("entries of {width} bits"));
        }
        if let Index::Hash { slots } = build.index {
            self.slots(slots)?;
        }
        for field in &build.fields {
            self.value(&field.value, probes)?;
            self.predicate(&field.valid, probes)?;
            let end = u32::from(field.shift) + u32::from(field.bits);
            let code_bits =
                u64::BITS - field.range.span().saturating_add(field.nullable.into()).leading_zeros();
            if field.range.min > field.range.max || end > width.into() || code_bits > field.bits.into() {
                return self.wrong("a field that does not fit its entry");
            }
        }
        Ok(())
    }

    fn slots(&self, slots: u64) -> Result<(), QueryError> {
        if slots.is_power_of_two() && slots >= 2 {
            return Ok(());
        }
        self.wrong(format!("a hash table of {slots} slots: not a power of two"))
    }

    fn aggregate(&self, aggregate: &Aggregate) -> Result<(), QueryError> {
        let probes = self.all_probes();
        for word in &aggregate.words {
            word.value.value().map_or(Ok(()), |value| self.value(value, probes))?;
            self.predicate(&word.valid, probes)?;
        }
        // The greatest index is that of the greatest codes.
        let mut greatest = 0_u64;
        for key in &aggregate.keys {
            self.value(&key.value, probes)?;
            self.predicate(&key.valid, probes)?;
            let greatest_code = key.range.span().saturating_add(key.nullable.into());
            let fits = key.range.min <= key.range.max && greatest_code < key.codes;
            let part = key.codes.checked_sub(1).and_then(|code| code.checked_mul(key.stride));
            match part.and_then(|part| greatest.checked_add(part)) {
                Some(sum) if fits => greatest = sum,
                _ => return self.wrong("groups' keys that do not fit 64 bits"),
            }
        }
        match aggregate.groups {
            Groups::One if aggregate.keys.is_empty() => Ok(()),
            Groups::One => self.wrong("one group with keys"),
            Groups::Dense { slots } => {
                let presence = aggregate.presence.is_some_and(|word| word < aggregate.words.len());
                if greatest < slots && presence {
                    return Ok(());
                }
                self.wrong("groups by index without room for all, or without a word that tells which exist")
            }
            Groups::Hash { slots } => {
                self.slots(slots)?;
                if greatest == u64::MAX { self.wrong("groups' keys that do not fit 64 bits") } else { Ok(()) }
            }
        }
    }
}
