//! Scheme split: left parts from a small dictionary, right parts packed.

use codec_core::Value;
use codec_core::packing::vectors::{self, Kernel};
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
const SAMPLED_VALUES: usize = 256;
/// A split that is worse than the best by more than this many bits a value ends the search.
const GIVE_UP_BITS: u32 = 2;
/// Bits of an exception: left part and position.
const EXCEPTION_BITS: u32 = 32;

/// Where to split a tile.
#[derive(Debug)]
pub struct Plan {
    /// Bits of the right parts.
    pub right_bits: u32,
    /// Bits that a value takes, exceptions included, as the sample says.
    pub value_bits: f64,
    dictionary: Dictionary,
}

/// The left parts that get a code, the most frequent first.
#[derive(Debug, Clone, Copy)]
struct Dictionary {
    /// Entries without a use are 0.
    lefts: [u64; DICTIONARY_LEN],
    code_bits: u8,
}

/// The best place to split a sample of `values`.
pub fn plan<V: Value>(values: &[V]) -> Plan {
    let width = u32::from(V::WIDTH);
    let mut sample: Vec<u64> = sampled(values, SAMPLED_VALUES).map(V::to_u64).collect();
    sample.sort_unstable();
    let whole = Plan {
        right_bits: width - 1,
        value_bits: f64::from(width),
        dictionary: Dictionary { lefts: [0, 1, 0, 0, 0, 0, 0, 0], code_bits: 1 },
    };
    let mut best = whole;
    for right_bits in (width - MAX_LEFT_BITS..width).rev() {
        let plan = plan_at(&sample, right_bits);
        // Longer left parts only become more various from here on.
        if plan.value_bits > best.value_bits + f64::from(GIVE_UP_BITS) {
            break;
        }
        if plan.value_bits < best.value_bits {
            best = plan;
        }
    }
    best
}

fn plan_at(sample: &[u64], right_bits: u32) -> Plan {
    let (dictionary, exceptions) = cheapest_dictionary(sample, right_bits);
    let rights = sample.iter().map(|value| value & ((1 << right_bits) - 1));
    let (min, max) = rights.fold((u64::MAX, 0), |(min, max), right| (right.min(min), right.max(max)));
    let residual_bits = u64::BITS - max.saturating_sub(min).leading_zeros();
    let exception_rate = exceptions as f64 / sample.len().max(1) as f64;
    let value_bits = f64::from(residual_bits)
        + f64::from(dictionary.code_bits)
        + exception_rate * f64::from(EXCEPTION_BITS);
    Plan { right_bits, value_bits, dictionary }
}

/// The dictionary of left parts that takes the fewest bits, exceptions included, and how many of the ascending `sample` are none of it.
fn cheapest_dictionary(sample: &[u64], right_bits: u32) -> (Dictionary, usize) {
    let (mut counts, mut lefts) = ([0; DICTIONARY_LEN], [0; DICTIONARY_LEN]);
    for run in sample.chunk_by(|one, other| one >> right_bits == other >> right_bits) {
        // Behind those that are as frequent: of equals the smallest come first.
        let place = counts.iter().take_while(|&&count| count >= run.len()).count();
        if let (Some(counts), Some(lefts)) = (counts.get_mut(place..), lefts.get_mut(place..))
            && let (Some(count), Some(left)) = (counts.last_mut(), lefts.last_mut())
        {
            (*count, *left) = (run.len(), run.first().map_or(0, |value| value >> right_bits));
            counts.rotate_right(1);
            lefts.rotate_right(1);
        }
    }
    let exceptions = |code_bits: u8| {
        let covered: usize = counts.iter().take(1 << code_bits).sum();
        sample.len() - covered
    };
    let bits = |&code_bits: &u8| {
        sample.len() * usize::from(code_bits) + exceptions(code_bits) * EXCEPTION_BITS as usize
    };
    let code_bits = (0..=MAX_CODE_BITS).min_by_key(bits).unwrap_or(MAX_CODE_BITS);
    for left in lefts.iter_mut().skip(1 << code_bits) {
        *left = 0;
    }
    (Dictionary { lefts, code_bits }, exceptions(code_bits))
}

/// Puts the left parts above the right parts that `values` hold.
pub fn join<V: Value>(
    values: &mut [V],
    right_bits: u32,
    dictionary: &[u16; DICTIONARY_LEN],
    codes: &lanes::Packed<'_>,
) {
    let lefts = dictionary.map(|left| u64::from(left) << right_bits);
    let mut unpacked = vec![0; values.len()];
    codes.unpack(0, &mut unpacked);
    vectors::run(Join { values, right_bits, lefts, codes: &unpacked });
}

struct Join<'a, 'v, V> {
    values: &'v mut [V],
    right_bits: u32,
    lefts: [u64; DICTIONARY_LEN],
    codes: &'a [u8],
}

impl<V: Value> Kernel for Join<'_, '_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let right_mask = (1_u64 << self.right_bits) - 1;
        for (value, &code) in self.values.iter_mut().zip(self.codes) {
            // Codes have at most three bits, so the remainder changes none.
            let left = self.lefts[usize::from(code) % DICTIONARY_LEN];
            *value = V::from_u64(left | (value.to_u64() & right_mask));
        }
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
    /// The tile of `values` split as planned.
    pub fn of(values: &[V], plan: &Plan) -> Self {
        let Plan { right_bits, dictionary, .. } = *plan;
        let right_mask = (1_u64 << right_bits) - 1;
        let rights: Vec<V> = values.iter().map(|value| V::from_u64(value.to_u64() & right_mask)).collect();
        let reference = rights.iter().copied().min().unwrap_or_default();
        let mut codes = vec![NO_CODE; values.len()];
        vectors::run(Codes { values, right_bits, dictionary, codes: &mut codes });
        let mut tile = Self {
            right_bits,
            reference,
            dictionary: dictionary.lefts.map(|left| narrow(left).into()),
            code_bit_width: dictionary.code_bits,
            codes,
            rights,
            exception_lefts: Vec::new(),
            exception_positions: Vec::new(),
        };
        for ((position, code), value) in (0_u16..).zip(&mut tile.codes).zip(values) {
            if *code == NO_CODE {
                *code = 0;
                tile.exception_lefts.push(narrow(value.to_u64() >> right_bits));
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

/// Stands for a left part that the dictionary lacks.
const NO_CODE: u8 = u8::MAX;

/// Finds the code of each value's left part, without a branch.
struct Codes<'a, V> {
    values: &'a [V],
    right_bits: u32,
    dictionary: Dictionary,
    codes: &'a mut [u8],
}

impl<V: Value> Kernel for Codes<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Dictionary { lefts, code_bits } = self.dictionary;
        for (place, value) in self.codes.iter_mut().zip(self.values) {
            let left = value.to_u64() >> self.right_bits;
            let mut found = u64::from(NO_CODE);
            for (code, &entry) in (0_u64..).zip(&lefts).take(1 << code_bits) {
                found = if entry == left { code } else { found };
            }
            *place = u8::from_u64(found);
        }
    }
}

/// A left part: at most [`MAX_LEFT_BITS`] bits.
fn narrow(left: u64) -> u16 {
    u16::try_from(left).unwrap_or(u16::MAX)
}
