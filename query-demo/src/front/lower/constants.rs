//! Literals as integers.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use crate::QueryError;

/// The integer that pipelines compute with for `scalar`; `None` of a null.
///
/// # Errors
/// A type that pipelines do not compute with.
pub fn integer(scalar: &ScalarValue) -> Result<Option<i128>, QueryError> {
    Ok(match scalar {
        ScalarValue::Null => None,
        ScalarValue::Boolean(value) => value.map(i128::from),
        ScalarValue::Int8(value) => value.map(i128::from),
        ScalarValue::Int16(value) => value.map(i128::from),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => value.map(i128::from),
        ScalarValue::Time32Second(value) | ScalarValue::Time32Millisecond(value) => value.map(i128::from),
        ScalarValue::Int64(value)
        | ScalarValue::Date64(value)
        | ScalarValue::Time64Microsecond(value)
        | ScalarValue::Time64Nanosecond(value)
        | ScalarValue::TimestampSecond(value, _)
        | ScalarValue::TimestampMillisecond(value, _)
        | ScalarValue::TimestampMicrosecond(value, _)
        | ScalarValue::TimestampNanosecond(value, _)
        | ScalarValue::DurationSecond(value)
        | ScalarValue::DurationMillisecond(value)
        | ScalarValue::DurationMicrosecond(value)
        | ScalarValue::DurationNanosecond(value) => value.map(i128::from),
        ScalarValue::UInt8(value) => value.map(i128::from),
        ScalarValue::UInt16(value) => value.map(i128::from),
        ScalarValue::UInt32(value) => value.map(i128::from),
        ScalarValue::UInt64(value) => value.map(i128::from),
        ScalarValue::Decimal32(value, ..) => value.map(i128::from),
        ScalarValue::Decimal64(value, ..) => value.map(i128::from),
        ScalarValue::Decimal128(value, ..) => *value,
        other if other.is_null() => None,
        other => return Err(QueryError::unsupported(format!("a constant of type {}", other.data_type()))),
    })
}

/// The integer of a literal expression.
#[must_use]
pub fn integer_literal(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Literal(scalar, _) => integer(scalar).ok().flatten(),
        _ => None,
    }
}
