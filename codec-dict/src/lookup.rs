//! The codes of a block's entries.

use codec_core::Value;
use hashbrown::HashMap;

use crate::entry;

/// Ranges up to this many times the entries are a table, of two bytes a place.
const TABLE_FACTOR: u64 = 64;

/// From values to codes.
pub enum Lookup<V> {
    /// Entries near each other: the code of `first + place` is at that place.
    Table {
        /// The smallest entry.
        first: V,
        /// As far as the largest entry; what is no entry has some code.
        codes: Vec<u16>,
    },
    /// Entries far apart.
    Map(HashMap<V, u16>),
}

impl<V: Value> Lookup<V> {
    /// Of entries that ascend, at least one.
    pub fn of(shared: &[u8]) -> Self {
        let count = shared.len() / V::BYTES;
        let entries = || (0..=u16::MAX).take(count).map(|code| (entry::<V>(shared, code), code));
        let first = entry::<V>(shared, 0);
        let last = entries().next_back().map_or(first, |(last, _)| last);
        let place = |value: V| usize::try_from(value.wrapping_sub(first).to_u64()).ok();
        match place(last) {
            Some(range) if range as u64 <= count as u64 * TABLE_FACTOR => {
                let mut codes = vec![0; range + 1];
                for (value, code) in entries() {
                    if let Some(place) = place(value).and_then(|place| codes.get_mut(place)) {
                        *place = code;
                    }
                }
                Self::Table { first, codes }
            }
            _ => Self::Map(entries().collect()),
        }
    }

    /// Appends the codes of `values`, which are entries.
    pub fn append(&self, values: &[V], found: &mut Vec<u16>) {
        match self {
            Self::Table { first, codes } => found.extend(values.iter().map(|value| {
                let place = usize::try_from(value.wrapping_sub(*first).to_u64()).unwrap_or(usize::MAX);
                codes.get(place).copied().unwrap_or_default()
            })),
            Self::Map(codes) => {
                found.extend(values.iter().map(|value| codes.get(value).copied().unwrap_or_default()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use codec_core::Codec;

    use super::*;
    use crate::Dict;

    fn codes_of(values: &[u64]) -> (Vec<u16>, bool) {
        let shared = Dict::encode_shared(values);
        let (lookup, mut codes) = (Lookup::<u64>::of(&shared), Vec::new());
        lookup.append(values, &mut codes);
        assert!(values.iter().zip(&codes).all(|(&value, &code)| entry::<u64>(&shared, code) == value));
        (codes, matches!(lookup, Lookup::Table { .. }))
    }

    #[test]
    fn entries_near_and_far_are_found() {
        assert_eq!(codes_of(&[70, 7, 7, 100]), (vec![1, 0, 0, 2], true));
        assert_eq!(codes_of(&[u64::MAX, 0, 1 << 40]), (vec![2, 0, 1], false));
        assert_eq!(codes_of(&[u64::MAX]), (vec![0], true));
        let many: Vec<u64> = (0..70_000).map(|position| position % 65_536 * 3).collect();
        assert_eq!(codes_of(&many).0.iter().max(), Some(&u16::MAX));
    }
}
