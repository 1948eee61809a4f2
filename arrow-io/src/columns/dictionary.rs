//! The distinct strings (or binary values) of a node.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

/// More entries than this, or more bytes of entries, and there is no dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DictionaryLimits {
    /// Most entries.
    pub entries: usize,
    /// Most bytes of all entries together.
    pub bytes: usize,
}

impl Default for DictionaryLimits {
    /// 2^20 entries, 32 MiB.
    fn default() -> Self {
        Self { entries: 1 << 20, bytes: 32 << 20 }
    }
}

/// What codes may cost more than the values themselves.
pub const LITTLE_BYTES: u64 = 128;

/// Distinct values in the order of their first appearance, or, once sorted, ascending. A value's code is its index.
#[derive(Debug, Clone, Default)]
pub struct StringDictionary {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    codes: HashTable<u32>,
    hasher: DefaultHashBuilder,
    ordered: bool,
}

impl StringDictionary {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all entries together.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each entry ends in [`StringDictionary::bytes`].
    #[must_use]
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Whether the entries ascend.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// The entry with this code; empty where there is none.
    #[must_use]
    pub fn entry(&self, code: u32) -> &[u8] {
        entry(&self.bytes, &self.ends, code)
    }

    /// The code of `value`, if it is an entry.
    #[must_use]
    pub fn code(&self, value: &[u8]) -> Option<u32> {
        let hash = hash(&self.hasher, value);
        self.codes.find(hash, |&code| is_same(self.entry(code), value)).copied()
    }

    /// The code of `value`, which becomes an entry if it is none and `limits` allow it. `None` beyond them.
    pub fn insert(&mut self, value: &[u8], limits: DictionaryLimits) -> Option<u32> {
        let value_hash = hash(&self.hasher, value);
        let (bytes, ends) = (&self.bytes, &self.ends);
        if let Some(&code) = self.codes.find(value_hash, |&code| is_same(entry(bytes, ends, code), value)) {
            return Some(code);
        }
        let code = u32::try_from(self.ends.len()).ok()?;
        if self.ordered || self.ends.len() >= limits.entries || self.bytes.len() + value.len() > limits.bytes
        {
            return None;
        }
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        self.codes.insert_unique(value_hash, code, |&code| hash(hasher, entry(bytes, ends, code)));
        Some(code)
    }

    /// The same entries ascending by unsigned bytes; no more can be inserted.
    #[must_use]
    pub fn sorted(&self) -> Arc<Self> {
        let mut sorted = Self::default();
        // All entries were within some limits already.
        let limits = DictionaryLimits { entries: usize::MAX, bytes: usize::MAX };
        for code in self.codes_ascending() {
            sorted.insert(self.entry(code), limits);
        }
        sorted.ordered = true;
        Arc::new(sorted)
    }

    /// The place of each entry in ascending order.
    #[must_use]
    pub fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.len()];
        for (rank, code) in (0_u32..).zip(self.codes_ascending()) {
            if let Some(place) = usize::try_from(code).ok().and_then(|code| ranks.get_mut(code)) {
                *place = rank;
            }
        }
        ranks
    }

    /// Whether codes are smaller than the values themselves: `value_count` values with `value_bytes` bytes in all. Both sides are estimates before
    /// compression, so a dictionary must win clearly; but where it could lose no more than [`LITTLE_BYTES`], codes are taken for what queries can do with them.
    #[must_use]
    pub fn pays(&self, value_count: u64, value_bytes: u64) -> bool {
        let entries = self.len() as u64;
        let code_bits = u64::from(u64::BITS - entries.saturating_sub(1).leading_zeros());
        // An entry costs its bytes and about two bytes of ends; a value by itself costs its bytes and about one byte of ends.
        let with = self.bytes.len() as u64 + 2 * entries + (value_count * code_bits).div_ceil(8);
        let without = value_bytes + value_count;
        with * 10 < without * 9 || with <= without + LITTLE_BYTES
    }

    fn codes_ascending(&self) -> Vec<u32> {
        let mut codes: Vec<u32> = (0_u32..).take(self.len()).collect();
        codes.sort_unstable_by(|&left, &right| self.entry(left).cmp(self.entry(right)));
        codes
    }
}

/// Whether both are equal; most values are so short that a call to compare them would take longer than comparing them.
pub fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && match (as_number(left), as_number(right)) {
            (Some(left), Some(right)) => left == right,
            _ => left == right,
        }
}

fn hash(hasher: &DefaultHashBuilder, value: &[u8]) -> u64 {
    match as_number(value) {
        Some(number) => hasher.hash_one(number),
        None => hasher.hash_one(value),
    }
}

/// A number that no other value of the same length has; `None` of a value of more than 16 bytes. Its halves overlap where the value is shorter than both.
#[inline(always)]
fn as_number(value: &[u8]) -> Option<u128> {
    let halves = if value.len() > 16 {
        return None;
    } else if let (Some(low), Some(high)) = (value.first_chunk(), value.last_chunk()) {
        (u64::from_le_bytes(*low), u64::from_le_bytes(*high))
    } else if let (Some(low), Some(high)) = (value.first_chunk(), value.last_chunk()) {
        (u32::from_le_bytes(*low).into(), u32::from_le_bytes(*high).into())
    } else if let (Some(low), Some(high)) = (value.first_chunk(), value.last_chunk()) {
        (u16::from_le_bytes(*low).into(), u16::from_le_bytes(*high).into())
    } else {
        (value.first().map_or(0, |&byte| byte.into()), 0)
    };
    Some(u128::from(halves.0) | u128::from(halves.1) << 64)
}

fn entry<'a>(bytes: &'a [u8], ends: &[usize], code: u32) -> &'a [u8] {
    let index = usize::try_from(code).unwrap_or(usize::MAX);
    let Some(&end) = ends.get(index) else { return &[] };
    let start = index.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    bytes.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn values_of_one_length_are_told_apart_by_every_byte() {
        for length in 0..20 {
            let zeros = vec![0_u8; length];
            let mut numbers = HashSet::from([as_number(&zeros)]);
            for changed in 0..length {
                let mut value = zeros.clone();
                value[changed] = 1;
                assert!(is_same(&value, &value.clone()) && !is_same(&value, &zeros));
                assert!(length > 16 || numbers.insert(as_number(&value)), "byte {changed} of {length}");
            }
            assert!(!is_same(&zeros, &vec![0; length + 1]));
        }
    }

    #[test]
    fn codes_follow_insertion_and_ranks_follow_bytes() {
        let mut dictionary = StringDictionary::default();
        let limits = DictionaryLimits { entries: 3, bytes: 100 };
        let codes = ["b", "a", "b", "", "c"].map(|value| dictionary.insert(value.as_bytes(), limits));
        assert_eq!(codes, [Some(0), Some(1), Some(0), Some(2), None]);
        assert_eq!(dictionary.ranks(), [2, 1, 0]);
        let sorted = dictionary.sorted();
        assert_eq!((0..3).map(|code| sorted.entry(code)).collect::<Vec<_>>(), [b"".as_slice(), b"a", b"b"]);
        assert_eq!(sorted.code(b"b"), Some(2));
        assert_eq!(sorted.code(b"c"), None);
    }

    #[test]
    fn distinct_values_do_not_pay_and_repeated_ones_do() {
        let mut dictionary = StringDictionary::default();
        for value in 0..100_u32 {
            dictionary.insert(format!("value {value}").as_bytes(), DictionaryLimits::default());
        }
        assert!(!dictionary.pays(100, dictionary.bytes().len() as u64));
        assert!(dictionary.pays(10_000, 100 * dictionary.bytes().len() as u64));
        let mut few = StringDictionary::default();
        for value in ["north", "south", "east"] {
            few.insert(value.as_bytes(), DictionaryLimits::default());
        }
        assert!(few.pays(3, 14));
    }
}
