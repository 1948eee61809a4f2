//! A logical plan below the aggregation as a join graph: relations, and what must hold between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, TableReference};
use datafusion::logical_expr::logical_plan::Join;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::tail::node_name;
use crate::QueryError;

/// Relations joined by inner joins. Every expression names columns as `rI.column`, where I is the relation's number.
#[derive(Debug, Default)]
pub struct Graph {
    /// Name of the table behind each relation, by its number. A table that a query uses twice is two relations.
    pub relations: BTreeMap<usize, String>,
    /// Equal pairs, from inner joins.
    pub equalities: Vec<(Expr, Expr)>,
    /// Conditions that rows must meet, none of them a conjunction.
    pub filters: Vec<Expr>,
    /// Semi and anti joins.
    pub semis: Vec<SemiJoin>,
    /// The number that the next relation gets: unique over a graph and all graphs in it.
    next: usize,
}

/// Rows of the graph stay if `inner` has, or has not, a row with equal keys.
#[derive(Debug)]
pub struct SemiJoin {
    /// The other side.
    pub inner: Graph,
    /// Pairs: of the outer and of the inner side.
    pub keys: Vec<(Expr, Expr)>,
    /// Whether rows without a match stay.
    pub anti: bool,
}

/// The columns of a node, as expressions over the graph.
type Columns = Vec<Expr>;

impl Graph {
    /// The graph of `plan` and its columns.
    ///
    /// # Errors
    /// What the pipelines cannot express.
    pub fn new(plan: &LogicalPlan) -> Result<(Self, Columns), QueryError> {
        let mut graph = Self::default();
        let columns = graph.add(plan)?;
        Ok((graph, columns))
    }

    fn add(&mut self, plan: &LogicalPlan) -> Result<Columns, QueryError> {
        match plan {
            LogicalPlan::TableScan(scan) => {
                if scan.fetch.is_some() {
                    return Err(QueryError::unsupported("LIMIT below an aggregate"));
                }
                let name = relation_name(self.next);
                self.relations.insert(self.next, scan.table_name.table().to_owned());
                self.next += 1;
                let fields = scan.projected_schema.fields().iter();
                let columns: Columns = fields.map(|field| column(&name, field.name())).collect();
                for filter in &scan.filters {
                    // Filters name columns of the whole table.
                    let named = filter.clone().transform_up(|expr| {
                        Ok(match expr {
                            Expr::Column(found) => Transformed::yes(column(&name, &found.name)),
                            other => Transformed::no(other),
                        })
                    })?;
                    self.filter(&named.data);
                }
                Ok(columns)
            }
            LogicalPlan::Filter(filter) => {
                let columns = self.add(&filter.input)?;
                let predicate = rewrite(&filter.predicate, filter.input.schema(), &columns)?;
                self.filter(&predicate);
                Ok(columns)
            }
            LogicalPlan::Projection(projection) => {
                let columns = self.add(&projection.input)?;
                let schema = projection.input.schema();
                projection.expr.iter().map(|expr| rewrite(expr, schema, &columns)).collect()
            }
            LogicalPlan::SubqueryAlias(alias) => self.add(&alias.input),
            LogicalPlan::Join(join) => self.join(join),
            other => Err(QueryError::unsupported(node_name(other))),
        }
    }

    fn filter(&mut self, predicate: &Expr) {
        self.filters.extend(split_conjunction(predicate).into_iter().cloned());
    }

    fn join(&mut self, join: &Join) -> Result<Columns, QueryError> {
        if join.null_equality != NullEquality::NullEqualsNothing {
            return Err(QueryError::unsupported("a join in which nulls are equal"));
        }
        match join.join_type {
            JoinType::Inner => {
                let left = self.add(&join.left)?;
                let right = self.add(&join.right)?;
                for (one, other) in &join.on {
                    let pair = (
                        rewrite(one, join.left.schema(), &left)?,
                        rewrite(other, join.right.schema(), &right)?,
                    );
                    self.equalities.push(pair);
                }
                let columns: Columns = left.into_iter().chain(right).collect();
                if let Some(filter) = &join.filter {
                    let filter = rewrite(filter, &join.schema, &columns)?;
                    self.filter(&filter);
                }
                Ok(columns)
            }
            JoinType::LeftSemi => self.semi_join(join, false, false),
            JoinType::LeftAnti => self.semi_join(join, false, true),
            JoinType::RightSemi => self.semi_join(join, true, false),
            JoinType::RightAnti => self.semi_join(join, true, true),
            _ => {
                Err(QueryError::unsupported(format!("a {} join", join.join_type.to_string().to_lowercase())))
            }
        }
    }

    fn semi_join(&mut self, join: &Join, swapped: bool, anti: bool) -> Result<Columns, QueryError> {
        if join.null_aware {
            return Err(QueryError::unsupported("NOT IN over a subquery whose values may be null"));
        }
        if join.filter.is_some() {
            return Err(QueryError::unsupported("EXISTS with a condition besides equality"));
        }
        let (outer, inner) = if swapped { (&join.right, &join.left) } else { (&join.left, &join.right) };
        let columns = self.add(outer)?;
        let mut graph = Self { next: self.next, ..Self::default() };
        let inner_columns = graph.add(without_distinct(inner))?;
        self.next = graph.next;
        let mut keys = Vec::new();
        for (left, right) in &join.on {
            let (of_outer, of_inner) = if swapped { (right, left) } else { (left, right) };
            keys.push((
                rewrite(of_outer, outer.schema(), &columns)?,
                rewrite(of_inner, inner.schema(), &inner_columns)?,
            ));
        }
        self.semis.push(SemiJoin { inner: graph, keys, anti });
        Ok(columns)
    }
}

/// A semi join asks whether there is a row, so it does not matter how often.
fn without_distinct(plan: &Arc<LogicalPlan>) -> &LogicalPlan {
    match plan.as_ref() {
        LogicalPlan::Aggregate(aggregate)
            if aggregate.aggr_expr.is_empty()
                && aggregate.group_expr.len() == aggregate.input.schema().fields().len()
                && aggregate
                    .group_expr
                    .iter()
                    .zip(aggregate.input.schema().columns())
                    .all(|(expr, column)| matches!(expr, Expr::Column(found) if *found == column)) =>
        {
            &aggregate.input
        }
        plan => plan,
    }
}

/// The name of relation number `index` in expressions.
#[must_use]
pub fn relation_name(index: usize) -> String {
    format!("r{index}")
}

/// The relation that a column of the graph belongs to.
#[must_use]
pub fn relation_of(column: &Column) -> Option<usize> {
    column.relation.as_ref()?.table().strip_prefix('r')?.parse().ok()
}

/// The relations that an expression names.
#[must_use]
pub fn relations_of(expr: &Expr) -> BTreeSet<usize> {
    expr.column_refs().into_iter().filter_map(relation_of).collect()
}

fn column(relation: &str, name: &str) -> Expr {
    Expr::Column(Column::new(Some(TableReference::bare(relation)), name))
}

/// `expr` over a node of `schema`, as an expression over the graph.
///
/// # Errors
/// A column that the node does not have.
pub fn rewrite(expr: &Expr, schema: &DFSchema, columns: &[Expr]) -> Result<Expr, QueryError> {
    let rewritten = expr.clone().transform_up(|expr| {
        let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
        let index = schema.index_of_column(column)?;
        Ok(columns.get(index).cloned().map_or_else(|| Transformed::no(expr), Transformed::yes))
    })?;
    Ok(rewritten.data.unalias_nested().data)
}
