#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

use codec_core::conformance::Random;
use codec_core::{Block, CheckedBlock, Choice, Registry, encode_block};

use super::*;

codec_core::conformance!(CODEC);

static ALONE: Registry = Registry::new(&[CODEC]);

/// A tile's values by SPEC.md, one bit at a time.
fn obvious(tile: &[u8], value_count: usize, width: usize) -> Vec<u64> {
    let lanes = |at: usize, bit_width: usize| -> (Vec<u64>, usize) {
        let words = (value_count.div_ceil(32) * bit_width).div_ceil(32);
        let bit = |lane: usize, bit: usize| {
            let byte = at + ((bit / 32) * 32 + lane) * 4 + bit % 32 / 8;
            u64::from(tile[byte] >> (bit % 8) & 1)
        };
        let value = |position: usize| {
            (0..bit_width).map(|k| bit(position % 32, position / 32 * bit_width + k) << k).sum()
        };
        ((0..value_count).map(value).collect(), at + words * 128)
    };
    let read =
        |at: usize, bytes: usize| -> u64 { (0..bytes).map(|k| u64::from(tile[at + k]) << (8 * k)).sum() };
    let (reference, exponent) = (read(0, 8), i32::from(tile[9] as i8));
    let (bit_width, right_bits, code_bits) = (tile[10] as usize, tile[11] as usize, tile[12] as usize);
    let exception_count = read(14, 2) as usize;
    let position = |at: usize, value_bytes: usize, k: usize| {
        read(at + exception_count * value_bytes + 2 * k, 2) as usize
    };
    if tile[8] == 0 {
        let (residuals, end) = lanes(16, bit_width);
        let float = |residual: &u64| {
            let integer = reference.wrapping_add(*residual);
            // Rust reads decimal texts with correct rounding: the division's result is the nearest float to the text.
            if width == 64 {
                format!("{}e{}", integer as i64, -exponent).parse::<f64>().unwrap().to_bits()
            } else {
                u64::from(format!("{}e{}", integer as i32, -exponent).parse::<f32>().unwrap().to_bits())
            }
        };
        let mut values: Vec<u64> = residuals.iter().map(float).collect();
        for k in 0..exception_count {
            values[position(end, width / 8, k)] = read(end + k * width / 8, width / 8);
        }
        return values;
    }
    let (codes, end) = lanes(32, code_bits);
    let (residuals, end) = lanes(end, bit_width);
    let mut lefts: Vec<u64> = codes.iter().map(|&code| read(16 + 2 * code as usize, 2)).collect();
    for k in 0..exception_count {
        lefts[position(end, 2, k)] = read(end + 2 * k, 2);
    }
    let join = |(left, right): (&u64, &u64)| {
        left << right_bits | reference.wrapping_add(*right) & ((1 << right_bits) - 1)
    };
    lefts.iter().zip(&residuals).map(join).collect()
}

/// Encodes tiles of several lengths; decodes them by the codec, by the obvious reading and in a block. Returns the bytes of the first tile of 1024.
fn round_trip<V: Value>(name: &str, values: &[V]) -> usize {
    assert!(values.len() > 1024);
    let mut first_tile_bytes = 0;
    for length in [1024, 512, 1000, 33, 1] {
        let values = &values[..length];
        let mut bytes = Vec::new();
        Alp::encode_tile(&[], values, &mut bytes);
        first_tile_bytes = first_tile_bytes.max(bytes.len());
        let tile = Tile { bytes: &bytes, shared: &[], value_count: length };
        let metadata = Alp::resolve_metadata::<V>(tile).expect(name);
        let mut decoded = vec![V::from_u64(0xA5A5_A5A5_A5A5_A5A5); length];
        Alp::decompress_tile(&metadata, &mut decoded);
        assert!(decoded == values, "{name}, {length} values: decoded differently");
        let wanted: Vec<u64> = values.iter().map(|value| value.to_u64()).collect();
        assert!(
            obvious(&bytes, length, V::WIDTH.into()) == wanted,
            "{name}, {length} values: obviously differs"
        );
    }
    let encoded =
        encode_block(V::erase(values), Kind::Values, Order::Float, 1024, &ALONE, Choice::Auto).expect(name);
    let checked = CheckedBlock::parse(&encoded.bytes, &ALONE).expect(name);
    assert!(
        checked.decode().expect(name).as_values() == V::erase(values),
        "{name}: block decoded differently"
    );
    first_tile_bytes
}

/// What doubles and floats are made of, by name.
fn doubles() -> Vec<(String, Vec<f64>)> {
    let count = 3000;
    let mut random = Random(3);
    let mut all: Vec<(String, Vec<f64>)> = Vec::new();
    for digits in 0..=10 {
        let text = |draw: u64| format!("{}e-{digits}", (draw % 4_000_000) as i64 - 1_000_000);
        let values = (0..count).map(|_| text(random.draw()).parse().unwrap()).collect();
        all.push((format!("decimals of {digits} digits"), values));
    }
    let mut add = |name: &str, value: &mut dyn FnMut(u64) -> f64| {
        all.push((name.into(), (0..count).map(|_| value(random.draw())).collect()));
    };
    add("money", &mut |draw| format!("{}.{:02}", draw % 100_000, draw >> 40 & 63).parse().unwrap());
    add("money computed", &mut |draw| (draw % 10_000_000) as f64 * 0.01);
    add("integers", &mut |draw| (draw % 1000) as f64 - 500.0);
    add("hundreds", &mut |draw| (draw % 1000) as f64 * 100.0);
    add("huge with zeros", &mut |draw| format!("{}e20", draw % 1000).parse().unwrap());
    add("random in the unit interval", &mut |draw| (draw >> 11) as f64 / 9_007_199_254_740_992.0);
    add("random bits", &mut f64::from_bits);
    add("random signs and exponents", &mut |draw| {
        f64::from_bits(draw & 0x8070_0000_0000_0000 | 0x3F00_0000_0000_0000)
    });
    add("NaN payloads", &mut |draw| f64::from_bits(draw | 0x7FF0_0000_0000_0000));
    add("zeros of both signs", &mut |draw| if draw % 2 == 0 { 0.0 } else { -0.0 });
    add("infinities and halves", &mut |draw| {
        [f64::INFINITY, f64::NEG_INFINITY, 0.5, -0.5][draw as usize % 4]
    });
    add("subnormals", &mut |draw| f64::from_bits(draw >> 13));
    add("decimals with rare outliers", &mut |draw| {
        if draw % 200 == 0 { f64::from_bits(draw >> 2) } else { (draw >> 32 & 1023) as f64 / 10.0 }
    });
    add("decimals with rare large ones", &mut |draw| {
        if draw % 200 == 0 { 123_456_789.5 } else { (draw >> 32 & 1023) as f64 / 10.0 }
    });
    add("mixed digits", &mut |draw| [1.5, 0.25, 3.125, 7.0][draw as usize % 4]);
    add("around 2^53", &mut |draw| 9_007_199_254_740_992.0 + (draw % 64) as f64 - 32.0);
    add("one irrational", &mut |_| std::f64::consts::PI);
    add("maxima", &mut |draw| if draw % 2 == 0 { f64::MAX } else { f64::MIN_POSITIVE });
    let mut position = 0.0;
    add("ascending irrational", &mut |_| {
        position += 1.0;
        1e6 + f64::sqrt(position)
    });
    all
}

#[test]
fn doubles_come_back_bit_for_bit() {
    for (name, values) in doubles() {
        let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        round_trip(&name, &bits);
    }
}

#[test]
fn floats_come_back_bit_for_bit() {
    for (name, values) in doubles() {
        // Texts, so that decimals are the nearest floats to decimals.
        let bits: Vec<u32> =
            values.iter().map(|value| value.to_string().parse::<f32>().unwrap().to_bits()).collect();
        round_trip(&name, &bits);
    }
    let mut random = Random(5);
    let payloads: Vec<u32> = (0..2000).map(|_| random.draw() as u32 | 0x7F80_0000).collect();
    round_trip("NaN payloads", &payloads);
    let subnormals: Vec<u32> = (0..2000).map(|_| random.draw() as u32 >> 9).collect();
    round_trip("subnormals", &subnormals);
}

fn tile_bytes(name: &str) -> usize {
    let (_, values) = doubles().into_iter().find(|(found, _)| found == name).unwrap();
    let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
    round_trip(name, &bits)
}

#[test]
fn decimals_take_the_bits_of_their_integers() {
    for digits in 0..=10 {
        // Integers below 4,000,000: 22 bits.
        assert!(tile_bytes(&format!("decimals of {digits} digits")) <= 16 + 128 * 22);
    }
    assert!(tile_bytes("hundreds") <= 16 + 128 * 10);
    assert!(tile_bytes("huge with zeros") <= 16 + 128 * 10);
    assert!(tile_bytes("integers") <= 16 + 128 * 10);
    assert!(tile_bytes("decimals with rare large ones") <= 16 + 128 * 10 + 10 * 20);
}

#[test]
fn random_floats_share_their_left_parts() {
    assert!(tile_bytes("random in the unit interval") < 128 * 57);
    assert!(tile_bytes("random bits") <= 128 * 64 + 32);
    assert!(tile_bytes("one irrational") == 32);
}

#[test]
fn the_automatic_choice_tries_it_on_floats_only() {
    let layout = Layout::values(64);
    assert!(CODEC.suits(layout, Order::Float));
    assert!(!CODEC.suits(layout, Order::Signed) && !CODEC.suits(layout, Order::Unsigned));
}

fn header(change: impl Fn(&mut Vec<u8>)) -> Result<(), TileError> {
    let values: Vec<u64> = (0..64).map(|position| f64::from(position).sqrt().to_bits()).collect();
    let mut bytes = Vec::new();
    Decimal::of::<f64>(&values, 0).append(&mut bytes);
    change(&mut bytes);
    Alp::check_tile::<u64>(Tile { bytes: &bytes, shared: &[], value_count: 64 })
}

#[test]
fn impossible_fields_are_refused() {
    assert_eq!(header(|_| {}), Ok(()));
    for (field, at, found) in [
        ("scheme", 8, 2),
        ("exponent", 9, 23),
        ("right_bits", 11, 1),
        ("code_bit_width", 12, 1),
        ("reserved", 13, 1),
        ("exception_count", 14, 65),
    ] {
        let refused = header(|bytes| bytes[at] = found as u8);
        assert_eq!(refused, Err(TileError::Field { field, found }));
    }
    // Exponent -23, as its byte.
    assert!(header(|bytes| bytes[9] = 0xE9).is_err());
}

#[test]
fn exception_positions_must_ascend_within_the_tile() {
    let last = |bytes: &mut Vec<u8>, position: u8| {
        let at = bytes.len() - 2;
        bytes[at] = position;
    };
    let refused = |found| Err(TileError::Field { field: "exception_positions", found });
    assert_eq!(header(|bytes| last(bytes, 64)), refused(64));
    // Square roots of 62 and 63 are exceptions: 62 twice does not ascend.
    assert_eq!(header(|bytes| last(bytes, 62)), refused(62));
}

#[test]
fn a_block_of_alp_names_it() {
    let values: Vec<u64> = (0..2000).map(|position| (f64::from(position) / 8.0).to_bits()).collect();
    let encoded =
        encode_block(Values::U64(&values), Kind::Values, Order::Float, 1024, &ALONE, Choice::Auto).unwrap();
    assert_eq!(Block::parse(&encoded.bytes, &ALONE).unwrap().codec_name(), "alp");
}
