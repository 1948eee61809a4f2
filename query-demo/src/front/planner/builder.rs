//! A pipeline while it is planned.

use std::collections::HashMap;

use datafusion::common::{Column, DFSchema};
use datafusion::execution::SessionState;
use datafusion::logical_expr::Expr;

use super::Catalog;
use super::estimate::estimate;
use crate::QueryError;
use crate::front::columns::ColumnInfo;
use crate::front::graph::relation_of;
use crate::front::lower::{Lowering, Scope, all, unsupported};
use crate::plan::{Input, Pipeline, Predicate, Probe, Range, Set, Sink, Step, Value, combined};

/// A pipeline over one relation.
pub struct Builder<'c> {
    catalog: &'c Catalog,
    node: usize,
    pipeline: Pipeline,
    /// The fields that probes have brought: probe, field, and the column's range.
    fields: HashMap<(usize, String), (usize, usize)>,
    field_ranges: HashMap<(usize, usize), Range>,
    /// What filters have left of inputs' ranges.
    left: HashMap<usize, Range>,
    probes: usize,
    kept: f64,
}

impl<'c> Builder<'c> {
    /// A pipeline that scans relation `node`.
    pub fn new(catalog: &'c Catalog, node: usize) -> Result<Self, QueryError> {
        let relation = catalog.relation(node)?;
        let pipeline = Pipeline {
            table: relation.name.clone(),
            rows: relation.table.row_count(),
            inputs: Vec::new(),
            steps: Vec::new(),
            kept: Vec::new(),
            sets: Vec::new(),
            // Replaced by `sink`.
            sink: Sink::Aggregate(crate::plan::Aggregate {
                keys: Vec::new(),
                words: Vec::new(),
                groups: crate::plan::Groups::One,
                presence: None,
            }),
        };
        let (fields, field_ranges, left) = Default::default();
        Ok(Self { catalog, node, pipeline, fields, field_ranges, left, probes: 0, kept: 1.0 })
    }

    /// Rows of the relation.
    pub fn rows(&self) -> u64 {
        self.pipeline.rows
    }

    /// Fraction of the rows that the steps so far leave, as far as statistics tell.
    pub fn selectivity(&self) -> f64 {
        self.kept
    }

    /// Whether every column of `expr` is the relation's own or was brought by a probe.
    pub fn knows(&self, expr: &Expr) -> bool {
        expr.column_refs().into_iter().all(|column| match relation_of(column) {
            Some(relation) if relation == self.node => true,
            Some(relation) => self.fields.contains_key(&(relation, column.name.clone())),
            None => false,
        })
    }

    /// Adds a step that keeps `kept` of the rows.
    pub fn add_step(&mut self, step: Step, kept: f64) {
        self.kept *= kept;
        if let Step::Filter(Predicate::Between { value: Value::Input(input), low, high }) = &step {
            let range = self.input_range(*input);
            self.left.insert(*input, Range { min: range.min.max(*low), max: range.max.min(*high) });
        }
        self.pipeline.steps.push(step);
        self.pipeline.kept.push(millionths(self.kept));
    }

    /// Adds a step for each condition, the most selective first.
    pub fn filters(&mut self, exprs: &[&Expr]) -> Result<(), QueryError> {
        let mut predicates = Vec::new();
        for expr in by_column(exprs) {
            predicates.push(Lowering::new(self).truth(&expr, true)?);
        }
        // Conjuncts of one value become one range; what is left of each is a step.
        let mut conjuncts = match all(predicates) {
            Predicate::And(parts) => parts,
            one => vec![one],
        };
        conjuncts.sort_by(|left, right| self.estimate(left).total_cmp(&self.estimate(right)));
        conjuncts.into_iter().for_each(|conjunct| self.filter(conjunct));
        Ok(())
    }

    /// Adds a step, unless the predicate always holds.
    pub fn filter(&mut self, predicate: Predicate) {
        if predicate != Predicate::Always(true) {
            let kept = self.estimate(&predicate);
            self.add_step(Step::Filter(predicate), kept);
        }
    }

    /// What filters have left of an input's range.
    fn input_range(&self, input: usize) -> Range {
        let whole = self.pipeline.inputs.get(input).map_or(Range { min: 0, max: 0 }, |input| input.range);
        self.left.get(&input).copied().unwrap_or(whole)
    }

    /// Adds a probe; what it finds has `fields`, of these ranges.
    pub fn add_probe(&mut self, probe: Probe, fields: &[(Column, Range)], kept: f64) {
        for (field, (column, range)) in fields.iter().enumerate() {
            if let Some(relation) = relation_of(column) {
                self.fields.insert((relation, column.name.clone()), (self.probes, field));
            }
            self.field_ranges.insert((self.probes, field), *range);
        }
        self.probes += 1;
        self.add_step(Step::Probe(probe), kept);
    }

    /// Sets where the rows go.
    pub fn sink(&mut self, sink: Sink) {
        self.pipeline.sink = sink;
    }

    /// The fraction of rows that `predicate` keeps, as far as ranges tell.
    pub fn estimate(&self, predicate: &Predicate) -> f64 {
        estimate(predicate, &self.pipeline.sets, &|value| self.range(value))
    }

    /// Whether the value is above zero in every row.
    pub fn is_positive(&self, value: &Value) -> bool {
        self.range(value).is_some_and(|range| range.min > 0)
    }

    fn range(&self, value: &Value) -> Option<Range> {
        let bounds = |value: &Value| {
            let range = self.range(value)?;
            Some((i128::from(range.min), i128::from(range.max)))
        };
        let (min, max) = match value {
            Value::Input(input) => return self.pipeline.inputs.get(*input).map(|input| input.range),
            Value::Field { probe, field } => return self.field_ranges.get(&(*probe, *field)).copied(),
            Value::Literal(value) => return Some(Range { min: *value, max: *value }),
            Value::Add(left, right) => combined(bounds(left)?, bounds(right)?, i128::checked_add)?,
            Value::Subtract(left, right) => combined(bounds(left)?, bounds(right)?, i128::checked_sub)?,
            Value::Multiply(left, right) => combined(bounds(left)?, bounds(right)?, i128::checked_mul)?,
            Value::If(_, yes, no) => return Some(self.range(yes)?.union(self.range(no)?)),
        };
        Range::new(min, max)
    }

    /// The pipeline, without inputs and sets that nothing uses.
    ///
    /// # Errors
    /// A table of which no column can be read, so that not even its rows can be counted.
    pub fn finish(mut self) -> Result<Pipeline, QueryError> {
        let mut used = vec![false; self.pipeline.inputs.len()];
        self.pipeline.visit(&mut |value| {
            if let Value::Input(input) = value
                && let Some(used) = used.get_mut(*input)
            {
                *used = true;
            }
        });
        if used.iter().all(|used| !used) {
            if self.pipeline.inputs.is_empty() {
                let input = self.any_input()?;
                self.pipeline.inputs.push(input);
            }
            self.pipeline.inputs.truncate(1);
            used = vec![true];
        }
        let places: Vec<usize> = used
            .iter()
            .scan(0, |next, &used| {
                let place = *next;
                *next += usize::from(used);
                Some(place)
            })
            .collect();
        let mut keep = used.iter();
        self.pipeline.inputs.retain(|_| keep.next().copied().unwrap_or_default());
        self.pipeline.renumber(&|input| places.get(input).copied().unwrap_or_default());
        Ok(self.pipeline)
    }

    /// Some column, where only the number of rows matters.
    fn any_input(&self) -> Result<Input, QueryError> {
        let relation = self.catalog.relation(self.node)?;
        let names = relation.table.schema().fields().iter().map(|field| field.name());
        let found =
            names.filter_map(|name| relation.column(name).ok()).min_by_key(|info| info.values.value_width);
        let missing = || {
            QueryError::unsupported(format!(
                "the table {}, none of whose columns hold numbers",
                relation.name
            ))
        };
        found.map(|info| info.values).ok_or_else(missing)
    }

    fn input(&mut self, input: &Input) -> usize {
        let known = self.pipeline.inputs.iter().position(|known| known == input);
        known.unwrap_or_else(|| {
            self.pipeline.inputs.push(input.clone());
            self.pipeline.inputs.len() - 1
        })
    }
}

impl Scope for Builder<'_> {
    fn resolve(&mut self, column: &Column) -> Result<(Value, Predicate, ColumnInfo), QueryError> {
        let info = self.catalog.column(column)?;
        let relation = relation_of(column).unwrap_or(usize::MAX);
        if relation == self.node {
            let input = self.input(&info.values);
            let value = Value::Input(input);
            let valid = match &info.validity {
                None => Predicate::Always(true),
                Some(validity) => {
                    Predicate::Between { value: Value::Input(self.input(validity)), low: 1, high: 1 }
                }
            };
            let range = self.input_range(input);
            return Ok((value, valid, ColumnInfo { values: Input { range, ..info.values }, ..info }));
        }
        let field = self.fields.get(&(relation, column.name.clone()));
        let &(probe, field) = field.ok_or_else(|| unsupported(&Expr::Column(column.clone())))?;
        let valid = match info.validity {
            None => Predicate::Always(true),
            Some(_) => Predicate::FieldValid { probe, field },
        };
        let range = self.field_ranges.get(&(probe, field)).copied().unwrap_or(info.values.range);
        Ok((
            Value::Field { probe, field },
            valid,
            ColumnInfo { values: Input { range, ..info.values }, ..info },
        ))
    }

    fn add_set(&mut self, set: Set) -> usize {
        let known = self.pipeline.sets.iter().position(|known| *known == set);
        known.unwrap_or_else(|| {
            self.pipeline.sets.push(set);
            self.pipeline.sets.len() - 1
        })
    }

    fn schema(&self) -> &DFSchema {
        &self.catalog.schema
    }

    fn state(&self) -> &SessionState {
        &self.catalog.state
    }
}

/// Conditions on one and the same column joined by AND: on a column with a dictionary they are decided together.
fn by_column(exprs: &[&Expr]) -> Vec<Expr> {
    let mut joined: Vec<(Option<Column>, Expr)> = Vec::new();
    for &expr in exprs {
        let mut columns = expr.column_refs().into_iter();
        let column = columns.next().filter(|_| columns.next().is_none()).cloned();
        match joined.iter_mut().find(|(known, _)| column.is_some() && *known == column) {
            Some((_, known)) => *known = known.clone().and(expr.clone()),
            None => joined.push((column, expr.clone())),
        }
    }
    joined.into_iter().map(|(_, expr)| expr).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a million")]
fn millionths(fraction: f64) -> u32 {
    (fraction.clamp(0.0, 1.0) * 1e6) as u32
}
