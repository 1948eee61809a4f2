//! Conditions: where is an expression true, where is it false.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};

use super::simplify::between;
use super::{Lowered, Lowering, all, any, constants, is_number, negated, scale, unsupported};
use crate::QueryError;
use crate::plan::{Predicate, Set, Value};

/// A list of numbers becomes a set if it spans no more than this.
const MAX_SET_SPAN: i128 = 1 << 22;

impl Lowering<'_> {
    /// Where `expr` is `wanted`.
    ///
    /// # Errors
    /// What pipelines cannot decide.
    pub fn truth(&mut self, expr: &Expr, wanted: bool) -> Result<Predicate, QueryError> {
        if let Some(predicate) = self.decided_by_entry(expr, wanted)? {
            return Ok(predicate);
        }
        match expr {
            Expr::Alias(alias) => self.truth(&alias.expr, wanted),
            Expr::Literal(scalar, _) => match scalar {
                ScalarValue::Boolean(truth) => Ok(Predicate::Always(*truth == Some(wanted))),
                scalar if scalar.is_null() => Ok(Predicate::Always(false)),
                _ => Err(unsupported(expr)),
            },
            Expr::Not(inner) => self.truth(inner, !wanted),
            Expr::IsTrue(inner) => Ok(as_wanted(self.truth(inner, true)?, wanted)),
            Expr::IsNotTrue(inner) => Ok(as_wanted(self.truth(inner, true)?, !wanted)),
            Expr::IsFalse(inner) => Ok(as_wanted(self.truth(inner, false)?, wanted)),
            Expr::IsNotFalse(inner) => Ok(as_wanted(self.truth(inner, false)?, !wanted)),
            Expr::IsNull(inner) | Expr::IsUnknown(inner) => Ok(as_wanted(self.value(inner)?.valid, !wanted)),
            Expr::IsNotNull(inner) | Expr::IsNotUnknown(inner) => {
                Ok(as_wanted(self.value(inner)?.valid, wanted))
            }
            Expr::BinaryExpr(binary) => self.binary(expr, binary, wanted),
            Expr::Between(test) => self.between(test, wanted),
            Expr::InList(list) => {
                let inner = self.value(&list.expr)?;
                let found = wanted != list.negated;
                self.in_list(expr, inner, &list.list, found)
            }
            Expr::Column(_) | Expr::Case(_) => {
                let lowered = self.value(expr)?;
                if lowered.data_type != DataType::Boolean {
                    return Err(unsupported(expr));
                }
                let bit = i128::from(wanted);
                Ok(all(vec![lowered.valid, between(lowered.value, lowered.range, bit, bit)]))
            }
            other => Err(unsupported(other)),
        }
    }

    fn binary(&mut self, expr: &Expr, binary: &BinaryExpr, wanted: bool) -> Result<Predicate, QueryError> {
        match binary.op {
            Operator::And | Operator::Or => {
                let (left, right) = (self.truth(&binary.left, wanted)?, self.truth(&binary.right, wanted)?);
                let both = (binary.op == Operator::And) == wanted;
                Ok(if both { all(vec![left, right]) } else { any(vec![left, right]) })
            }
            Operator::Eq | Operator::NotEq => {
                let (valid, difference) = self.difference(expr, binary)?;
                let equal = difference.test(0, 0);
                Ok(all(vec![valid, as_wanted(equal, (binary.op == Operator::Eq) == wanted)]))
            }
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
                let (valid, difference) = self.difference(expr, binary)?;
                let holds = match (binary.op, wanted) {
                    (Operator::Lt, true) | (Operator::GtEq, false) => difference.test(i128::MIN, -1),
                    (Operator::LtEq, true) | (Operator::Gt, false) => difference.test(i128::MIN, 0),
                    (Operator::Gt, true) | (Operator::LtEq, false) => difference.test(1, i128::MAX),
                    _ => difference.test(0, i128::MAX),
                };
                Ok(all(vec![valid, holds]))
            }
            _ => Err(unsupported(expr)),
        }
    }

    /// What a comparison compares, and where both sides are not null.
    fn difference(
        &mut self,
        expr: &Expr,
        binary: &BinaryExpr,
    ) -> Result<(Predicate, Difference), QueryError> {
        let (left, right) = (self.value(&binary.left)?, self.value(&binary.right)?);
        let (left, right) = self.comparable(expr, left, right)?;
        let valid = all(vec![left.valid.clone(), right.valid.clone()]);
        Ok((valid, Difference { left, right }))
    }

    fn comparable(
        &self,
        expr: &Expr,
        left: Lowered,
        right: Lowered,
    ) -> Result<(Lowered, Lowered), QueryError> {
        let coded = left.dictionary.is_some() || right.dictionary.is_some();
        let alike = left.data_type == right.data_type
            || (is_number(&left.data_type) && is_number(&right.data_type))
            || left.data_type.is_null()
            || right.data_type.is_null();
        if coded || !alike {
            return Err(unsupported(expr));
        }
        let target = scale(&left.data_type).max(scale(&right.data_type));
        if is_number(&left.data_type) && is_number(&right.data_type) {
            return Ok((self.rescaled(expr, left, target)?, self.rescaled(expr, right, target)?));
        }
        Ok((left, right))
    }

    fn between(&mut self, test: &Between, wanted: bool) -> Result<Predicate, QueryError> {
        let part = |operator, bound: &Expr| {
            Expr::BinaryExpr(BinaryExpr::new(test.expr.clone(), operator, Box::new(bound.clone())))
        };
        let (low, high) = (part(Operator::GtEq, &test.low), part(Operator::LtEq, &test.high));
        let within = wanted != test.negated;
        let (low, high) = (self.truth(&low, within)?, self.truth(&high, within)?);
        Ok(if within { all(vec![low, high]) } else { any(vec![low, high]) })
    }

    /// Where `inner` is in the list (`found`), or certainly not.
    fn in_list(
        &mut self,
        expr: &Expr,
        inner: Lowered,
        list: &[Expr],
        found: bool,
    ) -> Result<Predicate, QueryError> {
        let mut members = Vec::new();
        let mut has_null = false;
        for item in list {
            let Expr::Literal(scalar, _) = item else { return Err(unsupported(expr)) };
            if inner.dictionary.is_some() || scale(&scalar.data_type()) != scale(&inner.data_type) {
                return Err(unsupported(expr));
            }
            match constants::integer(scalar)? {
                Some(member) => members.push(member),
                None => has_null = true,
            }
        }
        if !found && has_null {
            // Not in a list with a null: never true.
            return Ok(Predicate::Always(false));
        }
        members.retain(|&member| i64::try_from(member).is_ok_and(|member| inner.range.has(member)));
        members.sort_unstable();
        members.dedup();
        let is_member = match (members.first(), members.last()) {
            (Some(&first), Some(&last)) if members.len() > 2 && last - first < MAX_SET_SPAN => {
                let span = usize::try_from(last - first).unwrap_or_default() + 1;
                let mut words = vec![0_u32; span.div_ceil(32)];
                for member in &members {
                    let bit = usize::try_from(member - first).unwrap_or_default();
                    if let Some(word) = words.get_mut(bit / 32) {
                        *word |= 1 << (bit % 32);
                    }
                }
                if members.len() == span {
                    between(inner.value, inner.range, first, last)
                } else {
                    let base = i64::try_from(first).unwrap_or_default();
                    Predicate::InSet { value: inner.value, set: self.scope.add_set(Set { base, words }) }
                }
            }
            _ => {
                any(members.iter().map(|&one| between(inner.value.clone(), inner.range, one, one)).collect())
            }
        };
        Ok(all(vec![inner.valid, as_wanted(is_member, found)]))
    }
}

fn as_wanted(predicate: Predicate, wanted: bool) -> Predicate {
    if wanted { predicate } else { negated(predicate) }
}

/// Two values that are compared.
struct Difference {
    left: Lowered,
    right: Lowered,
}

impl Difference {
    /// Where left - right is from `low` to `high`: (0, 0), (MIN, -1), (MIN, 0), (0, MAX) or (1, MAX).
    fn test(self, low: i128, high: i128) -> Predicate {
        let Self { left, right } = self;
        let shifted = |bound: i128, by: i64| bound.saturating_add(by.into());
        match (left.value, right.value) {
            (value, Value::Literal(literal)) => {
                between(value, left.range, shifted(low, literal), shifted(high, literal))
            }
            (Value::Literal(literal), value) => {
                // literal - value in low..=high is value in literal - high..=literal - low.
                let bound = |by: i128| i128::from(literal).saturating_sub(by);
                between(value, right.range, bound(high), bound(low))
            }
            (left_value, right_value) => {
                let (least, greatest) = (
                    i128::from(left.range.min) - i128::from(right.range.max),
                    i128::from(left.range.max) - i128::from(right.range.min),
                );
                if low <= least && greatest <= high {
                    Predicate::Always(true)
                } else if greatest < low || high < least {
                    Predicate::Always(false)
                } else {
                    match (low, high) {
                        (0, 0) => Predicate::Equal(left_value, right_value),
                        (0, _) => negated(Predicate::Less(left_value, right_value)),
                        (_, 0) => negated(Predicate::Less(right_value, left_value)),
                        (_, -1) => Predicate::Less(left_value, right_value),
                        _ => Predicate::Less(right_value, left_value),
                    }
                }
            }
        }
    }
}
