//! When a pipeline needs what: which stages look at an input, which at what a probe found, and where each part of the groups' key is known.

use crate::plan::{GroupKey, Pipeline, Predicate, Probe, Sink, Step, Value};

/// One filter or one probe.
#[derive(Debug, Clone, Copy)]
pub enum Stage<'p> {
    /// Rows for which it does not hold are dropped.
    Filter(&'p Predicate),
    /// The n-th probe.
    Probe(usize, &'p Probe),
}

/// The steps, with each part of a conjunction on its own.
#[must_use]
pub fn stages(steps: &[Step]) -> Vec<Stage<'_>> {
    fn split<'p>(predicate: &'p Predicate, stages: &mut Vec<Stage<'p>>) {
        match predicate {
            Predicate::And(parts) => parts.iter().for_each(|part| split(part, stages)),
            Predicate::Always(true) => {}
            other => stages.push(Stage::Filter(other)),
        }
    }
    let (mut stages, mut probes) = (Vec::new(), 0);
    for step in steps {
        match step {
            Step::Filter(predicate) => split(predicate, &mut stages),
            Step::Probe(probe) => {
                stages.push(Stage::Probe(probes, probe));
                probes += 1;
            }
        }
    }
    stages
}

/// What a stage needs: inputs, and entries that probes found.
#[derive(Default)]
struct Needs {
    inputs: Vec<usize>,
    probes: Vec<usize>,
}

impl Needs {
    fn value(&mut self, value: &Value) {
        value.visit(&mut |variable| self.variable(variable));
    }

    fn predicate(&mut self, predicate: &Predicate) {
        predicate.visit(&mut |variable| self.variable(variable));
    }

    fn variable(&mut self, variable: &Value) {
        match variable {
            Value::Input(input) => self.inputs.push(*input),
            Value::Field { probe, .. } => self.probes.push(*probe),
            _ => {}
        }
    }

    fn key(&mut self, key: &GroupKey) {
        self.value(&key.value);
        if key.nullable {
            self.predicate(&key.valid);
        }
    }

    fn of_stage(stage: &Stage<'_>) -> Self {
        let mut needs = Self::default();
        match stage {
            Stage::Filter(predicate) => needs.predicate(predicate),
            Stage::Probe(_, probe) => {
                needs.value(&probe.key);
                needs.predicate(&probe.valid);
            }
        }
        needs
    }

    /// What the sink needs, but for the keys of groups.
    fn of_sink(sink: &Sink) -> Self {
        let mut needs = Self::default();
        match sink {
            Sink::Build(build) => {
                needs.value(&build.key);
                for field in &build.fields {
                    needs.value(&field.value);
                    if field.nullable {
                        needs.predicate(&field.valid);
                    }
                }
            }
            Sink::Aggregate(aggregate) => {
                for word in &aggregate.words {
                    word.value.value().into_iter().for_each(|value| needs.value(value));
                    needs.predicate(&word.valid);
                }
            }
        }
        needs
    }
}

/// When what is needed: stages in order, of which the sink is the last; none where nothing needs it.
#[derive(Debug)]
pub struct Uses {
    /// Of each input.
    pub inputs: Vec<Vec<usize>>,
    /// Of the entries that each probe found.
    pub probes: Vec<Vec<usize>>,
    /// The stage after which each part of the groups' key is known.
    pub keys: Vec<usize>,
}

impl Uses {
    /// The uses of `pipeline`, whose steps are `stages`. What probes that are `late` find is fetched only when a later stage looks at it.
    #[must_use]
    pub fn of(pipeline: &Pipeline, stages: &[Stage<'_>], late: &[bool]) -> Self {
        let sink = stages.len();
        let mut needs: Vec<Needs> = stages.iter().map(Needs::of_stage).collect();
        needs.push(Needs::of_sink(&pipeline.sink));
        // The stage at which each probe's entries are known.
        let known_at: Vec<usize> = (0..pipeline.probes().count())
            .map(|probe| {
                let of_probe =
                    |stage: &Stage<'_>| matches!(stage, Stage::Probe(number, _) if *number == probe);
                let looks = |needs: &Needs| needs.probes.contains(&probe);
                let is_late = late.get(probe).copied().unwrap_or(false);
                if is_late { needs.iter().position(looks) } else { stages.iter().position(of_probe) }
                    .unwrap_or(sink)
            })
            .collect();
        let mut keys = Vec::new();
        let group_keys = match &pipeline.sink {
            Sink::Aggregate(aggregate) => aggregate.keys.as_slice(),
            Sink::Build(_) => &[],
        };
        for key in group_keys {
            let mut of_key = Needs::default();
            of_key.key(key);
            // An input is there from the first stage that needs it on; filters that look at it may have narrowed the key's range, which no row exceeds behind the last of them.
            let from = |input: &usize| {
                let looks = |needs: &Needs| needs.inputs.contains(input);
                let filters = |(stage, needs)| matches!(stage, &Stage::Filter(_)) && looks(needs);
                let last_filter = stages.iter().zip(&needs).rposition(filters);
                last_filter.or_else(|| needs.iter().position(looks)).unwrap_or(sink)
            };
            let probes = of_key.probes.iter().map(|&probe| known_at.get(probe).copied().unwrap_or(sink));
            let known = of_key.inputs.iter().map(from).chain(probes).max().unwrap_or(sink);
            if let Some(stage) = needs.get_mut(known) {
                stage.inputs.extend(&of_key.inputs);
                stage.probes.extend(&of_key.probes);
            }
            keys.push(known);
        }
        let stages_with = |has: &dyn Fn(&Needs) -> bool| -> Vec<usize> {
            needs.iter().enumerate().filter(|(_, needs)| has(needs)).map(|(stage, _)| stage).collect()
        };
        Self {
            inputs: (0..pipeline.inputs.len())
                .map(|input| stages_with(&|needs| needs.inputs.contains(&input)))
                .collect(),
            probes: (0..pipeline.probes().count())
                .map(|probe| stages_with(&|needs| needs.probes.contains(&probe)))
                .collect(),
            keys,
        }
    }
}
