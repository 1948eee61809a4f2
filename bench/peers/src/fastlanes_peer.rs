//! The crate `fastlanes`: unpack and add a reference, 1024 values at a time, one width and one reference for all.

use std::hint::black_box;
use std::time::Duration;

use bench::Row;
use bench::clock::time;
use bench::columns::{BLOCK_LEN, uniform};
use codec_core::OwnedValues;
use fastlanes::FoR;

const WHO: &str = "fastlanes 0.7.2";
const REFERENCE: u32 = 1_000_000;

fn values(bit_width: usize) -> (String, Vec<u32>, u32) {
    let column = uniform::<u32>(u32::try_from(bit_width).unwrap_or(32));
    let OwnedValues::U32(values) = column.values else { return (column.name, Vec::new(), 0) };
    // A column of full width has no reference to subtract.
    (column.name, values, if bit_width == 32 { 0 } else { REFERENCE })
}

fn packed(bit_width: usize, values: &[u32], reference: u32, packed: &mut [u32]) {
    macro_rules! widths {
        ($($width:literal)*) => {
            match bit_width {
                $($width => {
                    let tiles = values.as_chunks::<1024>().0.iter().zip(packed.as_chunks_mut::<{ 32 * $width }>().0);
                    for (values, packed) in tiles {
                        u32::for_pack::<$width, { 32 * $width }>(values, reference, packed);
                    }
                })*
                _ => {}
            }
        };
    }
    widths!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
}

fn unpacked(bit_width: usize, packed: &[u32], reference: u32, values: &mut [u32]) {
    for (packed, values) in packed.chunks_exact(32 * bit_width).zip(values.chunks_exact_mut(1024)) {
        // SAFETY: the chunks have just the lengths that it demands.
        unsafe { u32::unchecked_unfor_pack(bit_width, packed, reference, values) }
    }
}

/// Decodes a block's worth of tiles into room for a block.
pub fn decode(bit_width: usize, budget: Duration) -> Row {
    let (name, values, reference) = values(bit_width);
    let mut bytes = vec![0; BLOCK_LEN / 32 * bit_width];
    packed(bit_width, &values, reference, &mut bytes);
    let mut room = vec![0; BLOCK_LEN];
    unpacked(bit_width, &bytes, reference, &mut room);
    assert!(room == values, "fastlanes decodes {name} to other values");
    let timing = time(budget, || {
        unpacked(bit_width, &bytes, reference, &mut room);
        black_box(&mut room);
    });
    Row::speed(WHO, "for", &name, "decode tiles", timing, BLOCK_LEN * 4)
}

/// Packs a block's worth of tiles, width and reference given.
pub fn encode(bit_width: usize, budget: Duration) -> Row {
    let (name, values, reference) = values(bit_width);
    let mut bytes = vec![0; BLOCK_LEN / 32 * bit_width];
    let timing = time(budget, || {
        packed(bit_width, &values, reference, &mut bytes);
        black_box(&mut bytes);
    });
    Row::speed(WHO, "for", &name, "pack only", timing, BLOCK_LEN * 4)
}
