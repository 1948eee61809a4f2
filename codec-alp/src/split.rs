//! Scheme split: left parts from a small dictionary, right parts packed.

use codec_core::Value;
use codec_core::packing::{bit_width, lanes};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U16;

use crate::decimal::sampled;
use crate::exceptions::Exceptions;
use crate::{Header, SPLIT};

/// Entries of the dictionary, used or not.
pub const DICTIONARY_LEN: usize = 8;
/// Bits that the widest code takes.
pub const MAX_CODE_BITS: u8 = 3;
/// Bits of the longest left part.
pub const MAX_LEFT_BITS: u32 = 16;

/// Values that are looked at to choose where to split.
const SAMPLED_VALUES: usize = 128;
/// Bits of an exception: left part and position.
const EXCEPTION_BITS: u32 = 32;

/// Where to split a tile.
#[derive(Debug)]
pub struct Plan {
    /// Bits of the right parts.
    pub right_bits: u32,
    /// Bits that a value takes, exceptions included, as the sample says.
    pub value_bits: f64,
}

/// The best place to split a sample of `values`.
pub fn plan<V: Value>(values: &[V]) -> Plan {
    let width = u32::from(V::WIDTH);
    let mut sample: Vec<u64> = sampled(values, SAMPLED_VALUES).map(V::to_u64).collect();
    sample.sort_unstable();
    let plans = (width - MAX_LEFT_BITS..width).map(|right_bits| {
        let counts = left_counts(sample.iter().map(|value| value >> right_bits));
        let (code_bits, exceptions) = cheapest_dictionary(&counts, sample.len());
        let rights = sample.iter().map(|value| value & ((1 << right_bits) - 1));
        let (min, max) = rights.fold((u64::MAX, 0), |(min, max), right| (right.min(min), right.max(max)));
        let residual_bits = u64::BITS - max.saturating_sub(min).leading_zeros();
        let exception_rate = exceptions as f64 / sample.len().max(1) as f64;
        let value_bits =
            f64::from(residual_bits) + f64::from(code_bits) + exception_rate * f64::from(EXCEPTION_BITS);
        Plan { right_bits, value_bits }
    });
    plans
        .min_by(|left, right| left.value_bits.total_cmp(&right.value_bits))
        .unwrap_or(Plan { right_bits: width - 1, value_bits: f64::from(width) })
}

/// The distinct left parts of an ascending sequence and how often each occurs: the most frequent first, of equals the smallest.
fn left_counts(lefts: impl Iterator<Item = u64>) -> Vec<(usize, u64)> {
    let mut counts: Vec<(usize, u64)> = Vec::new();
    for left in lefts {
        match counts.last_mut() {
            Some((count, last)) if *last == left => *count += 1,
            _ => counts.push((1, left)),
        }
    }
    counts.sort_by_key(|&(count, left)| (std::cmp::Reverse(count), left));
    counts
}

/// Bits a code, and how many values are not in a dictionary of so many codes, where both together take the fewest bits.
fn cheapest_dictionary(counts: &[(usize, u64)], value_count: usize) -> (u8, usize) {
    let choices = (0..=MAX_CODE_BITS).map(|code_bits| {
        let covered: usize = counts.iter().take(1 << code_bits).map(|(count, _)| count).sum();
        (code_bits, value_count.saturating_sub(covered))
    });
    let bits = |&(code_bits, exceptions): &(u8, usize)| {
        value_count * usize::from(code_bits) + exceptions * EXCEPTION_BITS as usize
    };
    choices.min_by_key(bits).unwrap_or((MAX_CODE_BITS, 0))
}

/// Puts the left parts above the right parts that `values` hold.
pub fn join<V: Value>(
    values: &mut [V],
    right_bits: u32,
    dictionary: &[u16; DICTIONARY_LEN],
    codes: &lanes::Packed<'_>,
) {
    let right_mask = (1_u64 << right_bits) - 1;
    let lefts = dictionary.map(|left| u64::from(left) << right_bits);
    let mut unpacked = vec![0_u8; values.len()];
    codes.unpack(0, &mut unpacked);
    for (value, code) in values.iter_mut().zip(unpacked) {
        // Codes have at most three bits, so the mask changes none.
        let left = lefts[usize::from(code) % DICTIONARY_LEN];
        *value = V::from_u64(left | (value.to_u64() & right_mask));
    }
}

/// A tile of codes, right parts and exceptions, ready to be packed.
#[derive(Debug)]
pub struct Split<V> {
    right_bits: u32,
    reference: V,
    dictionary: [U16; DICTIONARY_LEN],
    code_bit_width: u8,
    codes: Vec<u8>,
    rights: Vec<V>,
    exception_lefts: Vec<u16>,
    exception_positions: Vec<u16>,
}

impl<V: Value> Split<V> {
    /// The tile of `values` split above `right_bits`.
    pub fn of(values: &[V], right_bits: u32) -> Self {
        let lefts: Vec<u64> = values.iter().map(|value| value.to_u64() >> right_bits).collect();
        let mut sorted = lefts.clone();
        sorted.sort_unstable();
        let counts = left_counts(sorted.into_iter());
        let (code_bit_width, _) = cheapest_dictionary(&counts, values.len());
        let entries: Vec<u64> = counts.iter().take(1 << code_bit_width).map(|&(_, left)| left).collect();
        let mut dictionary = [U16::ZERO; DICTIONARY_LEN];
        for (place, &left) in dictionary.iter_mut().zip(&entries) {
            *place = narrow(left).into();
        }
        let right_mask = (1_u64 << right_bits) - 1;
        let rights: Vec<V> = values.iter().map(|value| V::from_u64(value.to_u64() & right_mask)).collect();
        let reference = rights.iter().copied().min().unwrap_or_default();
        let mut tile = Self {
            right_bits,
            reference,
            dictionary,
            code_bit_width,
            codes: Vec::with_capacity(values.len()),
            rights,
            exception_lefts: Vec::new(),
            exception_positions: Vec::new(),
        };
        for (position, left) in (0_u16..).zip(lefts) {
            let code = (0_u8..).zip(&entries).find(|(_, entry)| **entry == left).map(|(code, _)| code);
            tile.codes.push(code.unwrap_or(0));
            if code.is_none() {
                tile.exception_lefts.push(narrow(left));
                tile.exception_positions.push(position);
            }
        }
        tile
    }

    /// Appends the tile.
    pub fn append(&self, tile: &mut Vec<u8>) {
        let residuals: Vec<V> = self.rights.iter().map(|right| right.wrapping_sub(self.reference)).collect();
        let residual_bits = bit_width(&residuals);
        let header = Header {
            reference: self.reference.to_u64().into(),
            scheme: SPLIT,
            exponent: 0,
            bit_width: u8::try_from(residual_bits).unwrap_or(u8::MAX),
            right_bits: u8::try_from(self.right_bits).unwrap_or(u8::MAX),
            code_bit_width: self.code_bit_width,
            reserved: 0,
            exception_count: u16::try_from(self.exception_positions.len()).unwrap_or(u16::MAX).into(),
        };
        tile.extend_from_slice(header.as_bytes());
        tile.extend_from_slice(self.dictionary.as_bytes());
        lanes::pack(&self.codes, 0, self.code_bit_width.into(), tile);
        lanes::pack(&residuals, V::default(), residual_bits, tile);
        Exceptions::append(&self.exception_lefts, &self.exception_positions, tile);
    }
}

/// A left part: at most [`MAX_LEFT_BITS`] bits.
fn narrow(left: u64) -> u16 {
    u16::try_from(left).unwrap_or(u16::MAX)
}
