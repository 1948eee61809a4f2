//! What a query does with its groups: projection, HAVING, sort, limit. There are few rows by then, so DataFusion's expressions evaluate them, one node of the logical plan after the other. They are made once, with
//! the plan: making one takes longer than evaluating it.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{SortColumn, SortOptions, filter_record_batch, lexsort_to_indices, take_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion::execution::SessionState;
use datafusion::logical_expr::logical_plan::{Aggregate, FetchType, SkipType};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;

use crate::QueryError;

/// What is done with a query's groups, in order.
#[derive(Debug, Default)]
pub struct Tail {
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    /// Columns of this schema.
    Project(Vec<Arc<dyn PhysicalExpr>>, SchemaRef),
    /// The same columns under other names.
    Rename(SchemaRef),
    /// Rows for which it holds.
    Filter(Arc<dyn PhysicalExpr>),
    /// Rows in this order; if a number is given, the first so many.
    Sort(Vec<(Arc<dyn PhysicalExpr>, SortOptions)>, Option<usize>),
    /// Rows behind the first so many; if a second number is given, at most so many.
    Limit(usize, Option<usize>),
}

/// Splits a logical plan at its topmost aggregation.
///
/// # Errors
/// There is none, or there is something above it that [`Tail::run`] cannot do.
pub fn split<'p>(plan: &'p LogicalPlan, state: &SessionState) -> Result<(Tail, &'p Aggregate), QueryError> {
    let mut steps = Vec::new();
    let mut plan = plan;
    loop {
        let (step, input) = match plan {
            LogicalPlan::Aggregate(aggregate) => {
                steps.reverse();
                return Ok((Tail { steps }, aggregate));
            }
            LogicalPlan::Projection(node) => {
                let exprs = node.expr.iter().map(|expr| physical(expr, &node.input, state));
                let step = Step::Project(exprs.collect::<Result<_, _>>()?, schema(plan));
                (step, &node.input)
            }
            LogicalPlan::Filter(node) => {
                (Step::Filter(physical(&node.predicate, &node.input, state)?), &node.input)
            }
            LogicalPlan::Sort(node) => {
                let keys = node.expr.iter().map(|key| {
                    let options = SortOptions { descending: !key.asc, nulls_first: key.nulls_first };
                    Ok((physical(&key.expr, &node.input, state)?, options))
                });
                (Step::Sort(keys.collect::<Result<_, QueryError>>()?, node.fetch), &node.input)
            }
            LogicalPlan::Limit(node) => match (node.get_skip_type()?, node.get_fetch_type()?) {
                (SkipType::Literal(skip), FetchType::Literal(fetch)) => {
                    (Step::Limit(skip, fetch), &node.input)
                }
                _ => return Err(QueryError::unsupported("a LIMIT that is not a number")),
            },
            LogicalPlan::SubqueryAlias(node) => (Step::Rename(schema(plan)), &node.input),
            LogicalPlan::TableScan(_) | LogicalPlan::Join(_) => {
                return Err(QueryError::unsupported("a query without an aggregate"));
            }
            other => return Err(QueryError::unsupported(node_name(other))),
        };
        steps.push(step);
        plan = input;
    }
}

fn schema(plan: &LogicalPlan) -> SchemaRef {
    Arc::new(plan.schema().as_arrow().clone())
}

fn physical(
    expr: &Expr,
    input: &LogicalPlan,
    state: &SessionState,
) -> Result<Arc<dyn PhysicalExpr>, QueryError> {
    Ok(state.create_physical_expr(expr.clone(), input.schema())?)
}

/// A node of a logical plan in words.
#[must_use]
pub fn node_name(plan: &LogicalPlan) -> String {
    let text = plan.display().to_string();
    let name = text.split([':', ' ']).next().unwrap_or_default();
    match plan {
        LogicalPlan::Join(join) => format!("a {} join", join.join_type.to_string().to_lowercase()),
        LogicalPlan::Window(_) => "a window function".to_owned(),
        LogicalPlan::Union(_) => "UNION".to_owned(),
        LogicalPlan::Distinct(_) => "DISTINCT".to_owned(),
        LogicalPlan::EmptyRelation(_) => "a query without a table".to_owned(),
        LogicalPlan::Aggregate(_) => "an aggregation within a subquery".to_owned(),
        _ => format!("the operator {name}"),
    }
}

impl Tail {
    /// Offers the sort that begins the steps, if its keys are columns of the groups: their numbers with options, and how many rows are wanted. What takes it on returns something, and the
    /// step is left out from then on.
    pub fn hand_over_sort<R>(
        &mut self,
        take: impl FnOnce(&[(usize, SortOptions)], Option<usize>) -> Option<R>,
    ) -> Option<R> {
        let at = self.steps.iter().position(|step| !matches!(step, Step::Project(..) | Step::Rename(_)))?;
        let (before, Some(Step::Sort(keys, fetch))) = (self.steps.get(..at)?, self.steps.get(at)) else {
            return None;
        };
        // Back through the projections to the groups.
        let column = |expr: &Arc<dyn PhysicalExpr>| {
            before.iter().rev().try_fold(column_number(expr)?, |column, step| match step {
                Step::Project(exprs, _) => column_number(exprs.get(column)?),
                _ => Some(column),
            })
        };
        let columns: Vec<(usize, SortOptions)> =
            keys.iter().map(|(key, options)| Some((column(key)?, *options))).collect::<Option<_>>()?;
        let taken = take(&columns, *fetch)?;
        self.steps.remove(at);
        Some(taken)
    }

    /// Runs the steps on `groups`, the aggregation's result.
    ///
    /// # Errors
    /// An expression that fails on a value, as a division by zero does.
    pub fn run(&self, groups: RecordBatch) -> Result<RecordBatch, QueryError> {
        self.steps.iter().try_fold(groups, |batch, step| step.run(&batch))
    }
}

impl Step {
    fn run(&self, batch: &RecordBatch) -> Result<RecordBatch, QueryError> {
        match self {
            Self::Project(exprs, schema) => {
                let columns: Result<_, QueryError> =
                    exprs.iter().map(|expr| evaluate(expr.as_ref(), batch)).collect();
                with_schema(schema, columns?, batch.num_rows())
            }
            Self::Rename(schema) => with_schema(schema, batch.columns().to_vec(), batch.num_rows()),
            Self::Filter(predicate) => {
                let kept = evaluate(predicate.as_ref(), batch)?;
                Ok(filter_record_batch(batch, arrow::array::as_boolean_array(&kept))?)
            }
            Self::Sort(keys, fetch) => {
                let columns: Result<Vec<SortColumn>, QueryError> = keys
                    .iter()
                    .map(|(key, options)| {
                        Ok(SortColumn { values: evaluate(key.as_ref(), batch)?, options: Some(*options) })
                    })
                    .collect();
                Ok(take_record_batch(batch, &lexsort_to_indices(&columns?, *fetch)?)?)
            }
            Self::Limit(skip, fetch) => {
                let skip = (*skip).min(batch.num_rows());
                let rest = batch.num_rows() - skip;
                Ok(batch.slice(skip, fetch.unwrap_or(rest).min(rest)))
            }
        }
    }
}

fn column_number(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    let expr: &dyn Any = expr.as_ref();
    expr.downcast_ref::<Column>().map(Column::index)
}

fn evaluate(expr: &dyn PhysicalExpr, batch: &RecordBatch) -> Result<ArrayRef, QueryError> {
    Ok(expr.evaluate(batch)?.into_array(batch.num_rows())?)
}

fn with_schema(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, QueryError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
