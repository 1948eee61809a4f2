//! Join order and pipelines.
//!
//! The relations of a join graph become a tree: the one with the most rows is scanned last and probes the others, which probe their own neighbours while they are built. That needs every
//! edge to lead to a unique key, which statistics can refute and building proves.

mod builder;
mod estimate;
mod tree;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::{Column, DFSchema};
use datafusion::execution::SessionState;
use datafusion::logical_expr::logical_plan::Aggregate as LogicalAggregate;
use datafusion::logical_expr::{Expr, LogicalPlan};

use self::builder::Builder;
use self::tree::Tree;
use super::aggregates::{Words, function};
use super::columns::{ColumnInfo, Relation};
use super::graph::{Graph, SemiJoin, relation_of, relations_of, rewrite};
use super::lower::{Lowered, Lowering, all, unsupported};
use super::output::Output;
use crate::QueryError;
use crate::plan::{
    Aggregate, Build, Field, GroupKey, Groups, Index, Pipeline, Plan, Predicate, Probe, ProbeKind, Range,
    Sink, Step, Value,
};
use crate::scan::Tables;

/// Groups are indexed directly up to so many indexes.
const MAX_DENSE_GROUPS: u64 = 1 << 21;
/// A hash table of groups begins with no more slots.
const MAX_FIRST_SLOTS: u64 = 1 << 22;
/// A table of keys may have so many entries a row that it is built from, to be indexed directly...
const MAX_ENTRIES_PER_ROW: u64 = 8;
/// ... or so many in any case.
const SMALL_TABLE: u64 = 1 << 20;

/// Plans an aggregation.
///
/// # Errors
/// What pipelines cannot express, or a file that cannot be read.
pub fn plan(
    aggregate: &LogicalAggregate,
    tables: &Tables,
    state: &Arc<SessionState>,
) -> Result<(Plan, Output), QueryError> {
    let (graph, columns) = Graph::new(&aggregate.input)?;
    let catalog = Catalog::new(&graph, tables, Arc::clone(state))?;
    let input: &LogicalPlan = &aggregate.input;
    let over_graph = |exprs: &[Expr]| -> Result<Vec<Expr>, QueryError> {
        exprs.iter().map(|expr| rewrite(expr, input.schema(), &columns)).collect()
    };
    let wanted =
        Wanted { groups: over_graph(&aggregate.group_expr)?, functions: over_graph(&aggregate.aggr_expr)? };
    let mut planner = Planner { catalog: &catalog, pipelines: Vec::new() };
    let exprs: Vec<&Expr> = wanted.groups.iter().chain(&wanted.functions).collect();
    let tree = Tree::new(&graph, &catalog, None, &exprs)?;
    let mut builder = planner.relation(&graph, &tree, tree.root, &exprs)?;
    let schema = Arc::new(aggregate.schema.as_arrow().clone());
    let output = aggregation(&mut builder, &wanted, schema)?;
    let pipeline = builder.finish()?;
    planner.pipelines.push(pipeline);
    Ok((Plan { pipelines: planner.pipelines }, output))
}

/// What an aggregation asks for, over the graph.
struct Wanted {
    groups: Vec<Expr>,
    functions: Vec<Expr>,
}

/// The relations of a query and what is known of their columns.
#[derive(Debug)]
pub struct Catalog {
    relations: BTreeMap<usize, Relation>,
    schema: DFSchema,
    state: Arc<SessionState>,
    columns: RefCell<HashMap<(usize, String), ColumnInfo>>,
}

impl Catalog {
    fn new(graph: &Graph, tables: &Tables, state: Arc<SessionState>) -> Result<Self, QueryError> {
        let mut relations = BTreeMap::new();
        collect(graph, tables, &mut relations)?;
        let mut schema = DFSchema::empty();
        for relation in relations.values() {
            schema = schema.join(&relation.schema()?)?;
        }
        Ok(Self { relations, schema, state, columns: RefCell::default() })
    }

    fn relation(&self, number: usize) -> Result<&Relation, QueryError> {
        let missing = || QueryError::unsupported(format!("relation {number}, which does not exist"));
        self.relations.get(&number).ok_or_else(missing)
    }

    /// What the file says of a column.
    fn column(&self, column: &Column) -> Result<ColumnInfo, QueryError> {
        let number = relation_of(column).ok_or_else(|| unsupported(&Expr::Column(column.clone())))?;
        let key = (number, column.name.clone());
        if let Some(known) = self.columns.borrow().get(&key) {
            return Ok(known.clone());
        }
        let info = self.relation(number)?.column(&column.name)?;
        self.columns.borrow_mut().insert(key, info.clone());
        Ok(info)
    }

    fn rows(&self, number: usize) -> u64 {
        self.relations.get(&number).map_or(0, |relation| relation.table.row_count())
    }
}

fn collect(
    graph: &Graph,
    tables: &Tables,
    relations: &mut BTreeMap<usize, Relation>,
) -> Result<(), QueryError> {
    for (&number, name) in &graph.relations {
        relations.insert(number, Relation::new(number, name, tables)?);
    }
    graph.semis.iter().try_for_each(|semi| collect(&semi.inner, tables, relations))
}

/// A part of a key that was packed into one integer: its range on the side that was built, and its factor.
#[derive(Debug, Clone, Copy)]
struct KeyPart {
    range: Range,
    stride: i64,
}

/// A table that a pipeline builds, as the pipeline that probes it needs to know it.
struct Built {
    pipeline: usize,
    /// Fraction of the rows that are left, as far as statistics tell.
    selectivity: f64,
    parts: Vec<KeyPart>,
    /// The columns that entries keep, and their ranges among the rows that were left.
    fields: Vec<(Column, Range)>,
    /// Bytes of the table.
    bytes: u64,
}

struct Planner<'c> {
    catalog: &'c Catalog,
    pipelines: Vec<Pipeline>,
}

/// A table that a pipeline probes, when its keys are known.
struct Pending {
    built: Built,
    keys: Vec<Expr>,
    kind: ProbeKind,
}

impl<'c> Planner<'c> {
    /// The pipeline of relation `node` up to its sink: filters and probes. `above` are the expressions that pipelines further up evaluate.
    fn relation(
        &mut self,
        graph: &Graph,
        tree: &Tree,
        node: usize,
        above: &[&Expr],
    ) -> Result<Builder<'c>, QueryError> {
        let own: Vec<&Expr> = tree.attached(node).collect();
        let semis: Vec<&SemiJoin> =
            graph.semis.iter().filter(|semi| tree.place_of(semi) == Some(node)).collect();
        let semi_keys = semis.iter().flat_map(|semi| semi.keys.iter().map(|(outer, _)| outer));
        let needed: Vec<&Expr> = above.iter().copied().chain(own.iter().copied()).chain(semi_keys).collect();
        let mut pending = Vec::new();
        for edge in tree.children(node) {
            let built = self.build(graph, tree, edge.child, &needed, &edge.child_keys(), true)?;
            pending.push(Pending { built, keys: edge.parent_keys(), kind: ProbeKind::Inner });
        }
        for semi in semis {
            let inner_keys: Vec<Expr> = semi.keys.iter().map(|(_, inner)| inner.clone()).collect();
            let keys: Vec<Expr> = semi.keys.iter().map(|(outer, _)| outer.clone()).collect();
            let wanted: Vec<&Expr> = inner_keys.iter().collect();
            let inner_tree = Tree::new(&semi.inner, self.catalog, Some(&inner_keys), &wanted)?;
            let built = self.build(&semi.inner, &inner_tree, inner_tree.root, &[], &inner_keys, false)?;
            let kind = if semi.anti { ProbeKind::Anti } else { ProbeKind::Semi };
            pending.push(Pending { built, keys, kind });
        }
        let mut builder = Builder::new(self.catalog, node)?;
        let (local, mut residual): (Vec<&Expr>, Vec<&Expr>) =
            own.into_iter().partition(|expr| relations_of(expr).iter().all(|&relation| relation == node));
        builder.filters(&local)?;
        pending.sort_by(|left, right| right.rank().total_cmp(&left.rank()));
        while !pending.is_empty() {
            let ready = pending.iter().position(|one| one.keys.iter().all(|key| builder.knows(key)));
            let ready =
                ready.ok_or_else(|| QueryError::unsupported("a semi join on columns of several tables"))?;
            let one = pending.remove(ready);
            builder.probe(one)?;
            let (now, later): (Vec<&Expr>, Vec<&Expr>) =
                residual.into_iter().partition(|expr| builder.knows(expr));
            builder.filters(&now)?;
            residual = later;
        }
        match residual.first() {
            Some(expr) => Err(unsupported(expr)),
            None => Ok(builder),
        }
    }

    /// Plans the pipeline that builds the table of `node`, keyed by `keys`, with the columns of its subtree that `above` names.
    fn build(
        &mut self,
        graph: &Graph,
        tree: &Tree,
        node: usize,
        above: &[&Expr],
        keys: &[Expr],
        unique: bool,
    ) -> Result<Built, QueryError> {
        let subtree = tree.subtree(node);
        let mut fields: Vec<Column> = above
            .iter()
            .flat_map(|expr| expr.column_refs())
            .filter(|column| relation_of(column).is_some_and(|relation| subtree.contains(&relation)))
            .cloned()
            .collect();
        fields.sort();
        fields.dedup();
        let of_fields: Vec<Expr> = fields.iter().cloned().map(Expr::Column).collect();
        let wanted: Vec<&Expr> = of_fields.iter().chain(keys).collect();
        let mut builder = self.relation(graph, tree, node, &wanted)?;
        let (sink, parts) = table(&mut builder, keys, &fields, unique)?;
        let selectivity = builder.selectivity();
        let ranges = sink.fields.iter().map(|field| field.range);
        let fields = fields.into_iter().zip(ranges).collect();
        let bytes = match sink.index {
            Index::Direct => sink.domain.span().saturating_add(1).saturating_mul(sink.entry_width.into()) / 8,
            Index::Hash { slots } => slots.saturating_mul(16),
        };
        builder.sink(Sink::Build(sink));
        let pipeline = builder.finish()?;
        self.pipelines.push(pipeline);
        Ok(Built { pipeline: self.pipelines.len() - 1, selectivity, parts, fields, bytes })
    }
}

impl Pending {
    /// Fraction of the rows that the probe keeps.
    fn kept(&self) -> f64 {
        match self.kind {
            ProbeKind::Inner | ProbeKind::Semi => self.built.selectivity,
            ProbeKind::Anti => 1.0 - self.built.selectivity,
        }
    }

    /// Rows that it drops for what a look costs, which is little where the table fits a near cache: the highest goes first.
    fn rank(&self) -> f64 {
        let cost = match self.built.bytes {
            0..=0x2_0000 => 1.0,
            0x2_0001..=0x10_0000 => 1.5,
            0x10_0001..=0x200_0000 => 3.0,
            _ => 8.0,
        };
        (1.0 - self.kept()) / cost
    }
}

/// The table that a pipeline builds.
fn table(
    builder: &mut Builder<'_>,
    keys: &[Expr],
    columns: &[Column],
    unique: bool,
) -> Result<(Build, Vec<KeyPart>), QueryError> {
    let lowered: Result<Vec<Lowered>, QueryError> = keys.iter().map(|key| builder.key(key)).collect();
    let lowered = lowered?;
    let names: Vec<String> = keys.iter().map(super::lower::readable).collect();
    let key_name = names.join(", ");
    let parts = parts(&lowered, &key_name)?;
    builder.filter(all(lowered.iter().map(|part| part.valid.clone()).collect()));
    let (key, domain) = packed(&lowered, &parts)?;
    let rows = builder.rows();
    let entries = domain.span().saturating_add(1);
    let direct = entries <= SMALL_TABLE.max(rows.saturating_mul(MAX_ENTRIES_PER_ROW)) && entries <= 1 << 32;
    let index = if direct { Index::Direct } else { Index::Hash { slots: slots(rows) } };
    let mut fields = Vec::new();
    let (mut shift, mut largest) = (0_u32, 0_u128);
    for column in columns {
        let lowered = Lowering::new(builder).value(&Expr::Column(column.clone()))?;
        let nullable = lowered.valid != Predicate::Always(true);
        let greatest = u128::from(lowered.range.span()) + u128::from(nullable);
        let bits = 128 - greatest.leading_zeros();
        if shift + bits > 63 {
            return Err(QueryError::unsupported("more than 63 bits of columns from one side of a join"));
        }
        largest |= greatest << shift;
        let narrow = |bits: u32| u8::try_from(bits).unwrap_or(u8::MAX);
        fields.push(Field {
            value: lowered.value,
            valid: lowered.valid,
            nullable,
            range: lowered.range,
            shift: narrow(shift),
            bits: narrow(bits),
        });
        shift += bits;
    }
    // All ones stand for no entry.
    let entry_width = match largest {
        _ if fields.is_empty() => 1,
        0..0xFF => 8,
        0xFF..0xFFFF => 16,
        0xFFFF..0xFFFF_FFFF => 32,
        _ => 64,
    };
    Ok((Build { key, key_name, domain, index, unique, fields, entry_width }, parts))
}

fn slots(rows: u64) -> u64 {
    rows.saturating_mul(2).clamp(16, 1 << 40).next_power_of_two()
}

/// Where each part of a key stands in the packed key.
fn parts(lowered: &[Lowered], name: &str) -> Result<Vec<KeyPart>, QueryError> {
    if let [only] = lowered {
        return Ok(vec![KeyPart { range: only.range, stride: 1 }]);
    }
    let too_wide = || QueryError::unsupported(format!("a join whose key ({name}) is wider than 63 bits"));
    let mut stride = 1_i64;
    let mut parts = Vec::new();
    for part in lowered.iter().rev() {
        parts.push(KeyPart { range: part.range, stride });
        let codes = i64::try_from(part.range.span()).ok().and_then(|span| span.checked_add(1));
        stride = codes.and_then(|codes| stride.checked_mul(codes)).ok_or_else(too_wide)?;
    }
    parts.reverse();
    Ok(parts)
}

/// The key of one part as it is, of several their codes side by side.
fn packed(lowered: &[Lowered], parts: &[KeyPart]) -> Result<(Value, Range), QueryError> {
    if let ([only], [part]) = (lowered, parts) {
        return Ok((only.value.clone(), part.range));
    }
    let mut sum: Option<Value> = None;
    let mut max = 0_i64;
    for (value, part) in lowered.iter().zip(parts) {
        let code = Value::Subtract(Box::new(value.value.clone()), Box::new(Value::Literal(part.range.min)));
        let placed = Value::Multiply(Box::new(code), Box::new(Value::Literal(part.stride)));
        sum = Some(match sum {
            None => placed,
            Some(before) => Value::Add(Box::new(before), Box::new(placed)),
        });
        max = max.wrapping_add(part.range.span().cast_signed().wrapping_mul(part.stride));
    }
    let key = sum.ok_or_else(|| QueryError::unsupported("a join without a condition of equality"))?;
    Ok((key, Range { min: 0, max }))
}

/// Ends a pipeline with an aggregation.
fn aggregation(
    builder: &mut Builder<'_>,
    wanted: &Wanted,
    schema: Arc<Schema>,
) -> Result<Output, QueryError> {
    let mut keys = Vec::new();
    for expr in &wanted.groups {
        if matches!(expr, Expr::GroupingSet(_)) {
            return Err(QueryError::unsupported("GROUPING SETS, CUBE or ROLLUP"));
        }
        keys.push(Lowering::new(builder).value(expr)?);
    }
    let groups: Option<Vec<GroupKey>> = group_keys(&keys);
    let too_wide = || QueryError::unsupported("groups whose key is wider than 63 bits");
    let keys_and_entries: Vec<_> =
        groups.ok_or_else(too_wide)?.into_iter().zip(keys.into_iter().map(|key| key.dictionary)).collect();
    let rows = builder.rows();
    let mut words = Words::default();
    let mut functions = Vec::new();
    for expr in &wanted.functions {
        let function = function(expr)?;
        let grouped = !keys_and_entries.is_empty();
        functions.push(words.function(expr, function, &mut Lowering::new(builder), rows, grouped)?);
    }
    let keys: Vec<GroupKey> = keys_and_entries.iter().map(|(key, _)| key.clone()).collect();
    let product = keys.iter().fold(1_u64, |product, key| product.saturating_mul(key.codes));
    let groups = match keys.len() {
        0 => Groups::One,
        _ if product <= MAX_DENSE_GROUPS => Groups::Dense { slots: product },
        _ => Groups::Hash { slots: slots(product.min(rows).min(MAX_FIRST_SLOTS / 2)) },
    };
    let presence = match groups {
        Groups::Dense { .. } => Some(words.presence(|value| builder.is_positive(value))),
        Groups::One | Groups::Hash { .. } => None,
    };
    let output = Output { schema, keys: keys_and_entries, functions, words: words.words.len() };
    builder.sink(Sink::Aggregate(Aggregate { keys, words: words.words, groups, presence }));
    Ok(output)
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

/// The parts of a group's key; `None` where their product does not fit 63 bits.
fn group_keys(keys: &[Lowered]) -> Option<Vec<GroupKey>> {
    let mut stride = 1_u64;
    let mut parts = Vec::new();
    for key in keys.iter().rev() {
        let nullable = key.valid != Predicate::Always(true);
        let codes = key.range.span().checked_add(1)?.checked_add(nullable.into())?;
        let (value, valid, range) = (key.value.clone(), key.valid.clone(), key.range);
        parts.push(GroupKey { value, valid, nullable, range, codes, stride });
        stride = stride.checked_mul(codes).filter(|&product| product < 1 << 63)?;
    }
    parts.reverse();
    Some(parts)
}

impl Builder<'_> {
    /// A key, which must be a number, a date or a time.
    fn key(&mut self, expr: &Expr) -> Result<Lowered, QueryError> {
        let lowered = Lowering::new(self).value(expr)?;
        if lowered.dictionary.is_some() {
            return Err(QueryError::unsupported(format!(
                "a join on strings ({})",
                super::lower::readable(expr)
            )));
        }
        Ok(lowered)
    }

    /// Adds a probe of a table that was built.
    fn probe(&mut self, one: Pending) -> Result<(), QueryError> {
        let lowered: Result<Vec<Lowered>, QueryError> = one.keys.iter().map(|key| self.key(key)).collect();
        let lowered = lowered?;
        let parts = &one.built.parts;
        let (key, _) = packed(&lowered, parts)?;
        let mut valid: Vec<Predicate> = lowered.iter().map(|part| part.valid.clone()).collect();
        if parts.len() > 1 {
            // A part outside its range would stand for another key.
            for (part, of) in lowered.iter().zip(parts) {
                valid.push(super::lower::between(
                    part.value.clone(),
                    part.range,
                    of.range.min.into(),
                    of.range.max.into(),
                ));
            }
        }
        let mut valid = all(valid);
        if one.kind != ProbeKind::Anti {
            self.filter(std::mem::replace(&mut valid, Predicate::Always(true)));
        }
        let kept = one.kept();
        self.add_probe(
            Probe { build: one.built.pipeline, key, valid, kind: one.kind },
            &one.built.fields,
            kept,
        );
        Ok(())
    }

    fn filters(&mut self, exprs: &[&Expr]) -> Result<(), QueryError> {
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

    fn filter(&mut self, predicate: Predicate) {
        if predicate != Predicate::Always(true) {
            let kept = self.estimate(&predicate);
            self.add_step(Step::Filter(predicate), kept);
        }
    }
}
