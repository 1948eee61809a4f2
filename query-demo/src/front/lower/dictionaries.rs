//! Conditions on one column with a dictionary: decided once for each entry.

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{Column, DFSchema, ExprSchema, TableReference};
use datafusion::logical_expr::Expr;
use std::sync::Arc;

use super::simplify::between;
use super::{Lowering, all, any, negated};
use crate::QueryError;
use crate::plan::{Predicate, Range, Set, Value};

impl Lowering<'_> {
    /// Where `expr` is `wanted`, if it names one column, and that has a dictionary. `None`: it is another kind of condition.
    pub(super) fn decided_by_entry(
        &mut self,
        expr: &Expr,
        wanted: bool,
    ) -> Result<Option<Predicate>, QueryError> {
        let columns = expr.column_refs();
        let [column] = columns.into_iter().collect::<Vec<_>>()[..] else { return Ok(None) };
        let field = self.scope.schema().field_from_column(column)?;
        let declared = field.data_type().clone();
        if !super::is_string(arrow_io::columns::tree::plain_type(&declared)) || holds_subquery(expr) {
            return Ok(None);
        }
        let (value, valid, info) = self.scope.resolve(column)?;
        let Some(entries) = info.dictionary else { return Ok(None) };
        let truths = self.truths(expr, column, &declared, &entries)?;
        let (of_null, of_entries) = truths.split_last().map_or((None, &[][..]), |(last, rest)| (*last, rest));
        let members: Vec<bool> = of_entries.iter().map(|truth| *truth == Some(wanted)).collect();
        let found = all(vec![valid.clone(), self.membership(value, &members)]);
        if of_null == Some(wanted) { Ok(Some(any(vec![negated(valid), found]))) } else { Ok(Some(found)) }
    }

    /// `expr` of each entry, and of null at the end.
    fn truths(
        &self,
        expr: &Expr,
        column: &Column,
        declared: &DataType,
        entries: &ArrayRef,
    ) -> Result<Vec<Option<bool>>, QueryError> {
        let null = new_null_array(entries.data_type(), 1);
        let values = cast(&concat(&[entries.as_ref(), null.as_ref()])?, declared)?;
        let schema = Arc::new(Schema::new(vec![Field::new(&column.name, declared.clone(), true)]));
        let relation = column.relation.clone().unwrap_or_else(|| TableReference::bare("r"));
        let named = DFSchema::try_from_qualified_schema(relation, &schema)?;
        let batch = RecordBatch::try_new(schema, vec![values])?;
        let expr = self.scope.state().create_physical_expr(expr.clone(), &named)?;
        let truths = expr.evaluate(&batch)?.into_array(batch.num_rows())?;
        Ok(arrow::array::as_boolean_array(&truths).iter().collect())
    }

    /// Where the code is a member: a range where the members are neighbours, else a set.
    pub(super) fn membership(&mut self, value: Value, members: &[bool]) -> Predicate {
        let first = members.iter().position(|&member| member);
        let last = members.iter().rposition(|&member| member);
        let (Some(first), Some(last)) = (first, last) else { return Predicate::Always(false) };
        let range = Range { min: 0, max: i64::try_from(members.len()).unwrap_or(i64::MAX) - 1 };
        if members.get(first..=last).is_some_and(|inner| inner.iter().all(|&member| member)) {
            return between(value, range, first as i128, last as i128);
        }
        let bit = |word: u32, (place, &member): (usize, &bool)| word | u32::from(member) << place;
        let words = members.chunks(32).map(|chunk| chunk.iter().enumerate().fold(0, bit)).collect();
        Predicate::InSet { value, set: self.scope.add_set(Set { base: 0, words }) }
    }
}

fn holds_subquery(expr: &Expr) -> bool {
    use datafusion::common::tree_node::TreeNode;
    expr.exists(|part| {
        Ok(matches!(
            part,
            Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_)
        ))
    })
    .unwrap_or(true)
}
