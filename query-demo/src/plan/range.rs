//! Ranges of values, and what expressions make of them.

use std::fmt;

use super::{Pipeline, Plan, Value};

/// All integers from `min` to `max`; not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    /// The smallest.
    pub min: i64,
    /// The largest.
    pub max: i64,
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}..={}", self.min, self.max)
    }
}

impl Range {
    /// The range of `min` to `max`, if there is one and it fits 64 bits.
    #[must_use]
    pub fn new(min: i128, max: i128) -> Option<Self> {
        let (min, max) = (i64::try_from(min).ok()?, i64::try_from(max).ok()?);
        (min <= max).then_some(Self { min, max })
    }

    /// max - min.
    #[must_use]
    pub fn span(self) -> u64 {
        self.max.wrapping_sub(self.min).cast_unsigned()
    }

    /// Whether `value` is in it.
    #[must_use]
    pub fn has(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }

    /// Whether all values fit 32 bits in two's complement.
    #[must_use]
    pub fn fits_i32(self) -> bool {
        i32::try_from(self.min).is_ok() && i32::try_from(self.max).is_ok()
    }

    /// The smallest range that holds both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Smallest and largest value, whatever their size.
pub type Bounds = (i128, i128);

/// The bounds of an operation on values within `left` and `right`.
#[must_use]
pub fn combined(
    left: Bounds,
    right: Bounds,
    operation: impl Fn(i128, i128) -> Option<i128>,
) -> Option<Bounds> {
    let corners = [(left.0, right.0), (left.0, right.1), (left.1, right.0), (left.1, right.1)];
    let mut values = Vec::with_capacity(4);
    for (left, right) in corners {
        values.push(operation(left, right)?);
    }
    Some((values.iter().copied().min()?, values.iter().copied().max()?))
}

impl Plan {
    /// The range of `value` in `pipeline`. The planner has proven that there is one; where a plan was made otherwise, an operation that overflows has the range of all integers.
    #[must_use]
    pub fn range(&self, pipeline: &Pipeline, value: &Value) -> Range {
        const ALL: Range = Range { min: i64::MIN, max: i64::MAX };
        let of = |value: &Value| {
            let range = self.range(pipeline, value);
            (i128::from(range.min), i128::from(range.max))
        };
        let bounds = match value {
            Value::Input(input) => return pipeline.inputs.get(*input).map_or(ALL, |input| input.range),
            Value::Field { probe, field } => {
                let build = self.probed(pipeline, *probe);
                return build.and_then(|build| build.fields.get(*field)).map_or(ALL, |field| field.range);
            }
            Value::Literal(value) => return Range { min: *value, max: *value },
            Value::Add(left, right) => combined(of(left), of(right), i128::checked_add),
            Value::Subtract(left, right) => combined(of(left), of(right), i128::checked_sub),
            Value::Multiply(left, right) => combined(of(left), of(right), i128::checked_mul),
            Value::If(_, yes, no) => return self.range(pipeline, yes).union(self.range(pipeline, no)),
        };
        bounds.and_then(|(min, max)| Range::new(min, max)).unwrap_or(ALL)
    }
}
