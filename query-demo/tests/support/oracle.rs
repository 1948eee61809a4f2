//! The definition of a plan, row at a time over Arrow arrays. Slow and obvious.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, UInt64Type};
use arrow_io::table::ReadOptions;
use query_demo::QueryError;
use query_demo::plan::{
    Aggregate, Buffer, Build, GroupWords, Groups, Input, Pipeline, Plan, Predicate, ProbeKind, Range, Sink,
    Step, Value, WordValue,
};
use query_demo::scan::Tables;

/// What a build made: the packed entries of each key.
type Built = BTreeMap<i64, u64>;

/// Runs the plan. Groups come by ascending index.
pub fn run(plan: &Plan, tables: &Tables) -> Result<GroupWords, QueryError> {
    let mut built: Vec<Built> = Vec::new();
    for pipeline in &plan.pipelines {
        let rows = Rows::read(pipeline, tables);
        match &pipeline.sink {
            Sink::Build(build) => built.push(run_build(plan, pipeline, build, &rows, &built)?),
            Sink::Aggregate(aggregate) => return run_aggregate(plan, pipeline, aggregate, &rows, &built),
        }
    }
    panic!("a plan without an aggregation")
}

/// A pipeline's inputs as integers, column by column.
struct Rows {
    columns: Vec<Vec<i64>>,
    count: usize,
}

impl Rows {
    fn read(pipeline: &Pipeline, tables: &Tables) -> Self {
        let table = &tables[&pipeline.table];
        let batches: Vec<RecordBatch> =
            table.read(&ReadOptions::default()).unwrap().map(Result::unwrap).collect();
        let batch = concat_batches(table.schema(), &batches).unwrap();
        let columns = pipeline.inputs.iter().map(|input| {
            let array = batch.column(input.column);
            match input.buffer {
                Buffer::Validity => (0..array.len()).map(|row| i64::from(array.is_valid(row))).collect(),
                Buffer::Values => integers(input, array, table.dictionary(input.column).unwrap()),
            }
        });
        Self { columns: columns.collect(), count: batch.num_rows() }
    }
}

/// Values as integers; those under nulls may be anything of the range.
fn integers(input: &Input, array: &ArrayRef, dictionary: Option<ArrayRef>) -> Vec<i64> {
    let count = array.len();
    let any = input.range.min;
    let or_any = |row: usize, value: &dyn Fn() -> i64| if array.is_valid(row) { value() } else { any };
    match array.data_type() {
        DataType::Utf8 => {
            // A table without rows has no dictionary.
            let entries = dictionary.iter().flat_map(|entries| entries.as_string::<i32>().iter());
            let codes: BTreeMap<&str, i64> =
                entries.zip(0..).map(|(entry, code)| (entry.unwrap(), code)).collect();
            let strings = array.as_string::<i32>();
            (0..count).map(|row| or_any(row, &|| codes[strings.value(row)])).collect()
        }
        DataType::Boolean => {
            (0..count).map(|row| or_any(row, &|| array.as_boolean().value(row).into())).collect()
        }
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>();
            (0..count).map(|row| or_any(row, &|| i64::try_from(values.value(row)).unwrap())).collect()
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>();
            (0..count).map(|row| or_any(row, &|| values.value(row).cast_signed())).collect()
        }
        _ => {
            let wide = cast(array, &DataType::Int64).unwrap();
            let values = wide.as_primitive::<Int64Type>();
            (0..count).map(|row| or_any(row, &|| values.value(row))).collect()
        }
    }
}

/// A row on its way: its inputs, and the entry that each probe so far found.
struct Row<'a> {
    plan: &'a Plan,
    pipeline: &'a Pipeline,
    rows: &'a Rows,
    row: usize,
    found: Vec<Option<u64>>,
}

impl Row<'_> {
    /// Whether the row passes all steps.
    fn passes(&mut self, built: &[Built]) -> bool {
        for step in &self.pipeline.steps {
            match step {
                Step::Filter(predicate) => {
                    if !self.holds(predicate) {
                        return false;
                    }
                }
                Step::Probe(probe) => {
                    let entry = if self.holds(&probe.valid) {
                        built[probe.build].get(&self.value(&probe.key)).copied()
                    } else {
                        None
                    };
                    if entry.is_some() == (probe.kind == ProbeKind::Anti) {
                        return false;
                    }
                    self.found.push(entry);
                }
            }
        }
        true
    }

    fn code(&self, probe: usize, field: usize) -> u64 {
        let field = &self.plan.probed(self.pipeline, probe).unwrap().fields[field];
        let entry = self.found[probe].unwrap();
        (0..u32::from(field.bits)).map(|bit| (entry >> (u32::from(field.shift) + bit) & 1) << bit).sum()
    }

    fn value(&self, value: &Value) -> i64 {
        match value {
            Value::Input(input) => self.rows.columns[*input][self.row],
            Value::Field { probe, field } => {
                let code = self.code(*probe, *field).cast_signed();
                let field = &self.plan.probed(self.pipeline, *probe).unwrap().fields[*field];
                if field.nullable { code - 1 + field.range.min } else { code + field.range.min }
            }
            Value::Literal(value) => *value,
            Value::Add(left, right) => self.value(left) + self.value(right),
            Value::Subtract(left, right) => self.value(left) - self.value(right),
            Value::Multiply(left, right) => self.value(left) * self.value(right),
            Value::If(condition, yes, no) => self.value(if self.holds(condition) { yes } else { no }),
        }
    }

    fn holds(&self, predicate: &Predicate) -> bool {
        match predicate {
            Predicate::Always(holds) => *holds,
            Predicate::Between { value, low, high } => (*low..=*high).contains(&self.value(value)),
            Predicate::Less(left, right) => self.value(left) < self.value(right),
            Predicate::Equal(left, right) => self.value(left) == self.value(right),
            Predicate::InSet { value, set } => self.pipeline.sets[*set].has(self.value(value)),
            Predicate::FieldValid { probe, field } => {
                let nullable = self.plan.probed(self.pipeline, *probe).unwrap().fields[*field].nullable;
                !nullable || self.code(*probe, *field) != 0
            }
            Predicate::And(parts) => parts.iter().all(|part| self.holds(part)),
            Predicate::Or(parts) => parts.iter().any(|part| self.holds(part)),
            Predicate::Not(inner) => !self.holds(inner),
        }
    }

    /// The code of a field or of a part of a group's key; `None` where the value lies outside its range.
    fn code_of(&self, value: &Value, valid: &Predicate, nullable: bool, range: Range) -> Option<u64> {
        if nullable && !self.holds(valid) {
            return Some(0);
        }
        let value = self.value(value);
        range.has(value).then(|| (value - range.min).cast_unsigned() + u64::from(nullable))
    }
}

/// Calls `act` for each row that passes the steps.
fn each_row(
    plan: &Plan,
    pipeline: &Pipeline,
    rows: &Rows,
    built: &[Built],
    mut act: impl FnMut(&Row<'_>) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    for row in 0..rows.count {
        let mut row = Row { plan, pipeline, rows, row, found: Vec::new() };
        if row.passes(built) {
            act(&row)?;
        }
    }
    Ok(())
}

fn statistics(pipeline: &Pipeline) -> QueryError {
    QueryError::Statistics { table: pipeline.table.clone() }
}

fn run_build(
    plan: &Plan,
    pipeline: &Pipeline,
    build: &Build,
    rows: &Rows,
    built: &[Built],
) -> Result<Built, QueryError> {
    let mut table = Built::new();
    each_row(plan, pipeline, rows, built, |row| {
        let key = row.value(&build.key);
        let mut entry = 0;
        for field in &build.fields {
            let code = row.code_of(&field.value, &field.valid, field.nullable, field.range);
            entry |= code.ok_or_else(|| statistics(pipeline))? << field.shift;
        }
        if !build.domain.has(key) {
            return Err(statistics(pipeline));
        }
        if table.insert(key, entry).is_some() && build.unique {
            let (table, column) = (pipeline.table.clone(), build.key_name.clone());
            return Err(QueryError::DuplicateKey { table, column });
        }
        Ok(())
    })?;
    Ok(table)
}

fn run_aggregate(
    plan: &Plan,
    pipeline: &Pipeline,
    aggregate: &Aggregate,
    rows: &Rows,
    built: &[Built],
) -> Result<GroupWords, QueryError> {
    let mut groups: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let none = vec![0; aggregate.words.len()];
    if aggregate.groups == Groups::One {
        groups.insert(0, none.clone());
    }
    each_row(plan, pipeline, rows, built, |row| {
        let mut index = 0;
        for key in &aggregate.keys {
            let code = row.code_of(&key.value, &key.valid, key.nullable, key.range);
            index += code.ok_or_else(|| statistics(pipeline))? * key.stride;
        }
        let words = groups.entry(index).or_insert_with(|| none.clone());
        for (total, word) in words.iter_mut().zip(&aggregate.words) {
            if !row.holds(&word.valid) {
                continue;
            }
            let of = |value| row.value(value);
            match &word.value {
                WordValue::Count => *total += 1,
                WordValue::Sum(value) => *total = total.wrapping_add(of(value).cast_unsigned()),
                WordValue::SumLow(value) => *total += of(value).cast_unsigned() & 0xFFFF_FFFF,
                WordValue::SumHigh(value) => *total = total.wrapping_add((of(value) >> 32).cast_unsigned()),
                WordValue::Greatest { value, min } => {
                    *total = (*total).max((of(value) - min + 1).cast_unsigned());
                }
                WordValue::Least { value, max } => {
                    *total = (*total).max((max - of(value) + 1).cast_unsigned());
                }
            }
        }
        Ok(())
    })?;
    Ok(GroupWords {
        indexes: groups.keys().copied().collect(),
        words: groups.into_values().flatten().collect(),
    })
}
