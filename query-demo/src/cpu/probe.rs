//! Rows looked up in a table.

use codec_core::Value;
use hashbrown::HashMap;

use super::evaluate::{Column, Scratch};
use super::kernels;
use super::lanes::{Lanes, Sign, with_lanes};
use super::rows::{Flags, Rows, Selection, TILE, place};
use super::stage::Probed;
use super::table::{Direct, JoinTable, Stored};
use crate::plan::{Predicate, ProbeKind, Value as PlanValue};

/// Bits of the entries that a probe of `table` leaves for each row.
#[must_use]
pub fn entry_width(table: &JoinTable) -> u8 {
    match table {
        JoinTable::Bits { .. } | JoinTable::U8(_) => 8,
        JoinTable::U16(_) => 16,
        JoinTable::U32(_) => 32,
        JoinTable::U64(_) | JoinTable::Hash(_) => 64,
    }
}

/// Looks up rows whose key is an input and returns true; or returns false where it is another expression, or the table is hashed. Rows without a key are dropped already.
pub fn by_input(
    probed: &Probed<'_>,
    columns: &[Column],
    found: Option<&mut Lanes>,
    scratch: &mut Scratch,
    selection: &mut Selection,
) -> bool {
    let PlanValue::Input(input) = probed.probe.key else { return false };
    if probed.probe.kind == ProbeKind::Anti && probed.probe.valid != Predicate::Always(true) {
        return false;
    }
    let (Some(column), Some(found)) = (columns.get(input), found) else { return false };
    let wanted = probed.probe.kind != ProbeKind::Anti;
    let sign = column.sign;
    with_lanes!(&column.lanes, values => {
        let keys = Keys { values, sign };
        match (probed.table, found) {
            (JoinTable::Bits { direct, .. }, _) => {
                selection.retain(|row| direct.has_bit(sign.widen(values[row % TILE])) == wanted);
            }
            (JoinTable::U8(direct), Lanes::U8(found)) => look_up(direct, keys, wanted, found, scratch, selection),
            (JoinTable::U16(direct), Lanes::U16(found)) => look_up(direct, keys, wanted, found, scratch, selection),
            (JoinTable::U32(direct), Lanes::U32(found)) => look_up(direct, keys, wanted, found, scratch, selection),
            (JoinTable::U64(direct), Lanes::U64(found)) => look_up(direct, keys, wanted, found, scratch, selection),
            _ => return false,
        }
    });
    true
}

/// An input that is a key.
#[derive(Clone, Copy)]
struct Keys<'a, V> {
    values: &'a [V; TILE],
    sign: Sign,
}

fn look_up<V: Value, E: Stored>(
    direct: &Direct<E>,
    keys: Keys<'_, V>,
    wanted: bool,
    found: &mut [E; TILE],
    scratch: &mut Scratch,
    selection: &mut Selection,
) {
    let Keys { values, sign } = keys;
    let (least, greatest) = sign.domain(V::WIDTH);
    let last = direct.min.checked_add_unsigned((direct.entries.len() as u64).saturating_sub(1));
    if direct.min < least || last.is_none_or(|last| last > greatest) {
        // Keys of the table that values cannot be: the difference takes all bits.
        look_up_by(|key| direct.get(sign.widen(key)), values, wanted, found, scratch, selection);
        return;
    }
    // Where all keys of the table are within the values' domain, no other value's difference, counted in the values' own width, is an offset in the table.
    let min = V::from_u64(direct.min.cast_unsigned());
    let entries = direct.entries.as_slice();
    let entry = |key: V| {
        let offset = usize::try_from(key.wrapping_sub(min).to_u64()).unwrap_or(usize::MAX);
        entries.get(offset).copied().unwrap_or_default()
    };
    look_up_by(entry, values, wanted, found, scratch, selection);
}

/// All rows in three passes, of which only the look-up itself goes value by value; rows here and there in one.
#[inline(always)]
fn look_up_by<V: Value, E: Stored>(
    entry: impl Fn(V) -> E,
    keys: &[V; TILE],
    wanted: bool,
    found: &mut [E; TILE],
    scratch: &mut Scratch,
    selection: &mut Selection,
) {
    match selection.rows() {
        Rows::All(count) => {
            let keys = keys.get(..count).unwrap_or_default();
            found.iter_mut().zip(keys).for_each(|(found, key)| *found = entry(*key));
            scratch.with_flags(|_, flags| {
                kernels::flag_entries(found, wanted, flags);
                selection.keep(flags);
            });
        }
        Rows::Some(_) => selection.retain(|row| {
            let entry = entry(keys[row % TILE]);
            found[row % TILE] = entry;
            (entry != E::default()) == wanted
        }),
    }
}

/// Looks up the rows that are left: `keys[k]` is the key of the k-th, and it is there where `valid[k]` is 1.
pub fn by_keys(
    probed: &Probed<'_>,
    keys: &[i64; TILE],
    valid: &mut Flags,
    found: &mut Lanes,
    selection: &mut Selection,
) {
    let rows = selection.rows();
    match (probed.table, found) {
        (JoinTable::Bits { direct, .. }, _) => each(rows, keys, valid, |key, _| direct.has_bit(key)),
        (JoinTable::U8(direct), Lanes::U8(found)) => each(rows, keys, valid, entry(direct, found)),
        (JoinTable::U16(direct), Lanes::U16(found)) => each(rows, keys, valid, entry(direct, found)),
        (JoinTable::U32(direct), Lanes::U32(found)) => each(rows, keys, valid, entry(direct, found)),
        (JoinTable::U64(direct), Lanes::U64(found)) => each(rows, keys, valid, entry(direct, found)),
        (JoinTable::Hash(map), Lanes::U64(found)) => each(rows, keys, valid, hashed(map, found)),
        // The lanes have been made for the table.
        _ => valid.fill(0),
    }
    if probed.probe.kind == ProbeKind::Anti {
        valid.iter_mut().for_each(|flag| *flag ^= 1);
    }
    selection.keep(valid);
}

fn entry<E: Stored>(direct: &Direct<E>, found: &mut [E; TILE]) -> impl FnMut(i64, usize) -> bool {
    |key, row| {
        let entry = direct.get(key);
        found[row % TILE] = entry;
        entry != E::default()
    }
}

fn hashed(map: &HashMap<i64, u64>, found: &mut [u64; TILE]) -> impl FnMut(i64, usize) -> bool {
    |key, row| {
        let entry = map.get(&key);
        found[row % TILE] = !entry.copied().unwrap_or_default();
        entry.is_some()
    }
}

/// Replaces each flag that is 1 by whether `look_up` finds the row's key.
fn each(rows: Rows<'_>, keys: &[i64; TILE], flags: &mut Flags, mut look_up: impl FnMut(i64, usize) -> bool) {
    let entries = keys.iter().zip(flags);
    match rows {
        Rows::All(count) => {
            for (row, (key, flag)) in entries.take(count).enumerate() {
                *flag &= u8::from(look_up(*key, row));
            }
        }
        Rows::Some(rows) => {
            for (row, (key, flag)) in rows.iter().zip(entries) {
                *flag &= u8::from(look_up(*key, place(*row)));
            }
        }
    }
}
