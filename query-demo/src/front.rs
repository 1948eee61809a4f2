//! From SQL to a [`crate::plan::Plan`]: DataFusion parses, resolves, coerces and optimizes; everything from there is here.
//!
//! | module | idea |
//! | --- | --- |
//! | [`provider`] | `.cb2t` tables as DataFusion sees them |
//! | [`graph`] | a logical plan as relations, equalities and filters |
//! | [`columns`] | what the files say of a relation's columns |
//! | [`lower`] | expressions as values and predicates |
//! | [`aggregates`] | aggregate functions as words |
//! | [`planner`] | join order, pipelines |
//! | [`output`] | groups as arrays |
//! | [`order`] | groups in the order of the result |
//! | [`tail`] | what SQL does with the groups: projection, sort, limit |

pub mod aggregates;
pub mod columns;
pub mod graph;
pub mod lower;
pub mod order;
pub mod output;
pub mod planner;
pub mod provider;
pub mod tail;

use std::sync::Arc;

use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;

use crate::QueryError;
use crate::plan::Plan;
use crate::scan::Tables;

/// A query that the pipelines express: what they run, and how their groups become its result.
#[derive(Debug)]
pub struct Compiled {
    /// The pipelines.
    pub plan: Plan,
    /// How groups become arrays.
    pub output: output::Output,
    /// What happens to those.
    pub tail: tail::Tail,
}

/// Compiles an optimized logical plan.
///
/// # Errors
/// [`QueryError::Unsupported`] where pipelines cannot express it, [`QueryError::TooWide`] where they could not be exact, or a file that cannot be read.
pub fn compile(
    logical: &LogicalPlan,
    tables: &Tables,
    state: &Arc<SessionState>,
) -> Result<Compiled, QueryError> {
    let (mut tail, aggregate) = tail::split(logical, state)?;
    let (plan, mut output) = planner::plan(aggregate, tables, state)?;
    output.order = tail.hand_over_sort(|columns, fetch| order::Order::new(&output, columns, fetch));
    Ok(Compiled { plan, output, tail })
}
