//! Lane-interleaved bit packing: value i of lane l is at tile position i·32 + l, for every value width.
//!
//! A row of 32 neighbouring positions has one word index and one shift for all its lanes, so the inner loops run over 32 lanes with the same two
//! constants: a vector instruction on the host, one coalesced line on a device. The layout is FastLanes' interleaving (Afroozeh and Boncz, VLDB 2023) with 32 lanes for all
//! types.

mod full_tile;

use zerocopy::FromBytes;
use zerocopy::little_endian::U32;

use super::vectors::{self, Kernel};
use crate::{TileError, Value, Values, ValuesMut, with_values};

/// Lanes of a tile.
pub const LANES: usize = 32;
/// Bits a word.
const WORD_BITS: u32 = 32;

/// Row k of the words: word k of each lane.
type Row = [U32; LANES];

/// Rows of 32 positions that `value_count` values take.
#[must_use]
pub const fn rows(value_count: usize) -> usize {
    value_count.div_ceil(LANES)
}

/// Bytes that `value_count` values of `bit_width` bits take.
#[must_use]
pub const fn packed_bytes(value_count: usize, bit_width: u32) -> usize {
    (rows(value_count) * bit_width as usize).div_ceil(WORD_BITS as usize) * size_of::<Row>()
}

/// Appends `value - reference` of all values to `bytes`; every difference must be less than 2^bit_width.
pub fn pack<V: Value>(values: &[V], reference: V, bit_width: u32, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.resize(start + packed_bytes(values.len(), bit_width), 0);
    let Ok(words) = <[Row]>::mut_from_bytes(bytes.get_mut(start..).unwrap_or_default()) else { return };
    if bit_width > 0 {
        pack_words(V::erase(values), reference.to_u64(), bit_width, words);
    }
}

/// Compiled here once for all codecs.
fn pack_words(values: Values<'_>, reference: u64, bit_width: u32, words: &mut [Row]) {
    with_values!(Values, values, values => {
        vectors::run(Pack { values, reference: Value::from_u64(reference), bit_width, words });
    });
}

struct Pack<'a, V> {
    values: &'a [V],
    reference: V,
    bit_width: u32,
    words: &'a mut [Row],
}

impl<V: Value> Kernel for Pack<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { values, reference, bit_width, words } = self;
        for (row, values) in values.chunks(LANES).enumerate() {
            let (word, shift) = position(row, bit_width);
            let spanned = spanned_words(shift, bit_width);
            let Some(words) = words.get_mut(word..word + spanned) else { return };
            for (part, words) in (0_u32..).zip(words) {
                if V::WIDTH <= 32 {
                    if part == 0 {
                        put(words, values, |value| value.wrapping_sub(reference).to_u32() << shift);
                    } else {
                        let taken = WORD_BITS - shift;
                        put(words, values, |value| value.wrapping_sub(reference).to_u32() >> taken);
                    }
                } else if part == 0 {
                    put(words, values, |value| (value.wrapping_sub(reference).to_u64() << shift) as u32);
                } else {
                    let taken = part * WORD_BITS - shift;
                    put(words, values, |value| (value.wrapping_sub(reference).to_u64() >> taken) as u32);
                }
            }
        }
    }
}

/// Adds the bits of a row's values to one word of each lane.
#[inline(always)]
fn put<V: Value>(words: &mut Row, values: &[V], bits: impl Fn(V) -> u32) {
    for (word, &value) in words.iter_mut().zip(values) {
        *word |= U32::new(bits(value));
    }
}

/// Values packed in lanes, whose bytes are proven to suffice.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a> {
    words: &'a [Row],
    bit_width: u32,
    value_count: usize,
}

impl<'a> Packed<'a> {
    /// Proves that `bytes` begin with `value_count` values of `bit_width` bits, for values of type `V`.
    ///
    /// # Errors
    /// A width wider than `V`, or too few bytes.
    pub fn parse<V: Value>(bytes: &'a [u8], value_count: usize, bit_width: u32) -> Result<Self, TileError> {
        let value_width = V::WIDTH.into();
        if bit_width > value_width {
            return Err(TileError::BitWidth { bit_width, value_width });
        }
        let needed = packed_bytes(value_count, bit_width);
        let truncated = TileError::Truncated { needed_bytes: needed as u64, found_bytes: bytes.len() as u64 };
        let packed = bytes.get(..needed).ok_or(truncated.clone())?;
        let words = <[Row]>::ref_from_bytes(packed).map_err(|_| truncated)?;
        Ok(Self { words, bit_width, value_count })
    }

    /// Bits a value.
    #[must_use]
    pub fn bit_width(&self) -> u32 {
        self.bit_width
    }

    /// Writes `reference + value` for all values; `values` has as many as were packed.
    pub fn unpack<V: Value>(&self, reference: V, values: &mut [V]) {
        debug_assert_eq!(values.len(), self.value_count);
        if self.bit_width == 0 {
            values.fill(reference);
        } else {
            self.unpack_words(reference.to_u64(), V::erase_mut(values));
        }
    }

    /// Compiled here once for all codecs.
    fn unpack_words(&self, reference: u64, mut values: ValuesMut<'_>) {
        if !full_tile::unpack(self.words, self.bit_width, reference, &mut values) {
            with_values!(ValuesMut, values, values => {
                vectors::run(Unpack { packed: *self, reference: Value::from_u64(reference), values });
            });
        }
    }

    /// Values of at most 32 bits: a value lies in one word or in two.
    #[inline(always)]
    fn unpack_narrow<V: Value>(&self, reference: V, values: &mut [V]) {
        let mask = u32::MAX >> (WORD_BITS - self.bit_width);
        for (row, values) in values.chunks_mut(LANES).enumerate() {
            let (word, shift) = position(row, self.bit_width);
            let Some(low) = self.words.get(word) else { return };
            if shift + self.bit_width <= WORD_BITS {
                each(values, low, |low| V::from_u32((low >> shift) & mask).wrapping_add(reference));
            } else {
                let Some(high) = self.words.get(word + 1) else { return };
                each_of_two(values, low, high, |low, high| {
                    V::from_u32(((low >> shift) | (high << (WORD_BITS - shift))) & mask)
                        .wrapping_add(reference)
                });
            }
        }
    }

    /// Values of 64 bits: a value lies in one to three words.
    #[inline(always)]
    fn unpack_wide<V: Value>(&self, reference: V, values: &mut [V]) {
        let mask = u64::MAX >> (u64::BITS - self.bit_width);
        for (row, values) in values.chunks_mut(LANES).enumerate() {
            let (word, shift) = position(row, self.bit_width);
            let Some(low) = self.words.get(word) else { return };
            match spanned_words(shift, self.bit_width) {
                1 => each(values, low, |low| {
                    V::from_u64((u64::from(low) >> shift) & mask).wrapping_add(reference)
                }),
                2 => {
                    let Some(high) = self.words.get(word + 1) else { return };
                    each_of_two(values, low, high, |low, high| {
                        let both = u64::from(low) | u64::from(high) << WORD_BITS;
                        V::from_u64((both >> shift) & mask).wrapping_add(reference)
                    });
                }
                // Three words only where shift > 0, so 64 - shift is a legal shift.
                _ => {
                    let (Some(high), Some(top)) = (self.words.get(word + 1), self.words.get(word + 2)) else {
                        return;
                    };
                    for (((value, low), high), top) in values.iter_mut().zip(low).zip(high).zip(top) {
                        let both = u64::from(low.get()) | u64::from(high.get()) << WORD_BITS;
                        let bits = (both >> shift) | (u64::from(top.get()) << (u64::BITS - shift));
                        *value = V::from_u64(bits & mask).wrapping_add(reference);
                    }
                }
            }
        }
    }
}

/// Any tile of any width.
struct Unpack<'a, 'v, V> {
    packed: Packed<'a>,
    reference: V,
    values: &'v mut [V],
}

impl<V: Value> Kernel for Unpack<'_, '_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        if V::WIDTH <= 32 {
            self.packed.unpack_narrow(self.reference, self.values);
        } else {
            self.packed.unpack_wide(self.reference, self.values);
        }
    }
}

// These loops have no constant length on purpose: the compiler would unroll them before it looks for vectors.

#[inline(always)]
fn each<V: Value>(values: &mut [V], low: &Row, decode: impl Fn(u32) -> V) {
    for (value, low) in values.iter_mut().zip(low) {
        *value = decode(low.get());
    }
}

#[inline(always)]
fn each_of_two<V: Value>(values: &mut [V], low: &Row, high: &Row, decode: impl Fn(u32, u32) -> V) {
    for ((value, low), high) in values.iter_mut().zip(low).zip(high) {
        *value = decode(low.get(), high.get());
    }
}

/// Word and shift of a row's first bit, the same for all lanes.
fn position(row: usize, bit_width: u32) -> (usize, u32) {
    let bit = row * bit_width as usize;
    (bit / WORD_BITS as usize, (bit % WORD_BITS as usize) as u32)
}

/// Words that a value of `bit_width` bits at `shift` touches: 1 to 3.
fn spanned_words(shift: u32, bit_width: u32) -> usize {
    (shift + bit_width).div_ceil(WORD_BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packing::vectors::tests::at_every_level;

    /// The specification word for word: one bit at a time.
    fn obvious_bit(bytes: &[u8], lane: usize, bit: usize) -> bool {
        let word = (bit / 32) * LANES + lane;
        bytes[word * 4 + (bit % 32) / 8] >> (bit % 8) & 1 != 0
    }

    fn obvious<V: Value>(bytes: &[u8], value_count: usize, bit_width: u32) -> Vec<V> {
        let value = |position: usize| {
            let first = (position / LANES) * bit_width as usize;
            let bits = (0..bit_width as usize)
                .map(|k| u64::from(obvious_bit(bytes, position % LANES, first + k)) << k);
            V::from_u64(bits.sum())
        };
        (0..value_count).map(value).collect()
    }

    fn check<V: Value>() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for bit_width in 0..=u32::from(V::WIDTH) {
            for value_count in [1, 31, 32, 33, 500, 511, 512, 1000, 1024] {
                let values: Vec<V> = (0..value_count)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        V::from_u64(if bit_width == 0 { 0 } else { state >> (64 - bit_width) })
                    })
                    .collect();
                let mut bytes = Vec::new();
                pack(&values, V::default(), bit_width, &mut bytes);
                assert_eq!(bytes.len(), packed_bytes(value_count, bit_width));
                assert_eq!(obvious::<V>(&bytes, value_count, bit_width), values, "{bit_width} bits");
                let packed = Packed::parse::<V>(&bytes, value_count, bit_width).unwrap();
                let mut decoded = vec![V::from_u64(0xA5A5_A5A5_A5A5_A5A5); value_count];
                packed.unpack(V::default(), &mut decoded);
                assert_eq!(decoded, values, "{bit_width} bits");

                let reference = V::from_u64(state);
                let shifted: Vec<V> = values.iter().map(|value| value.wrapping_add(reference)).collect();
                let mut repacked = Vec::new();
                pack(&shifted, reference, bit_width, &mut repacked);
                assert_eq!(repacked, bytes, "{bit_width} bits over a reference");
                packed.unpack(reference, &mut decoded);
                assert_eq!(decoded, shifted, "{bit_width} bits over a reference");
            }
        }
    }

    #[test]
    fn every_width_agrees_with_the_bitwise_reading_whatever_the_vectors() {
        at_every_level(|| {
            check::<u8>();
            check::<u16>();
            check::<u32>();
            check::<u64>();
        });
    }

    #[test]
    fn one_bit_makes_each_lanes_word_its_row_mask() {
        let values: Vec<u8> = (0..1024).map(|position| u8::from(position / 32 == position % 32)).collect();
        let mut bytes = Vec::new();
        pack(&values, 0, 1, &mut bytes);
        for lane in 0..32 {
            let word = u32::from_le_bytes(bytes[lane * 4..lane * 4 + 4].try_into().unwrap());
            assert_eq!(word, 1 << lane);
        }
    }

    #[test]
    fn too_few_bytes_and_too_wide_widths_are_refused() {
        assert!(matches!(Packed::parse::<u32>(&[0; 127], 32, 32), Err(TileError::Truncated { .. })));
        assert!(matches!(Packed::parse::<u8>(&[0; 4096], 32, 9), Err(TileError::BitWidth { .. })));
    }
}
