//! Bit packing in one sequence: value i of width b is at bits i·b to i·b + b - 1 of the bytes, so that any one value can be read alone.

use super::vectors::{self, Kernel};
use crate::{TileError, Value};

/// Bytes that `value_count` values of `bit_width` bits take: whole words of 32 bits.
#[must_use]
pub const fn packed_bytes(value_count: usize, bit_width: u32) -> usize {
    (value_count * bit_width as usize).div_ceil(32) * 4
}

/// Appends `value - reference` of all values to `bytes`; every difference must be less than 2^bit_width.
pub fn pack<V: Value>(values: &[V], reference: V, bit_width: u32, bytes: &mut Vec<u8>) {
    if bit_width == 0 {
        return;
    }
    let start = bytes.len();
    bytes.resize(start + packed_bytes(values.len(), bit_width), 0);
    let (words, _) = bytes.get_mut(start..).unwrap_or_default().as_chunks_mut::<4>();
    let residuals = values.iter().map(|value| value.wrapping_sub(reference).to_u64());
    if bit_width <= 32 {
        pack_narrow(residuals, bit_width, words);
    } else {
        pack_wide(residuals, bit_width, words);
    }
}

/// Residuals of at most 32 bits: at most one word becomes full with each.
fn pack_narrow(residuals: impl Iterator<Item = u64>, bit_width: u32, words: &mut [[u8; 4]]) {
    let mut words = words.iter_mut();
    let (mut waiting, mut waiting_bits) = (0_u64, 0);
    for residual in residuals {
        waiting |= residual << waiting_bits;
        waiting_bits += bit_width;
        if waiting_bits >= 32 {
            put_word(words.next(), waiting);
            waiting >>= 32;
            waiting_bits -= 32;
        }
    }
    put_word(words.next(), waiting);
}

fn pack_wide(residuals: impl Iterator<Item = u64>, bit_width: u32, words: &mut [[u8; 4]]) {
    let mut words = words.iter_mut();
    // At most 31 bits wait for a full word when up to 64 come: 95 of 128.
    let (mut waiting, mut waiting_bits) = (0_u128, 0);
    for residual in residuals {
        waiting |= u128::from(residual) << waiting_bits;
        waiting_bits += bit_width;
        while waiting_bits >= 32 {
            put_word(words.next(), waiting as u64);
            waiting >>= 32;
            waiting_bits -= 32;
        }
    }
    put_word(words.next(), waiting as u64);
}

/// The low 32 bits; there is no place behind a last word that was full.
fn put_word(place: Option<&mut [u8; 4]>, bits: u64) {
    if let Some(place) = place {
        *place = (bits as u32).to_le_bytes();
    }
}

/// Values packed in a sequence, whose bytes are proven to suffice.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a> {
    /// The packed values and whatever follows them.
    bytes: &'a [u8],
    bit_width: u32,
    value_count: usize,
}

impl<'a> Packed<'a> {
    /// Proves that `bytes` begin with `value_count` values of `bit_width` bits, and returns them with the bytes behind them.
    ///
    /// # Errors
    /// A width wider than `value_width`, or too few bytes.
    pub fn parse(
        bytes: &'a [u8],
        value_count: usize,
        bit_width: u32,
        value_width: u32,
    ) -> Result<(Self, &'a [u8]), TileError> {
        if bit_width > value_width {
            return Err(TileError::BitWidth { bit_width, value_width });
        }
        let needed = packed_bytes(value_count, bit_width);
        let Some((_, rest)) = bytes.split_at_checked(needed) else {
            return Err(TileError::Truncated {
                needed_bytes: needed as u64,
                found_bytes: bytes.len() as u64,
            });
        };
        Ok((Self { bytes, bit_width, value_count }, rest))
    }

    /// The values, without a reference.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        let mask = if self.bit_width == 0 { 0 } else { u64::MAX >> (u64::BITS - self.bit_width) };
        (0..self.value_count).map(move |index| self.bits(index) & mask)
    }

    /// Writes `reference + value` for the values from `first` on, in order, as far as both reach.
    pub fn unpack<V: Value>(&self, first: usize, reference: V, values: &mut [V]) {
        let len = values.len().min(self.value_count.saturating_sub(first));
        let values = values.get_mut(..len).unwrap_or_default();
        // Eight bytes hold a value of so many bits wherever in its first byte it begins.
        if self.bit_width <= u64::BITS - 7 {
            vectors::run(Unpack { packed: *self, first, reference, values });
            return;
        }
        for (value, residual) in values.iter_mut().zip(self.iter().skip(first)) {
            *value = V::from_u64(residual).wrapping_add(reference);
        }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.value_count
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.value_count == 0
    }

    /// Value `index` and, above it, bits of later values.
    fn bits(&self, index: usize) -> u64 {
        let bit = index * self.bit_width as usize;
        let (byte, shift) = (bit / 8, (bit % 8) as u32);
        let tail = self.bytes.get(byte..).unwrap_or_default();
        if let Some(low) = tail.first_chunk::<16>() {
            return low_bits(u128::from_le_bytes(*low) >> shift);
        }
        let mut padded = [0; 16];
        for (padded, byte) in padded.iter_mut().zip(tail) {
            *padded = *byte;
        }
        low_bits(u128::from_le_bytes(padded) >> shift)
    }
}

/// Values of at most 57 bits.
struct Unpack<'a, 'v, V> {
    packed: Packed<'a>,
    first: usize,
    reference: V,
    values: &'v mut [V],
}

impl<V: Value> Kernel for Unpack<'_, '_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { packed, first, reference, values } = self;
        let bit_width = packed.bit_width as usize;
        let mask = (1_u64 << packed.bit_width) - 1;
        for (index, value) in (first..).zip(values) {
            let bit = index * bit_width;
            let bits = match packed.bytes.get(bit / 8..bit / 8 + 8).and_then(|eight| eight.first_chunk()) {
                Some(eight) => u64::from_le_bytes(*eight) >> (bit % 8),
                None => packed.bits(index),
            };
            *value = V::from_u64(bits & mask).wrapping_add(reference);
        }
    }
}

fn low_bits(bits: u128) -> u64 {
    (bits & u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packing::vectors::tests::at_every_level;

    fn obvious(bytes: &[u8], index: usize, bit_width: u32) -> u64 {
        let bit = |k: usize| u64::from(bytes[k / 8] >> (k % 8) & 1);
        (0..bit_width as usize).map(|k| bit(index * bit_width as usize + k) << k).sum()
    }

    #[test]
    fn every_width_agrees_with_the_bitwise_reading() {
        let mut state = 1_u64;
        for bit_width in 0..=64 {
            for value_count in [0, 1, 2, 31, 100, 1024] {
                let values: Vec<u64> = (0..value_count)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        if bit_width == 0 { 0 } else { state >> (64 - bit_width) }
                    })
                    .collect();
                let mut bytes = Vec::new();
                pack(&values, 0, bit_width, &mut bytes);
                let (packed, rest) = Packed::parse(&bytes, value_count, bit_width, 64).unwrap();
                assert!(rest.is_empty());
                assert_eq!(packed.iter().collect::<Vec<_>>(), values, "{bit_width} bits");
                at_every_level(|| {
                    let mut unpacked = vec![0; value_count];
                    let (front, back) = unpacked.split_at_mut(value_count / 3);
                    packed.unpack(0, 7, front);
                    packed.unpack(value_count / 3, 7, back);
                    let shifted: Vec<u64> = values.iter().map(|value| value.wrapping_add(7)).collect();
                    assert_eq!(unpacked, shifted, "{bit_width} bits over a reference");
                });
                let read: Vec<u64> =
                    (0..value_count).map(|index| obvious(&bytes, index, bit_width)).collect();
                assert_eq!(read, values, "{bit_width} bits");
            }
        }
    }

    #[test]
    fn too_few_bytes_are_refused() {
        assert!(matches!(
            Packed::parse(&[0; 3], 1, 1, 8),
            Err(TileError::Truncated { needed_bytes: 4, found_bytes: 3 })
        ));
    }
}
