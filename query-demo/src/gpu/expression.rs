//! Values and predicates as CUDA C++.
//!
//! A value is narrow where its range fits 32 bits, signed or not: then its lowest 32 bits, modulo 2^32, are all of it, and so are those of whatever it is computed from. Else it is
//! computed in 64 bits.

use crate::QueryError;
use crate::gpu::words::{BitSet, Word};
use crate::plan::{Pipeline, Plan, Predicate, Range, Value};

/// How 32 bits stand for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// As two's complement.
    Signed,
    /// As they are.
    Unsigned,
    /// They are not enough.
    Wide,
}

impl Width {
    /// The width of values of `range`.
    #[must_use]
    pub fn of(range: Range) -> Self {
        if range.min >= 0 && range.max <= i64::from(u32::MAX) {
            Self::Unsigned
        } else if range.fits_i32() {
            Self::Signed
        } else {
            Self::Wide
        }
    }

    /// All values that it can stand for.
    #[must_use]
    pub fn all(self) -> Range {
        let (min, max) = match self {
            Self::Signed => (i32::MIN.into(), i32::MAX.into()),
            Self::Unsigned => (0, u32::MAX.into()),
            Self::Wide => (i64::MIN, i64::MAX),
        };
        Range { min, max }
    }
}

/// Whether differences of values of both ranges are told apart by 32 bits.
#[must_use]
pub fn fits_window(left: Range, right: Range) -> bool {
    left.union(right).span() < u64::from(u32::MAX)
}

/// Writes expressions of one pipeline and collects the arguments that they take.
#[derive(Debug)]
pub struct Expressions<'p> {
    /// The plan.
    pub plan: &'p Plan,
    /// The pipeline.
    pub pipeline: &'p Pipeline,
    /// The arguments so far.
    pub words: Vec<Word>,
    /// The sets so far.
    pub sets: Vec<BitSet>,
}

impl Expressions<'_> {
    /// The range of `value`.
    #[must_use]
    pub fn range(&self, value: &Value) -> Range {
        self.plan.range(self.pipeline, value)
    }

    /// The place of a new argument.
    pub fn word(&mut self, word: Word) -> usize {
        self.words.push(word);
        self.words.len() - 1
    }

    /// The place of the first of new arguments.
    pub fn words(&mut self, words: &[Word]) -> usize {
        self.words.extend_from_slice(words);
        self.words.len() - words.len()
    }

    /// A number as an argument, in 32 bits or 64.
    pub fn number(&mut self, value: u64, narrow: bool) -> String {
        let place = self.word(Word::Value(value));
        if narrow { format!("u32(words[{place}])") } else { format!("words[{place}]") }
    }

    /// The lowest 32 bits of `value`, as `u32`.
    ///
    /// # Errors
    /// A field that does not exist.
    pub fn narrow(&mut self, value: &Value) -> Result<String, QueryError> {
        Ok(match value {
            Value::Input(input) => match self.pipeline.inputs.get(*input) {
                Some(column) if column.signed && column.value_width < 32 => {
                    format!("u32(i32(i{}(input{input}[i])))", column.value_width)
                }
                _ => format!("u32(input{input}[i])"),
            },
            Value::Field { probe, field } => {
                let (code, min) = self.code(*probe, *field, true)?;
                format!("({code} + {min})")
            }
            Value::Literal(number) => self.number(number.cast_unsigned(), true),
            Value::Add(left, right) => format!("({} + {})", self.narrow(left)?, self.narrow(right)?),
            Value::Subtract(left, right) => format!("({} - {})", self.narrow(left)?, self.narrow(right)?),
            Value::Multiply(left, right) => format!("({} * {})", self.narrow(left)?, self.narrow(right)?),
            Value::If(condition, yes, no) => {
                format!("({} ? {} : {})", self.holds(condition)?, self.narrow(yes)?, self.narrow(no)?)
            }
        })
    }

    /// `value` as `u64`, in two's complement.
    ///
    /// # Errors
    /// A field that does not exist.
    pub fn wide(&mut self, value: &Value) -> Result<String, QueryError> {
        let width = Width::of(self.range(value));
        // The bits of an input are all there is, whatever its range says.
        let is_input = matches!(value, Value::Input(_) | Value::Literal(_));
        match width {
            Width::Unsigned if !is_input => return Ok(format!("u64({})", self.narrow(value)?)),
            Width::Signed if !is_input => return Ok(format!("u64(i64(i32({})))", self.narrow(value)?)),
            _ => {}
        }
        Ok(match value {
            Value::Input(input) => match self.pipeline.inputs.get(*input) {
                Some(column) if column.signed => {
                    format!("u64(i64(i{}(input{input}[i])))", column.value_width)
                }
                _ => format!("u64(input{input}[i])"),
            },
            Value::Field { probe, field } => {
                let (code, min) = self.code(*probe, *field, false)?;
                format!("({code} + {min})")
            }
            Value::Literal(number) => self.number(number.cast_unsigned(), false),
            Value::Add(left, right) => format!("({} + {})", self.wide(left)?, self.wide(right)?),
            Value::Subtract(left, right) => format!("({} - {})", self.wide(left)?, self.wide(right)?),
            Value::Multiply(left, right) => format!("({} * {})", self.wide(left)?, self.wide(right)?),
            Value::If(condition, yes, no) => {
                format!("({} ? {} : {})", self.holds(condition)?, self.wide(yes)?, self.wide(no)?)
            }
        })
    }

    /// The value as `u32` or `u64`.
    ///
    /// # Errors
    /// A field that does not exist.
    pub fn value(&mut self, value: &Value, narrow: bool) -> Result<String, QueryError> {
        if narrow { self.narrow(value) } else { self.wide(value) }
    }

    /// The value, extended as its range demands: `u32` where it is never negative and fits, else `u64`.
    ///
    /// # Errors
    /// A field that does not exist.
    pub fn addend(&mut self, value: &Value) -> Result<String, QueryError> {
        if Width::of(self.range(value)) == Width::Unsigned { self.narrow(value) } else { self.wide(value) }
    }

    /// value - min. Of a field, whose code is a difference already, that is often its code.
    ///
    /// # Errors
    /// A field that does not exist.
    pub fn minus(&mut self, value: &Value, min: i64, narrow: bool) -> Result<String, QueryError> {
        let (of_value, min) = match value {
            Value::Field { probe, field } => {
                let code = self.packed(*probe, *field, narrow)?;
                let field = self.field(*probe, *field)?;
                (code, min.wrapping_sub(field.range.min).wrapping_add(field.nullable.into()))
            }
            _ => (self.value(value, narrow)?, min),
        };
        if min == 0 && matches!(value, Value::Field { .. }) {
            return Ok(of_value);
        }
        Ok(format!("({of_value} - {})", self.number(min.cast_unsigned(), narrow)))
    }

    /// The code of a field in the entry that a probe found, and what makes it the field's value when added.
    fn code(&mut self, probe: usize, field: usize, narrow: bool) -> Result<(String, String), QueryError> {
        let code = self.packed(probe, field, narrow)?;
        let field = self.field(probe, field)?;
        let min = field.range.min.wrapping_sub(field.nullable.into());
        Ok((code, self.number(min.cast_unsigned(), narrow)))
    }

    fn field(&self, probe: usize, field: usize) -> Result<&crate::plan::Field, QueryError> {
        let build = self.plan.probed(self.pipeline, probe);
        build.and_then(|build| build.fields.get(field)).ok_or_else(|| {
            QueryError::unsupported(format!("field {field} of probe {probe}, which does not exist"))
        })
    }

    fn packed(&self, probe: usize, field: usize, narrow: bool) -> Result<String, QueryError> {
        let field = self.field(probe, field)?;
        let fields = self.plan.probed(self.pipeline, probe).map_or(&[][..], |build| &build.fields);
        let (shift, bits) = (field.shift, field.bits);
        if bits == 0 {
            return Ok(if narrow { "0u" } else { "0ull" }.to_owned());
        }
        let entry = format!("entry{probe}[i]");
        let shifted = if shift == 0 { entry } else { format!("({entry} >> {shift})") };
        let name = if narrow { "u32" } else { "u64" };
        let last = fields.iter().all(|other| other.shift <= shift);
        let mask = u64::MAX >> (64 - bits.min(64));
        Ok(match (last, narrow) {
            (true, _) => format!("{name}({shifted})"),
            (false, true) => format!("({name}({shifted}) & {:#x}u)", mask & 0xFFFF_FFFF),
            (false, false) => format!("({name}({shifted}) & {mask:#x}ull)"),
        })
    }

    /// The truth of `predicate`, as `bool`.
    ///
    /// # Errors
    /// A field or set that does not exist.
    pub fn holds(&mut self, predicate: &Predicate) -> Result<String, QueryError> {
        Ok(match predicate {
            Predicate::Always(truth) => truth.to_string(),
            Predicate::Between { value, low, high } => return self.between(value, *low, *high),
            Predicate::Less(left, right) => return self.compare(left, "<", right),
            Predicate::Equal(left, right) => return self.compare(left, "==", right),
            Predicate::InSet { value, set } => return self.in_set(value, *set),
            Predicate::FieldValid { probe, field } => {
                if self.field(*probe, *field)?.nullable {
                    format!("({} != 0)", self.packed(*probe, *field, false)?)
                } else {
                    "true".to_owned()
                }
            }
            Predicate::And(parts) => return self.many(parts, "&&", "true"),
            Predicate::Or(parts) => return self.many(parts, "||", "false"),
            Predicate::Not(inner) => format!("!{}", self.holds(inner)?),
        })
    }

    fn many(&mut self, parts: &[Predicate], sign: &str, none: &str) -> Result<String, QueryError> {
        let parts = parts.iter().map(|part| self.holds(part)).collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() {
            return Ok(none.to_owned());
        }
        Ok(format!("({})", parts.join(&format!(" {sign} "))))
    }

    /// low <= value <= high, as one unsigned comparison.
    fn between(&mut self, value: &Value, low: i64, high: i64) -> Result<String, QueryError> {
        let width = Width::of(self.range(value));
        let (narrow, all) = (width != Width::Wide, width.all());
        // Within what the bits can be, so that bounds beyond them compare as they should.
        let (low, high) = (low.max(all.min), high.min(all.max));
        if low > high {
            return Ok("false".to_owned());
        }
        let span = high.wrapping_sub(low).cast_unsigned();
        let (low, span) = (self.number(low.cast_unsigned(), narrow), self.number(span, narrow));
        Ok(format!("({} - {low} <= {span})", self.value(value, narrow)?))
    }

    fn compare(&mut self, left: &Value, sign: &str, right: &Value) -> Result<String, QueryError> {
        match (Width::of(self.range(left)), Width::of(self.range(right))) {
            (Width::Unsigned, Width::Unsigned) => {
                Ok(format!("({} {sign} {})", self.narrow(left)?, self.narrow(right)?))
            }
            (Width::Signed, Width::Signed) => {
                Ok(format!("(i32({}) {sign} i32({}))", self.narrow(left)?, self.narrow(right)?))
            }
            _ => Ok(format!("(i64({}) {sign} i64({}))", self.wide(left)?, self.wide(right)?)),
        }
    }

    fn in_set(&mut self, value: &Value, set: usize) -> Result<String, QueryError> {
        let missing = || QueryError::unsupported(format!("set {set}, which does not exist"));
        let set = self.pipeline.sets.get(set).ok_or_else(missing)?;
        let width = Width::of(self.range(value));
        let narrow = width != Width::Wide;
        let (base, words) = clipped(set, width.all());
        let count = words.len() as u64;
        self.sets.push(BitSet { words });
        let place = self.words(&[Word::SetBits(self.sets.len() - 1), Word::Value(count)]);
        let base = self.number(base.cast_unsigned(), narrow);
        Ok(format!("cb2t::query::in_set(words + {place}, {} - {base})", self.value(value, narrow)?))
    }
}

/// The members of `set` within `all`, as bits from a base within `all` on: then no value is taken for another modulo 2^32.
fn clipped(set: &crate::plan::Set, all: Range) -> (i64, Vec<u32>) {
    let base = set.base.clamp(all.min, all.max);
    let skipped = base.wrapping_sub(set.base).cast_unsigned();
    let room = all.max.wrapping_sub(base).cast_unsigned();
    let bits = (set.words.len() as u64).saturating_mul(32);
    if set.base > all.max || skipped >= bits {
        return (base, Vec::new());
    }
    let kept = (bits - skipped).min(room.saturating_add(1));
    let word =
        |index: u64| usize::try_from(index).ok().and_then(|index| set.words.get(index)).copied().unwrap_or(0);
    let count = kept.div_ceil(32);
    let mut words: Vec<u32> = (0..count)
        .map(|index| {
            let from = index * 32 + skipped;
            let pair = u64::from(word(from / 32)) | u64::from(word(from / 32 + 1)) << 32;
            u32::try_from(pair >> (from % 32) & 0xFFFF_FFFF).unwrap_or(0)
        })
        .collect();
    if let (Some(last), odd @ 1..) = (words.last_mut(), kept % 32) {
        *last &= u32::MAX >> (32 - odd);
    }
    (base, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Set;

    #[test]
    fn clipped_sets_have_the_same_members_within() {
        let mut words = vec![0x8421_1248_u32, 0, 0xFFFF_FFFF, 0x1357_9BDF, 0x8000_0001];
        words.extend([0x0F0F_0F0F; 7]);
        for base in [
            0,
            -1,
            -40,
            -129,
            -1000,
            i64::from(u32::MAX) - 100,
            i64::from(u32::MAX) + 5,
            i64::MIN,
            i64::MAX - 3,
        ] {
            let set = Set { base, words: words.clone() };
            for width in [Width::Signed, Width::Unsigned, Width::Wide] {
                let all = width.all();
                let (base, words) = clipped(&set, all);
                let clip = Set { base, words };
                assert!(all.has(base));
                for near in [set.base, clip.base, 0, all.min, all.max] {
                    for value in
                        (-500..500).filter_map(|step| near.checked_add(step)).filter(|&value| all.has(value))
                    {
                        assert_eq!(clip.has(value), set.has(value), "{value} of {base} {width:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn widths_are_the_narrowest() {
        let of = |min, max| Width::of(Range { min, max });
        assert_eq!(of(0, i64::from(u32::MAX)), Width::Unsigned);
        assert_eq!(of(-1, i64::from(i32::MAX)), Width::Signed);
        assert_eq!(of(-1, i64::from(i32::MAX) + 1), Width::Wide);
        assert_eq!(of(0, i64::from(u32::MAX) + 1), Width::Wide);
    }
}
