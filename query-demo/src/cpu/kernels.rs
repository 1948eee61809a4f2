//! The loops over whole tiles that become vector instructions.

use codec_core::Value;
use codec_core::packing::vectors::{self, Kernel};

use super::lanes::Sign;
use super::rows::{Flags, Rows, TILE, place};

/// Values from `low` on, to `low + span`, counted in the values' own width.
#[derive(Debug, Clone, Copy)]
pub struct Span<V> {
    /// The least of them.
    pub low: V,
    /// The greatest less the least.
    pub span: V,
}

impl<V: Value> Span<V> {
    /// Whether the value is one of them.
    #[inline(always)]
    pub fn has(self, value: V) -> bool {
        value.wrapping_sub(self.low) <= self.span
    }
}

/// Sets the flag of every value that is outside the span to 0.
pub fn between<V: Value>(values: &[V; TILE], span: Span<V>, flags: &mut Flags) {
    vectors::run(Between { values, span, flags });
}

struct Between<'a, V> {
    values: &'a [V; TILE],
    span: Span<V>,
    flags: &'a mut Flags,
}

impl<V: Value> Kernel for Between<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (flag, value) in self.flags.iter_mut().zip(self.values) {
            *flag &= u8::from(self.span.has(*value));
        }
    }
}

/// Flags the entries that are there if `wanted`, else those that are not.
pub fn flag_entries<E: Value>(entries: &[E; TILE], wanted: bool, flags: &mut Flags) {
    vectors::run(FlagEntries { entries, wanted, flags });
}

struct FlagEntries<'a, E> {
    entries: &'a [E; TILE],
    wanted: bool,
    flags: &'a mut Flags,
}

impl<E: Value> Kernel for FlagEntries<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let turned = u8::from(!self.wanted);
        for (flag, entry) in self.flags.iter_mut().zip(self.entries) {
            *flag = u8::from(*entry != E::default()) ^ turned;
        }
    }
}

/// The values of `rows`, one after the other, as integers of 64 bits.
pub fn widen<V: Value>(values: &[V; TILE], sign: Sign, rows: Rows<'_>, wide: &mut [i64; TILE]) {
    match rows {
        Rows::All(count) => vectors::run(Widen { values, sign, wide, count }),
        Rows::Some(rows) => {
            for (wide, row) in wide.iter_mut().zip(rows) {
                *wide = sign.widen(values[place(*row)]);
            }
        }
    }
}

struct Widen<'a, V> {
    values: &'a [V; TILE],
    sign: Sign,
    wide: &'a mut [i64; TILE],
    count: usize,
}

impl<V: Value> Kernel for Widen<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (wide, value) in self.wide.iter_mut().zip(self.values).take(self.count) {
            *wide = self.sign.widen(*value);
        }
    }
}

/// `left = operation(left, right)`, value by value.
pub fn combine(left: &mut [i64], right: &[i64], operation: impl Fn(i64, i64) -> i64) {
    vectors::run(Combine { left, right, operation });
}

struct Combine<'a, F> {
    left: &'a mut [i64],
    right: &'a [i64],
    operation: F,
}

impl<F: Fn(i64, i64) -> i64> Kernel for Combine<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (left, right) in self.left.iter_mut().zip(self.right) {
            *left = (self.operation)(*left, *right);
        }
    }
}

/// `operation` folded over `values` from 0 on; it must not depend on the order.
pub fn fold(values: &[i64], operation: impl Fn(u64, i64) -> u64) -> u64 {
    vectors::run(Fold { values, operation })
}

struct Fold<'a, F> {
    values: &'a [i64],
    operation: F,
}

impl<F: Fn(u64, i64) -> u64> Kernel for Fold<'_, F> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        self.values.iter().fold(0, |folded, &value| (self.operation)(folded, value))
    }
}

/// `flag = test(value)`, value by value.
pub fn flag(values: &[i64], flags: &mut Flags, test: impl Fn(i64) -> bool) {
    vectors::run(Flag { values, flags, test });
}

struct Flag<'a, F> {
    values: &'a [i64],
    flags: &'a mut Flags,
    test: F,
}

impl<F: Fn(i64) -> bool> Kernel for Flag<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (flag, value) in self.flags.iter_mut().zip(self.values) {
            *flag = u8::from((self.test)(*value));
        }
    }
}

/// `flag = test(left, right)`, value by value.
pub fn flag_pairs(left: &[i64], right: &[i64], flags: &mut Flags, test: impl Fn(i64, i64) -> bool) {
    vectors::run(FlagPairs { left, right, flags, test });
}

struct FlagPairs<'a, F> {
    left: &'a [i64],
    right: &'a [i64],
    flags: &'a mut Flags,
    test: F,
}

impl<F: Fn(i64, i64) -> bool> Kernel for FlagPairs<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((flag, left), right) in self.flags.iter_mut().zip(self.left).zip(self.right) {
            *flag = u8::from((self.test)(*left, *right));
        }
    }
}
