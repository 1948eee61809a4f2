//! Plans as text.

use std::fmt::{self, Display, Formatter};

use super::{
    Aggregate, Buffer, Build, Groups, Index, Pipeline, Plan, Predicate, ProbeKind, Sink, Step, Value, Word,
    WordValue,
};

impl Display for Plan {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (index, pipeline) in self.pipelines.iter().enumerate() {
            writeln!(formatter, "pipeline {index}: scan {}, {} rows", pipeline.table, pipeline.rows)?;
            let mut probe_number = 0;
            for step in &pipeline.steps {
                match step {
                    Step::Filter(predicate) => writeln!(formatter, "  filter {}", pipeline.show(predicate))?,
                    Step::Probe(probe) => {
                        let kind = match probe.kind {
                            ProbeKind::Inner => "probe",
                            ProbeKind::Semi => "probe (semi)",
                            ProbeKind::Anti => "probe (anti)",
                        };
                        let key = pipeline.show_value(&probe.key);
                        writeln!(
                            formatter,
                            "  {kind} p{probe_number} = table of pipeline {} at {key}",
                            probe.build
                        )?;
                        probe_number += 1;
                    }
                }
            }
            match &pipeline.sink {
                Sink::Build(build) => pipeline.show_build(build, formatter)?,
                Sink::Aggregate(aggregate) => pipeline.show_aggregate(aggregate, formatter)?,
            }
        }
        Ok(())
    }
}

impl Pipeline {
    fn show_build(&self, build: &Build, formatter: &mut Formatter<'_>) -> fmt::Result {
        let index = match build.index {
            Index::Direct => format!("direct index over {}", build.domain),
            Index::Hash { slots } => format!("hash of {slots} slots"),
        };
        let entry =
            if build.fields.is_empty() { "1 bit".to_owned() } else { format!("{} bits", build.entry_width) };
        write!(formatter, "  build {index}, {entry} a key, key {}", self.show_value(&build.key))?;
        for field in &build.fields {
            write!(formatter, ", field {} ({} bits)", self.show_value(&field.value), field.bits)?;
        }
        writeln!(formatter)
    }

    fn show_aggregate(&self, aggregate: &Aggregate, formatter: &mut Formatter<'_>) -> fmt::Result {
        let groups = match aggregate.groups {
            Groups::One => "one group".to_owned(),
            Groups::Dense { slots } => format!("{slots} groups by index"),
            Groups::Hash { slots } => format!("groups by hash, {slots} slots"),
        };
        write!(formatter, "  aggregate {groups}")?;
        for key in &aggregate.keys {
            write!(formatter, ", key {} ({} codes)", self.show_value(&key.value), key.codes)?;
        }
        for word in &aggregate.words {
            write!(formatter, ", {}", self.show_word(word))?;
        }
        writeln!(formatter)
    }

    fn show_word(&self, word: &Word) -> String {
        let value = word.value.value().map(|value| self.show_value(value)).unwrap_or_default();
        let name = match &word.value {
            WordValue::Count => "count",
            WordValue::Sum(_) => "sum",
            WordValue::SumLow(_) => "sum of low halves",
            WordValue::SumHigh(_) => "sum of high halves",
            WordValue::Greatest { .. } => "greatest",
            WordValue::Least { .. } => "least",
        };
        match &word.valid {
            Predicate::Always(true) => format!("{name}({value})"),
            valid => format!("{name}({value}) where {}", self.show(valid)),
        }
    }

    /// The value as text.
    #[must_use]
    pub fn show_value(&self, value: &Value) -> String {
        let pair = |left: &Value, sign: &str, right: &Value| {
            format!("({} {sign} {})", self.show_value(left), self.show_value(right))
        };
        match value {
            Value::Input(index) => self.inputs.get(*index).map_or_else(
                || format!("input {index}"),
                |input| match input.buffer {
                    Buffer::Values => input.name.clone(),
                    Buffer::Validity => format!("valid({})", input.name),
                },
            ),
            Value::Field { probe, field } => format!("p{probe}.{field}"),
            Value::Literal(value) => value.to_string(),
            Value::Add(left, right) => pair(left, "+", right),
            Value::Subtract(left, right) => pair(left, "-", right),
            Value::Multiply(left, right) => pair(left, "*", right),
            Value::If(condition, yes, no) => {
                format!("({} ? {} : {})", self.show(condition), self.show_value(yes), self.show_value(no))
            }
        }
    }

    /// The predicate as text.
    #[must_use]
    pub fn show(&self, predicate: &Predicate) -> String {
        let many = |parts: &[Predicate], word: &str| {
            let parts: Vec<String> = parts.iter().map(|part| self.show(part)).collect();
            format!("({})", parts.join(word))
        };
        match predicate {
            Predicate::Always(truth) => truth.to_string(),
            Predicate::Between { value, low, high } if low == high => {
                format!("{} = {low}", self.show_value(value))
            }
            Predicate::Between { value, low, high } => {
                format!("{} in {low}..={high}", self.show_value(value))
            }
            Predicate::Less(left, right) => format!("{} < {}", self.show_value(left), self.show_value(right)),
            Predicate::Equal(left, right) => {
                format!("{} = {}", self.show_value(left), self.show_value(right))
            }
            Predicate::InSet { value, set } => {
                let set = self.sets.get(*set).map(|set| format!("{set:?}")).unwrap_or_default();
                format!("{} in a set of {set}", self.show_value(value))
            }
            Predicate::FieldValid { probe, field } => format!("valid(p{probe}.{field})"),
            Predicate::And(parts) => many(parts, " and "),
            Predicate::Or(parts) => many(parts, " or "),
            Predicate::Not(inner) => format!("not {}", self.show(inner)),
        }
    }
}
