//! Memory that is used again: new pages cost as much as reading or decoding into them.

use std::sync::{Mutex, PoisonError};

/// Memory that nobody uses at present, for values to come.
#[derive(Debug)]
pub struct Spare<T> {
    kept: Mutex<Vec<Vec<T>>>,
    most_bytes: usize,
}

impl<T: Copy + Default> Spare<T> {
    /// What takes fewer bytes is cheap and frequent, and not kept.
    pub const LEAST_BYTES: usize = 64 << 10;

    /// Nothing yet; never more than `most_bytes` bytes.
    #[must_use]
    pub fn new(most_bytes: usize) -> Self {
        Self { kept: Mutex::default(), most_bytes }
    }

    /// Memory of at least `length` values, whatever they are.
    #[must_use]
    pub fn take(&self, length: usize) -> Vec<T> {
        if length.saturating_mul(size_of::<T>()) >= Self::LEAST_BYTES {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = |memory: &Vec<T>| memory.len() >= length && memory.len() / 2 <= length;
            if let Some(index) = kept.iter().position(fits) {
                return kept.swap_remove(index);
            }
        }
        vec![T::default(); length]
    }

    /// Takes back what [`Spare::take`] gave.
    pub fn give(&self, memory: Vec<T>) {
        let bytes = size_of_val(memory.as_slice());
        if bytes < Self::LEAST_BYTES {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept_bytes: usize = kept.iter().map(|memory| size_of_val(memory.as_slice())).sum();
        if kept_bytes + bytes <= self.most_bytes {
            kept.push(memory);
        }
    }

    /// Number of values of each piece that is kept.
    #[must_use]
    pub fn kept(&self) -> Vec<usize> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Vec::len).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_memory_is_kept_than_promised() {
        let spare = Spare::new(32 << 20);
        for _ in 0..100 {
            spare.give(vec![0_u8; 1 << 20]);
        }
        assert_eq!(spare.kept(), [1 << 20; 32]);
        let spare = Spare::new(32 << 20);
        for _ in 0..100 {
            spare.give(vec![0_u128; 1 << 16]);
        }
        assert_eq!(spare.kept(), [1 << 16; 32]);
    }

    #[test]
    fn small_pieces_are_not_kept_and_large_ones_not_taken_for_little() {
        let spare = Spare::new(32 << 20);
        spare.give(vec![0_u8; Spare::<u8>::LEAST_BYTES - 1]);
        assert!(spare.kept().is_empty());
        spare.give(vec![0_u8; 1 << 20]);
        assert_eq!(spare.take(100_000).len(), 100_000);
        assert_eq!(spare.take(600_000).len(), 1 << 20);
        assert!(spare.kept().is_empty());
    }
}
