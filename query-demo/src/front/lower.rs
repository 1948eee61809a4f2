//! Expressions as values and predicates of a pipeline.
//!
//! Three-valued logic ends here. A value has a predicate beside it that says where it is not null. A condition is asked for by the truth wanted: where is it true, or where is it
//! false; where it is null, it is neither. Whatever condition names one column with a dictionary and nothing else is decided once for each entry, by DataFusion's own expressions.

mod comparisons;
mod constants;
mod dictionaries;
mod simplify;

use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{BinaryExpr, Case, Cast, Expr, ExprSchemable, Operator};

pub use self::constants::integer_literal;
pub use self::simplify::{all, any, between, negated};
use super::columns::ColumnInfo;
use crate::QueryError;
use crate::plan::{Predicate, Range, Set, Value};

/// What lowering asks of the pipeline that it lowers for.
pub trait Scope {
    /// The variable behind a column, made if need be, where it is not null, and what the file says of it.
    ///
    /// # Errors
    /// A column that pipelines do not compute with.
    fn resolve(&mut self, column: &Column) -> Result<(Value, Predicate, ColumnInfo), QueryError>;
    /// Adds a set.
    fn add_set(&mut self, set: Set) -> usize;
    /// All columns that expressions may name.
    fn schema(&self) -> &DFSchema;
    /// For DataFusion's expressions.
    fn state(&self) -> &SessionState;
}

/// A lowered expression.
#[derive(Debug, Clone)]
pub struct Lowered {
    /// The value.
    pub value: Value,
    /// Where it is not null.
    pub valid: Predicate,
    /// Its smallest and largest possible value.
    pub range: Range,
    /// Its SQL type.
    pub data_type: DataType,
    /// Of codes: their entries.
    pub dictionary: Option<arrow::array::ArrayRef>,
}

/// Lowers expressions for one pipeline.
pub struct Lowering<'s> {
    scope: &'s mut dyn Scope,
}

impl<'s> Lowering<'s> {
    /// For the pipeline of `scope`.
    pub fn new(scope: &'s mut dyn Scope) -> Self {
        Self { scope }
    }

    /// `expr` as a value.
    ///
    /// # Errors
    /// What pipelines cannot compute, or cannot compute exactly.
    pub fn value(&mut self, expr: &Expr) -> Result<Lowered, QueryError> {
        match expr {
            Expr::Alias(alias) => self.value(&alias.expr),
            Expr::Column(column) => {
                let (value, valid, info) = self.scope.resolve(column)?;
                let (range, data_type) = (info.values.range, info.data_type);
                Ok(Lowered { value, valid, range, data_type, dictionary: info.dictionary })
            }
            Expr::Literal(scalar, _) => {
                let data_type = scalar.data_type();
                let Some(literal) = constants::integer(scalar)? else {
                    // A null: any value will do.
                    let (value, valid) = (Value::Literal(0), Predicate::Always(false));
                    return Ok(Lowered {
                        value,
                        valid,
                        range: Range { min: 0, max: 0 },
                        data_type,
                        dictionary: None,
                    });
                };
                self.exact(expr, Value::Literal(0), Predicate::Always(true), (literal, literal), data_type)
                    .map(|lowered| Lowered { value: Value::Literal(lowered.range.min), ..lowered })
            }
            Expr::Cast(cast) => self.cast(expr, cast),
            Expr::Negative(inner) => {
                let inner = self.numeric(inner)?;
                let (min, max) = (i128::from(inner.range.min), i128::from(inner.range.max));
                let value = Value::Subtract(Box::new(Value::Literal(0)), Box::new(inner.value));
                self.exact(expr, value, inner.valid, (-max, -min), inner.data_type)
            }
            Expr::BinaryExpr(binary) if is_arithmetic(binary.op) => self.arithmetic(expr, binary),
            Expr::Case(case) => self.case(expr, case),
            other if other.get_type(self.scope.schema())? == DataType::Boolean => {
                let (yes, no) = (self.truth(other, true)?, self.truth(other, false)?);
                let valid = any(vec![yes.clone(), no]);
                let value =
                    Value::If(Box::new(yes), Box::new(Value::Literal(1)), Box::new(Value::Literal(0)));
                let range = Range { min: 0, max: 1 };
                Ok(Lowered { value, valid, range, data_type: DataType::Boolean, dictionary: None })
            }
            other => Err(unsupported(other)),
        }
    }

    /// `expr` as a number.
    fn numeric(&mut self, expr: &Expr) -> Result<Lowered, QueryError> {
        let lowered = self.value(expr)?;
        if lowered.dictionary.is_some() || !is_number(&lowered.data_type) {
            return Err(unsupported(expr));
        }
        Ok(lowered)
    }

    /// A value whose bounds must fit 64 bits.
    fn exact(
        &self,
        expr: &Expr,
        value: Value,
        valid: Predicate,
        (min, max): (i128, i128),
        data_type: DataType,
    ) -> Result<Lowered, QueryError> {
        let too_wide = || QueryError::TooWide { expression: readable(expr), min, max };
        let range = Range::new(min, max).ok_or_else(too_wide)?;
        Ok(Lowered { value, valid, range, data_type, dictionary: None })
    }

    fn arithmetic(&mut self, expr: &Expr, binary: &BinaryExpr) -> Result<Lowered, QueryError> {
        let data_type = expr.get_type(self.scope.schema())?;
        if !is_number(&data_type) {
            return Err(unsupported(expr));
        }
        let (mut left, mut right) = (self.numeric(&binary.left)?, self.numeric(&binary.right)?);
        let scale = scale(&data_type);
        if binary.op == Operator::Multiply {
            if self::scale(&left.data_type) + self::scale(&right.data_type) != scale {
                return Err(unsupported(expr));
            }
        } else {
            left = self.rescaled(expr, left, scale)?;
            right = self.rescaled(expr, right, scale)?;
        }
        let bounds = |lowered: &Lowered| (i128::from(lowered.range.min), i128::from(lowered.range.max));
        let (one, other) = (bounds(&left), bounds(&right));
        let valid = all(vec![left.valid, right.valid]);
        let (left, right) = (Box::new(left.value), Box::new(right.value));
        let (combined, value) = match binary.op {
            Operator::Plus => (crate::plan::combined(one, other, i128::checked_add), Value::Add(left, right)),
            Operator::Minus => {
                (crate::plan::combined(one, other, i128::checked_sub), Value::Subtract(left, right))
            }
            _ => (crate::plan::combined(one, other, i128::checked_mul), Value::Multiply(left, right)),
        };
        let bounds = combined.unwrap_or((i128::MIN, i128::MAX));
        self.exact(expr, value, valid, bounds, data_type)
    }

    /// A decimal (or integer, of scale 0) with more digits behind the point.
    fn rescaled(&self, expr: &Expr, lowered: Lowered, target: i16) -> Result<Lowered, QueryError> {
        let more = target - scale(&lowered.data_type);
        if more == 0 {
            return Ok(lowered);
        }
        let factor = u32::try_from(more).ok().and_then(|more| 10_i64.checked_pow(more));
        let factor = factor.ok_or_else(|| unsupported(expr))?;
        let wide = i128::from(factor);
        let bounds = (i128::from(lowered.range.min) * wide, i128::from(lowered.range.max) * wide);
        let value = match lowered.value {
            Value::Literal(literal) if Range::new(bounds.0, bounds.1).is_some() => {
                Value::Literal(literal * factor)
            }
            value => Value::Multiply(Box::new(value), Box::new(Value::Literal(factor))),
        };
        self.exact(expr, value, lowered.valid, bounds, lowered.data_type)
    }

    fn cast(&mut self, expr: &Expr, cast: &Cast) -> Result<Lowered, QueryError> {
        let target = cast.field.data_type();
        let inner = self.value(&cast.expr)?;
        let plain = arrow_io::columns::tree::plain_type(target);
        if inner.dictionary.is_some() {
            return if is_string(plain) {
                Ok(Lowered { data_type: plain.clone(), ..inner })
            } else {
                Err(unsupported(expr))
            };
        }
        if *plain == inner.data_type {
            return Ok(inner);
        }
        if !(is_number(&inner.data_type) && is_number(plain)) {
            return Err(unsupported(expr));
        }
        let rescaled = self.rescaled(expr, inner, scale(plain))?;
        // A value that the type does not hold would be an error only for the rows that have it.
        let (min, max) = limits(plain);
        if i128::from(rescaled.range.min) < min || i128::from(rescaled.range.max) > max {
            return Err(unsupported(expr));
        }
        Ok(Lowered { data_type: plain.clone(), ..rescaled })
    }

    fn case(&mut self, expr: &Expr, case: &Case) -> Result<Lowered, QueryError> {
        let data_type = expr.get_type(self.scope.schema())?;
        let null = Expr::Literal(datafusion::common::ScalarValue::Null, None);
        let otherwise = case.else_expr.as_deref().unwrap_or(&null);
        let mut result = self.value(otherwise)?;
        let mut dictionary_free = result.dictionary.is_none();
        let wanted_scale = scale(&data_type);
        if !matches!(result.valid, Predicate::Always(false)) {
            result = self.rescaled(expr, result, wanted_scale)?;
        }
        for (when, then) in case.when_then_expr.iter().rev() {
            let condition = match &case.expr {
                None => self.truth(when, true)?,
                Some(base) => {
                    let equal = Expr::BinaryExpr(BinaryExpr::new(base.clone(), Operator::Eq, when.clone()));
                    self.truth(&equal, true)?
                }
            };
            let mut then = self.value(then)?;
            dictionary_free &= then.dictionary.is_none();
            if !matches!(then.valid, Predicate::Always(false)) {
                then = self.rescaled(expr, then, wanted_scale)?;
            }
            let valid = any(vec![
                all(vec![condition.clone(), then.valid]),
                all(vec![negated(condition.clone()), result.valid]),
            ]);
            let range = then.range.union(result.range);
            let value = Value::If(Box::new(condition), Box::new(then.value), Box::new(result.value));
            result = Lowered { value, valid, range, data_type: data_type.clone(), dictionary: None };
        }
        let whole = is_number(&data_type) || data_type == DataType::Boolean || is_date(&data_type);
        if !dictionary_free || !whole {
            return Err(unsupported(expr));
        }
        Ok(Lowered { data_type, ..result })
    }
}

fn is_arithmetic(operator: Operator) -> bool {
    matches!(operator, Operator::Plus | Operator::Minus | Operator::Multiply)
}

/// Integers and decimals.
#[must_use]
pub fn is_number(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(data_type, DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..))
}

fn is_string(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_date(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Date32
            | DataType::Date64
            | DataType::Timestamp(..)
            | DataType::Time32(_)
            | DataType::Time64(_)
    )
}

/// Digits behind the point.
#[must_use]
pub fn scale(data_type: &DataType) -> i16 {
    match data_type {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
            i16::from(*scale)
        }
        _ => 0,
    }
}

/// What a number of the type can be.
#[must_use]
pub fn limits(data_type: &DataType) -> (i128, i128) {
    match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        DataType::Decimal32(precision, _)
        | DataType::Decimal64(precision, _)
        | DataType::Decimal128(precision, _) => {
            let limit = 10_i128.checked_pow(u32::from(*precision)).map_or(i128::MAX, |power| power - 1);
            (-limit, limit)
        }
        _ => (i64::MIN.into(), i64::MAX.into()),
    }
}

/// That pipelines do not compute `expr`.
#[must_use]
pub fn unsupported(expr: &Expr) -> QueryError {
    QueryError::unsupported(format!("the expression {}", readable(expr)))
}

/// `expr` without the numbers of its relations.
#[must_use]
pub fn readable(expr: &Expr) -> String {
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let bare = expr.clone().transform_up(|expr| {
        Ok(match expr {
            Expr::Column(column) => Transformed::yes(Expr::Column(Column::new_unqualified(column.name))),
            other => Transformed::no(other),
        })
    });
    bare.map_or_else(|_| expr.to_string(), |bare| bare.data.to_string())
}
