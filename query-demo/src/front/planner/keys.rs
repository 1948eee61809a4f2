//! The keys of joins, and the tables that are built by them.

use datafusion::common::Column;
use datafusion::logical_expr::Expr;

use super::builder::Builder;
use super::{Pending, slots};
use crate::QueryError;
use crate::front::lower::{Lowered, Lowering, all, between, readable};
use crate::plan::{Build, Field, Index, Predicate, Probe, ProbeKind, Range, Value};

/// A table of keys may have so many entries a row that it is built from, to be indexed directly...
const MAX_ENTRIES_PER_ROW: u64 = 8;
/// ... or so many in any case.
const SMALL_TABLE: u64 = 1 << 20;

/// A part of a key that was packed into one integer: its range on the side that was built, and its factor.
#[derive(Debug, Clone, Copy)]
pub struct KeyPart {
    range: Range,
    stride: i64,
}

/// The table that a pipeline builds.
pub fn table(
    builder: &mut Builder<'_>,
    keys: &[Expr],
    columns: &[Column],
    unique: bool,
) -> Result<(Build, Vec<KeyPart>), QueryError> {
    let lowered: Result<Vec<Lowered>, QueryError> = keys.iter().map(|key| builder.key(key)).collect();
    let lowered = lowered?;
    let names: Vec<String> = keys.iter().map(readable).collect();
    let key_name = names.join(", ");
    let parts = parts(&lowered, &key_name)?;
    builder.filter(all(lowered.iter().map(|part| part.valid.clone()).collect()));
    let (key, domain) = packed(&lowered, &parts)?;
    let rows = builder.rows();
    let entries = domain.span().saturating_add(1);
    let direct = entries <= SMALL_TABLE.max(rows.saturating_mul(MAX_ENTRIES_PER_ROW)) && entries <= 1 << 32;
    let index = if direct { Index::Direct } else { Index::Hash { slots: slots(rows) } };
    let mut fields = Vec::new();
    let (mut shift, mut largest) = (0_u32, 0_u128);
    for column in columns {
        let lowered = Lowering::new(builder).value(&Expr::Column(column.clone()))?;
        let nullable = lowered.valid != Predicate::Always(true);
        let greatest = u128::from(lowered.range.span()) + u128::from(nullable);
        let bits = 128 - greatest.leading_zeros();
        if shift + bits > 63 {
            return Err(QueryError::unsupported("more than 63 bits of columns from one side of a join"));
        }
        largest |= greatest << shift;
        let narrow = |bits: u32| u8::try_from(bits).unwrap_or(u8::MAX);
        fields.push(Field {
            value: lowered.value,
            valid: lowered.valid,
            nullable,
            range: lowered.range,
            shift: narrow(shift),
            bits: narrow(bits),
        });
        shift += bits;
    }
    // All ones stand for no entry.
    let entry_width = match largest {
        _ if fields.is_empty() => 1,
        0..0xFF => 8,
        0xFF..0xFFFF => 16,
        0xFFFF..0xFFFF_FFFF => 32,
        _ => 64,
    };
    Ok((Build { key, key_name, domain, index, unique, fields, entry_width }, parts))
}

/// Where each part of a key stands in the packed key.
fn parts(lowered: &[Lowered], name: &str) -> Result<Vec<KeyPart>, QueryError> {
    if let [only] = lowered {
        return Ok(vec![KeyPart { range: only.range, stride: 1 }]);
    }
    let too_wide = || QueryError::unsupported(format!("a join whose key ({name}) is wider than 63 bits"));
    let mut stride = 1_i64;
    let mut parts = Vec::new();
    for part in lowered.iter().rev() {
        parts.push(KeyPart { range: part.range, stride });
        let codes = i64::try_from(part.range.span()).ok().and_then(|span| span.checked_add(1));
        stride = codes.and_then(|codes| stride.checked_mul(codes)).ok_or_else(too_wide)?;
    }
    parts.reverse();
    Ok(parts)
}

/// The key of one part as it is, of several their codes side by side.
fn packed(lowered: &[Lowered], parts: &[KeyPart]) -> Result<(Value, Range), QueryError> {
    if let ([only], [part]) = (lowered, parts) {
        return Ok((only.value.clone(), part.range));
    }
    let mut sum: Option<Value> = None;
    let mut max = 0_i64;
    for (value, part) in lowered.iter().zip(parts) {
        let code = Value::Subtract(Box::new(value.value.clone()), Box::new(Value::Literal(part.range.min)));
        let placed = Value::Multiply(Box::new(code), Box::new(Value::Literal(part.stride)));
        sum = Some(match sum {
            None => placed,
            Some(before) => Value::Add(Box::new(before), Box::new(placed)),
        });
        max = max.wrapping_add(part.range.span().cast_signed().wrapping_mul(part.stride));
    }
    let key = sum.ok_or_else(|| QueryError::unsupported("a join without a condition of equality"))?;
    Ok((key, Range { min: 0, max }))
}

impl Builder<'_> {
    /// A key, which must be a number, a date or a time.
    fn key(&mut self, expr: &Expr) -> Result<Lowered, QueryError> {
        let lowered = Lowering::new(self).value(expr)?;
        if lowered.dictionary.is_some() {
            return Err(QueryError::unsupported(format!("a join on strings ({})", readable(expr))));
        }
        Ok(lowered)
    }

    /// Adds a probe of a table that was built.
    pub fn probe(&mut self, one: Pending) -> Result<(), QueryError> {
        let lowered: Result<Vec<Lowered>, QueryError> = one.keys.iter().map(|key| self.key(key)).collect();
        let lowered = lowered?;
        let parts = &one.built.parts;
        let (key, _) = packed(&lowered, parts)?;
        let mut valid: Vec<Predicate> = lowered.iter().map(|part| part.valid.clone()).collect();
        if parts.len() > 1 {
            // A part outside its range would stand for another key.
            for (part, of) in lowered.iter().zip(parts) {
                valid.push(between(part.value.clone(), part.range, of.range.min.into(), of.range.max.into()));
            }
        }
        let mut valid = all(valid);
        if one.kind != ProbeKind::Anti {
            self.filter(std::mem::replace(&mut valid, Predicate::Always(true)));
        }
        let kept = one.kept();
        self.add_probe(
            Probe { build: one.built.pipeline, key, valid, kind: one.kind },
            &one.built.fields,
            kept,
        );
        Ok(())
    }
}
