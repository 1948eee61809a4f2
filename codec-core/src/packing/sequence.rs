//! Bit packing in one sequence: value i of width b is at bits i·b to i·b + b - 1 of the bytes, so that any one value can be read alone.

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
    let end = bytes.len() + packed_bytes(values.len(), bit_width);
    // At most 31 bits wait for a full word when up to 64 come: 95 of 128.
    let (mut waiting, mut waiting_bits) = (0_u128, 0);
    for &value in values {
        waiting |= u128::from(value.wrapping_sub(reference).to_u64()) << waiting_bits;
        waiting_bits += bit_width;
        while waiting_bits >= 32 {
            bytes.extend_from_slice(&low_word(waiting));
            waiting >>= 32;
            waiting_bits -= 32;
        }
    }
    if waiting_bits > 0 {
        bytes.extend_from_slice(&low_word(waiting));
    }
    debug_assert_eq!(bytes.len(), end);
}

fn low_word(bits: u128) -> [u8; 4] {
    ((bits & u128::from(u32::MAX)) as u32).to_le_bytes()
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

    /// Writes `reference + value` for the values, in order, as far as both reach.
    pub fn unpack<V: Value>(&self, reference: V, values: &mut [V]) {
        for (value, residual) in values.iter_mut().zip(self.iter()) {
            *value = V::from_u64(residual).wrapping_add(reference);
        }
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

fn low_bits(bits: u128) -> u64 {
    (bits & u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

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
