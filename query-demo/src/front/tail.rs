//! What a query does with its groups: projection, HAVING, sort, limit. There are few rows by then, so DataFusion's expressions evaluate them, one node of the logical plan after the other.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::compute::{SortColumn, SortOptions, filter_record_batch, lexsort_to_indices, take_record_batch};
use arrow::datatypes::Schema;
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::logical_expr::logical_plan::{Aggregate, FetchType, SkipType};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::QueryError;

/// The nodes above a query's aggregation, the lowest first.
#[derive(Debug, Default)]
pub struct Tail {
    nodes: Vec<LogicalPlan>,
}

/// Splits a logical plan at its topmost aggregation.
///
/// # Errors
/// There is none, or there is something above it that [`Tail::run`] cannot do.
pub fn split(plan: &LogicalPlan) -> Result<(Tail, &Aggregate), QueryError> {
    let mut nodes = Vec::new();
    let mut plan = plan;
    loop {
        let input = match plan {
            LogicalPlan::Aggregate(aggregate) => {
                nodes.reverse();
                return Ok((Tail { nodes }, aggregate));
            }
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::Filter(node) => &node.input,
            LogicalPlan::Sort(node) => &node.input,
            LogicalPlan::Limit(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::TableScan(_) | LogicalPlan::Join(_) => {
                return Err(QueryError::unsupported("a query without an aggregate"));
            }
            other => return Err(QueryError::unsupported(node_name(other))),
        };
        nodes.push(plan.clone());
        plan = input;
    }
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
    /// Runs the nodes on `groups`, the aggregation's result.
    ///
    /// # Errors
    /// An expression that fails on a value, as a division by zero does.
    pub fn run(&self, groups: RecordBatch, state: &SessionState) -> Result<RecordBatch, QueryError> {
        self.nodes.iter().try_fold(groups, |batch, node| run(node, batch, state))
    }
}

fn run(node: &LogicalPlan, batch: RecordBatch, state: &SessionState) -> Result<RecordBatch, QueryError> {
    match node {
        LogicalPlan::Projection(node) => {
            let columns: Result<Vec<_>, QueryError> =
                node.expr.iter().map(|expr| evaluate(expr, node.input.schema(), &batch, state)).collect();
            with_schema(node.schema.as_arrow(), columns?, batch.num_rows())
        }
        LogicalPlan::SubqueryAlias(node) => {
            with_schema(node.schema.as_arrow(), batch.columns().to_vec(), batch.num_rows())
        }
        LogicalPlan::Filter(node) => {
            let kept = evaluate(&node.predicate, node.input.schema(), &batch, state)?;
            let kept = arrow::array::as_boolean_array(&kept);
            Ok(filter_record_batch(&batch, kept)?)
        }
        LogicalPlan::Sort(node) => {
            let columns: Result<Vec<SortColumn>, QueryError> = node
                .expr
                .iter()
                .map(|key| {
                    let options = SortOptions { descending: !key.asc, nulls_first: key.nulls_first };
                    let values = evaluate(&key.expr, node.input.schema(), &batch, state)?;
                    Ok(SortColumn { values, options: Some(options) })
                })
                .collect();
            let order = lexsort_to_indices(&columns?, node.fetch)?;
            Ok(take_record_batch(&batch, &order)?)
        }
        LogicalPlan::Limit(node) => match (node.get_skip_type()?, node.get_fetch_type()?) {
            (SkipType::Literal(skip), FetchType::Literal(fetch)) => {
                let skip = skip.min(batch.num_rows());
                let rest = batch.num_rows() - skip;
                Ok(batch.slice(skip, fetch.unwrap_or(rest).min(rest)))
            }
            _ => Err(QueryError::unsupported("a LIMIT that is not a number")),
        },
        other => Err(QueryError::unsupported(node_name(other))),
    }
}

fn evaluate(
    expr: &Expr,
    schema: &DFSchema,
    batch: &RecordBatch,
    state: &SessionState,
) -> Result<Arc<dyn Array>, QueryError> {
    let expr = state.create_physical_expr(expr.clone(), schema)?;
    Ok(expr.evaluate(batch)?.into_array(batch.num_rows())?)
}

fn with_schema(
    schema: &Schema,
    columns: Vec<Arc<dyn Array>>,
    rows: usize,
) -> Result<RecordBatch, QueryError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(schema.clone()), columns, &options)?)
}
