//! Tables that builds make and probes look into.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::QueryError;
use crate::plan::{Build, Index};

/// Up to so many keys, a byte a key takes little of the nearest caches and is found with fewer instructions than a bit.
const BYTE_KEYS: u64 = 1 << 18;

/// Entries by key - domain.min. They are stored inverted: absence, all ones, is then zero, and memory that nobody wrote costs nothing.
#[derive(Debug)]
pub struct Direct<E> {
    /// The key of the first entry.
    pub min: i64,
    /// The entries.
    pub entries: Vec<E>,
}

/// A table of keys.
#[derive(Debug)]
pub enum JoinTable {
    /// Which of many keys there are, a bit each.
    Bits {
        /// Bits in words, the lowest of the first word first.
        direct: Direct<u32>,
        /// Number of keys in the domain.
        keys: u64,
    },
    /// Entries of 8 bits, or which of few keys there are.
    U8(Direct<u8>),
    /// Entries of 16 bits.
    U16(Direct<u16>),
    /// Entries of 32 bits.
    U32(Direct<u32>),
    /// Entries of 64 bits.
    U64(Direct<u64>),
    /// Packed entries by key, as they are.
    Hash(HashMap<i64, u64>),
}

/// What happened to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// It is in.
    New,
    /// There is one of this key already, which stays.
    Repeated,
    /// The key lies outside the domain, or the entry does not fit.
    Outside,
}

impl JoinTable {
    /// An empty table for `build`.
    ///
    /// # Errors
    /// More memory than there is.
    pub fn new(build: &Build) -> Result<Self, QueryError> {
        if let Index::Hash { .. } = build.index {
            return Ok(Self::Hash(HashMap::new()));
        }
        let min = build.domain.min;
        let span = build.domain.span();
        Ok(match build.entry_width {
            1 if span < BYTE_KEYS => Self::U8(Direct { min, entries: zeros(span, build)? }),
            1 => {
                let direct = Direct { min, entries: zeros(span / 32, build)? };
                Self::Bits { direct, keys: span.checked_add(1).ok_or_else(|| too_large(span, build))? }
            }
            8 => Self::U8(Direct { min, entries: zeros(span, build)? }),
            16 => Self::U16(Direct { min, entries: zeros(span, build)? }),
            32 => Self::U32(Direct { min, entries: zeros(span, build)? }),
            _ => Self::U64(Direct { min, entries: zeros(span, build)? }),
        })
    }

    /// Enters `entry` under `key`.
    pub fn insert(&mut self, key: i64, entry: u64) -> Inserted {
        match self {
            Self::Bits { direct, keys } => {
                let offset = key.wrapping_sub(direct.min).cast_unsigned();
                let word = usize::try_from(offset / 32).ok().and_then(|word| direct.entries.get_mut(word));
                let (Some(word), true) = (word, offset < *keys) else { return Inserted::Outside };
                let bit = 1 << (offset % 32);
                let inserted = if *word & bit == 0 { Inserted::New } else { Inserted::Repeated };
                *word |= bit;
                inserted
            }
            Self::U8(direct) => direct.insert(key, u8::try_from(entry).ok()),
            Self::U16(direct) => direct.insert(key, u16::try_from(entry).ok()),
            Self::U32(direct) => direct.insert(key, u32::try_from(entry).ok()),
            Self::U64(direct) => direct.insert(key, Some(entry)),
            Self::Hash(map) => match map.entry(key) {
                Entry::Occupied(_) => Inserted::Repeated,
                Entry::Vacant(vacant) => {
                    vacant.insert(entry);
                    Inserted::New
                }
            },
        }
    }
}

/// An entry of 8, 16, 32 or 64 bits.
pub trait Stored: codec_core::Value + std::ops::Not<Output = Self> {}

impl Stored for u8 {}
impl Stored for u16 {}
impl Stored for u32 {}
impl Stored for u64 {}

impl<E: Stored> Direct<E> {
    fn insert(&mut self, key: i64, entry: Option<E>) -> Inserted {
        let offset = usize::try_from(key.wrapping_sub(self.min).cast_unsigned()).ok();
        let place = offset.and_then(|offset| self.entries.get_mut(offset));
        let (Some(place), Some(stored)) = (place, entry.map(E::not)) else { return Inserted::Outside };
        // What would be stored as absence is no entry.
        if stored == E::default() {
            return Inserted::Outside;
        }
        if *place != E::default() {
            return Inserted::Repeated;
        }
        *place = stored;
        Inserted::New
    }

    /// The inverted entry of `key`, zero where there is none.
    #[inline(always)]
    pub fn get(&self, key: i64) -> E {
        let offset = usize::try_from(key.wrapping_sub(self.min).cast_unsigned()).unwrap_or(usize::MAX);
        self.entries.get(offset).copied().unwrap_or_default()
    }
}

impl Direct<u32> {
    /// Whether the bit of `key` is set.
    #[inline(always)]
    pub fn has_bit(&self, key: i64) -> bool {
        let offset = key.wrapping_sub(self.min).cast_unsigned();
        let word = usize::try_from(offset / 32).ok().and_then(|word| self.entries.get(word));
        word.copied().unwrap_or_default() >> (offset % 32) & 1 == 1
    }
}

/// Zeros numbered from 0 to `last`. Their memory is taken when it is written: a domain that lies takes none.
fn zeros<E: Stored>(last: u64, build: &Build) -> Result<Vec<E>, QueryError> {
    let length = last.checked_add(1).and_then(|length| usize::try_from(length).ok());
    let length = length.ok_or_else(|| too_large(last, build))?;
    // Asked for first, since memory that is not there ends the program in `vec`.
    Vec::<E>::new().try_reserve_exact(length).map_err(|_| too_large(last, build))?;
    Ok(vec![E::default(); length])
}

fn too_large(last: u64, build: &Build) -> QueryError {
    let (bits, key) = (build.entry_width, &build.key_name);
    QueryError::Options {
        reason: format!("no memory for the table of {key}: {last} entries and one of {bits} bits"),
    }
}
