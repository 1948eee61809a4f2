//! Filters on an input, without a detour over wide values.

use codec_core::Value;

use super::evaluate::{Column, Scratch};
use super::kernels::{self, Span};
use super::lanes::{Sign, with_lanes};
use super::rows::{Flags, Rows, Selection, TILE};
use super::stage::RangeTest;
use crate::plan::Set;

/// Drops the rows whose value lies outside the range. `decode` has decoded the column.
pub fn by_range(column: &Column, test: RangeTest, selection: &mut Selection) {
    with_lanes!(&column.lanes, values => match Passing::new(test, column.sign) {
        Passing::All => {}
        Passing::None => selection.clear(),
        Passing::Some(span) => selection.retain(|row| span.has(values[row % TILE])),
    });
}

/// Sets the flags of rows whose value lies outside the range to 0.
pub fn flag_range(column: &Column, test: RangeTest, flags: &mut Flags) {
    with_lanes!(&column.lanes, values => match Passing::new(test, column.sign) {
        Passing::All => {}
        Passing::None => flags.fill(0),
        Passing::Some(span) => kernels::between(values, span, flags),
    });
}

/// Which values of a width pass a test.
enum Passing<V> {
    All,
    None,
    Some(Span<V>),
}

impl<V: Value> Passing<V> {
    fn new(test: RangeTest, sign: Sign) -> Self {
        let (least, greatest) = sign.domain(V::WIDTH);
        let (low, high) = (test.low.max(least), test.high.min(greatest));
        if low > high {
            return Self::None;
        }
        if (low, high) == (least, greatest) {
            return Self::All;
        }
        // Within the domain, the low bits of a difference are the difference.
        let span = V::from_u64(high.wrapping_sub(low).cast_unsigned());
        Self::Some(Span { low: V::from_u64(low.cast_unsigned()), span })
    }
}

/// Drops the rows whose value is not in the set.
pub fn by_set(column: &Column, set: &Set, scratch: &mut Scratch, selection: &mut Selection) {
    with_lanes!(&column.lanes, values => in_set(values, column.sign, set, scratch, selection));
}

fn in_set<V: Value>(
    values: &[V; TILE],
    sign: Sign,
    set: &Set,
    scratch: &mut Scratch,
    selection: &mut Selection,
) {
    let (base, words) = (set.base, set.words.as_slice());
    let bit = |row: usize| {
        let bit = sign.widen(values[row % TILE]).wrapping_sub(base).cast_unsigned();
        let word = usize::try_from(bit / 32).ok().and_then(|word| words.get(word));
        word.copied().unwrap_or_default() >> (bit % 32) & 1
    };
    match selection.rows() {
        Rows::All(count) => scratch.with_flags(|_, flags| {
            for (row, flag) in flags.iter_mut().enumerate().take(count) {
                *flag = u8::from(bit(row) == 1);
            }
            selection.keep(flags);
        }),
        Rows::Some(_) => selection.retain(|row| bit(row) == 1),
    }
}
