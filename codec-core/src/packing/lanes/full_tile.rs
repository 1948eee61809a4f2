//! Full tiles of values of at most 32 bits, one kernel for each bit width.
//!
//! A kernel's loop goes over the lanes, its body over the 32 rows of one lane: with the width a constant, so are all word indexes and shifts, and the compiler turns neighbouring lanes into
//! vectors. That is a fifth to a quarter faster than the loops with run-time widths in lanes.rs, and 2.5 times for values of 8 and 16 bits (`bench-codecs flbp`, AMD EPYC with AVX-512, 2026-11-30).

use super::{LANES, Row, WORD_BITS};
use crate::packing::vectors::{self, Kernel};
use crate::{Value, ValuesMut};

/// Rows of a full tile.
const ROWS: usize = 32;

/// Copies `$body` for each row, so that with a constant width all its words and shifts are constants.
macro_rules! each_row {
    ($row:ident => $body:block) => {
        each_row!(@ $row $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    (@ $row:ident $body:block $($number:literal)*) => {
        $({
            let $row: usize = $number;
            $body
        })*
    };
}

/// The width as a constant.
struct Unpack<'a, 'v, V, const BIT_WIDTH: usize> {
    words: &'a [Row; BIT_WIDTH],
    reference: V,
    values: &'v mut [[V; LANES]; ROWS],
}

impl<V: Value, const BIT_WIDTH: usize> Kernel for Unpack<'_, '_, V, BIT_WIDTH> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        const WORD: usize = WORD_BITS as usize;
        let Self { words, reference, values } = self;
        let mask = u32::MAX >> (WORD - BIT_WIDTH);
        for lane in 0..LANES {
            each_row!(row => {
                let (word, shift) = (row * BIT_WIDTH / WORD, row * BIT_WIDTH % WORD);
                let mut bits = words[word][lane].get() >> shift;
                if shift + BIT_WIDTH > WORD {
                    bits |= words[word + 1][lane].get() << (WORD - shift);
                }
                values[row][lane] = V::from_u32(bits & mask).wrapping_add(reference);
            });
        }
    }
}

/// A function of one value type with a kernel for each of its widths. Returns whether the tile is full and of such a width: else nothing is written.
macro_rules! unpack {
    ($name:ident, $type:ty, $($bit_width:literal)*) => {
        #[inline(never)]
        fn $name(words: &[Row], bit_width: u32, reference: $type, values: &mut [$type]) -> bool {
            let (rows, rest) = values.as_chunks_mut::<LANES>();
            let Ok(values) = <&mut [[$type; LANES]; ROWS]>::try_from(rows) else { return false };
            if !rest.is_empty() {
                return false;
            }
            match bit_width {
                $($bit_width => {
                    let Some(words) = words.first_chunk::<$bit_width>() else { return false };
                    vectors::run(Unpack { words, reference, values });
                    true
                })*
                _ => false,
            }
        }
    };
}

unpack!(unpack_u8, u8, 1 2 3 4 5 6 7 8);
unpack!(unpack_u16, u16, 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
unpack!(unpack_u32, u32, 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);

/// Unpacks a full tile of values of at most 32 bits and returns true, or returns false.
pub fn unpack(words: &[Row], bit_width: u32, reference: u64, values: &mut ValuesMut<'_>) -> bool {
    match values {
        ValuesMut::U8(values) => unpack_u8(words, bit_width, Value::from_u64(reference), values),
        ValuesMut::U16(values) => unpack_u16(words, bit_width, Value::from_u64(reference), values),
        ValuesMut::U32(values) => unpack_u32(words, bit_width, Value::from_u64(reference), values),
        // 64 kernels of three words a value gain too little for their size.
        ValuesMut::U64(_) => false,
    }
}
