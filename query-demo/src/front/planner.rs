//! Join order and pipelines.
//!
//! The relations of a join graph become a tree: the one with the most rows is scanned last and probes the others, which probe their own neighbours while they are built. That needs every
//! edge to lead to a unique key, which statistics can refute and building proves.

mod builder;
mod estimate;
mod grouping;
mod keys;
mod tree;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::common::{Column, DFSchema};
use datafusion::execution::SessionState;
use datafusion::logical_expr::logical_plan::Aggregate as LogicalAggregate;
use datafusion::logical_expr::{Expr, LogicalPlan};

use self::builder::Builder;
use self::grouping::{Wanted, aggregation};
use self::keys::{KeyPart, table};
use self::tree::Tree;
use super::columns::{ColumnInfo, Relation};
use super::graph::{Graph, SemiJoin, relation_of, relations_of, rewrite};
use super::lower::unsupported;
use super::output::Output;
use crate::QueryError;
use crate::plan::{Index, Pipeline, Plan, ProbeKind, Range, Sink};
use crate::scan::Tables;

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

/// Slots of a hash table for so many keys: at most half of them are used.
fn slots(rows: u64) -> u64 {
    rows.saturating_mul(2).clamp(16, 1 << 40).next_power_of_two()
}
