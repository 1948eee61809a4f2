//! Where groups keep their words.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::plan::{Aggregate, GroupWords, Groups};

/// Most bytes of dense words that each thread keeps; beyond, groups are found by hash.
const DENSE_BYTES: u64 = 4 << 20;

/// The groups that one thread has seen.
#[derive(Debug)]
pub enum LocalGroups {
    /// The words of the one group, or of every index.
    Dense {
        /// Number of indexes.
        slots: u64,
        /// Words of index 0, then of index 1, and so on.
        words: Vec<u64>,
    },
    /// The words of those that have rows.
    Hashed {
        /// Number of indexes that there can be, if that is known.
        slots: Option<u64>,
        /// Number of the group with an index.
        numbers: HashMap<u64, usize>,
        /// Indexes in the order of their numbers.
        indexes: Vec<u64>,
        /// Words of group 0, then of group 1, and so on.
        words: Vec<u64>,
    },
}

impl LocalGroups {
    /// No rows yet.
    pub fn new(aggregate: &Aggregate) -> Self {
        let words = aggregate.words.len();
        let slots = match aggregate.groups {
            Groups::One => return Self::Dense { slots: 1, words: vec![0; words] },
            Groups::Dense { slots } => Some(slots),
            Groups::Hash { .. } => None,
        };
        let length = slots.and_then(|slots| slots.checked_mul(words as u64));
        match (length.filter(|length| *length <= DENSE_BYTES / 8), slots) {
            (Some(length), Some(slots)) if aggregate.presence.is_some() => {
                let length = usize::try_from(length).unwrap_or_default();
                Self::Dense { slots, words: vec![0; length] }
            }
            _ => {
                let (indexes, words) = (Vec::new(), Vec::new());
                Self::Hashed { slots, numbers: HashMap::new(), indexes, words }
            }
        }
    }

    /// Replaces each index by the place of the group's first word. `None` where an index is beyond the slots.
    pub fn places(&mut self, indexes: &mut [i64], word_count: usize) -> Option<()> {
        match self {
            Self::Dense { slots, .. } => {
                let mut outside = false;
                for index in indexes {
                    outside |= index.cast_unsigned() >= *slots;
                    *index = index.wrapping_mul(word_count.cast_signed() as i64);
                }
                (!outside).then_some(())
            }
            Self::Hashed { slots, numbers, indexes: found, words } => {
                for index in indexes {
                    let wanted = index.cast_unsigned();
                    if slots.is_some_and(|slots| wanted >= slots) {
                        return None;
                    }
                    let number = match numbers.entry(wanted) {
                        Entry::Occupied(occupied) => *occupied.get(),
                        Entry::Vacant(vacant) => {
                            let number = *vacant.insert(found.len());
                            found.push(wanted);
                            words.resize(words.len() + word_count, 0);
                            number
                        }
                    };
                    *index = number.wrapping_mul(word_count).cast_signed() as i64;
                }
                Some(())
            }
        }
    }

    /// The words.
    pub fn words_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Dense { words, .. } | Self::Hashed { words, .. } => words,
        }
    }

    /// The groups that have rows; the one group of all rows also without.
    pub fn finish(self, aggregate: &Aggregate) -> GroupWords {
        match self {
            Self::Hashed { indexes, words, .. } => GroupWords { indexes, words },
            Self::Dense { words, .. } if aggregate.groups == Groups::One => {
                GroupWords { indexes: vec![0], words }
            }
            Self::Dense { words, .. } => {
                let mut present = GroupWords::default();
                let presence = aggregate.presence.unwrap_or_default();
                for (index, words) in (0..).zip(words.chunks_exact(aggregate.words.len().max(1))) {
                    if words.get(presence).is_some_and(|word| *word != 0) {
                        present.indexes.push(index);
                        present.words.extend_from_slice(words);
                    }
                }
                present
            }
        }
    }
}
