//! The suite that every codec runs as its tests, by one line: `codec_core::conformance!(codec_toy::CODEC);`.
//!
//! The oracle is the input: what comes back is compared with what went in, over all widths, both tile sizes, the lengths around tile and block borders, distributions that stress
//! each scheme, and random ones. Damaged tiles must be refused or decode within bounds, twice to the same values.

// A suite of tests: a failed expectation is its outcome, and its indexes are small.
#![allow(clippy::expect_used, clippy::cast_possible_truncation)]

use std::ops::Range;

use format_spec::{Kind, Layout, Order};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::{
    AnyCodec, Block, BlockSource, BufferError, CheckedBlock, Choice, EncodeOptions, OwnedValues, Registry,
    Tile, TileError, Value, Values, ValuesMut, decode_ranges, encode_block, encode_values, take,
    values_per_block, with_values,
};

/// Writes the suite's tests for the codec `$codec`, a `&'static dyn AnyCodec`.
#[macro_export]
macro_rules! conformance {
    ($codec:expr) => {
        #[test]
        fn conformance_distributions() {
            $crate::conformance::distributions($codec);
        }

        #[test]
        fn conformance_buffers_of_several_blocks() {
            $crate::conformance::buffers($codec);
        }

        #[test]
        fn conformance_random_values() {
            $crate::conformance::random_values($codec);
        }

        #[test]
        fn conformance_damaged_tiles() {
            $crate::conformance::damaged_tiles($codec);
        }

        #[test]
        fn conformance_unsupported_layouts_are_refused() {
            $crate::conformance::unsupported_layouts($codec);
        }
    };
}

/// Lengths around the borders of lanes, tiles and several tiles.
pub const LENGTHS: [usize; 14] = [1, 2, 31, 32, 33, 511, 512, 513, 1023, 1024, 1025, 2048, 3000, 5000];

const LAYOUTS: [Layout; 5] =
    [Layout::values(8), Layout::values(16), Layout::values(32), Layout::values(64), Layout::BYTES];

/// A small deterministic generator (SplitMix64): the suite's data are the same everywhere.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}

/// Named data of `count` values: what each integer scheme finds easy, and what it finds hard.
pub fn named_distributions<V: Value>(count: usize) -> Vec<(String, Vec<V>)> {
    let mut random = Random(count as u64);
    let width = u64::from(V::WIDTH);
    let max = u64::MAX >> (64 - width);
    let sign = 1_u64 << (width - 1);
    let mut all: Vec<(String, Vec<V>)> = Vec::new();
    let mut add = |name: String, value: &mut dyn FnMut(u64) -> u64| {
        all.push((name, (0..count as u64).map(|position| V::from_u64(value(position))).collect()));
    };
    add("zeros".into(), &mut |_| 0);
    add("all ones".into(), &mut |_| max);
    add("ascending".into(), &mut |position| position);
    add("descending past zero".into(), &mut |position| 100_u64.wrapping_sub(position));
    add("unsigned extremes in turn".into(), &mut |position| if position % 2 == 0 { 0 } else { max });
    add("signed extremes in turn".into(), &mut |position| if position % 2 == 0 { sign } else { sign - 1 });
    add("around zero".into(), &mut |position| (position % 7).wrapping_sub(3));
    add("one outlier".into(), &mut |position| if position == count as u64 / 2 { max } else { 5 });
    add("last differs".into(), &mut |position| u64::from(position + 1 == count as u64));
    for run in [2, 3, 4, 32, 256, 700] {
        let salt = random.draw();
        add(format!("runs of {run}"), &mut |position| Random(salt ^ (position / run)).draw());
    }
    for bit_width in 0..=width {
        let base = random.draw();
        add(format!("{bit_width} random bits over a base"), &mut |_| {
            let bits = if bit_width == 0 { 0 } else { random.draw() >> (64 - bit_width) };
            base.wrapping_add(bits)
        });
    }
    let mut sum = 0_u64;
    add("sorted with gaps".into(), &mut |_| {
        sum = sum.wrapping_add(random.draw() % 9);
        sum
    });
    all
}

/// Named floats of `count` values, as their bits: decimals and what is none, alone and mixed. None for widths that no such float has.
pub fn named_floats<V: Value>(count: usize) -> Vec<(String, Vec<V>)> {
    if V::WIDTH < 32 {
        return Vec::new();
    }
    // Division by an exact power of ten gives the float nearest to the decimal.
    let quotient = |dividend: i64, divisor: f64| {
        let bits = if V::WIDTH == 64 {
            (dividend as f64 / divisor).to_bits()
        } else {
            u64::from((dividend as f32 / divisor as f32).to_bits())
        };
        V::from_u64(bits)
    };
    // Infinities and NaN have all exponent bits, and a NaN may have any others.
    let (sign, exponent) = if V::WIDTH == 64 {
        (1 << 63, f64::INFINITY.to_bits())
    } else {
        (1 << 31, u64::from(f32::INFINITY.to_bits()))
    };
    let odd = |draw: u64| {
        V::from_u64(match draw % 6 {
            0 => exponent,
            1 => sign | exponent,
            2 => sign,
            3 => draw >> 8 | exponent,
            4 => draw >> 8 & !exponent,
            _ => draw,
        })
    };
    let small = |draw: u64| (draw % 20_000).cast_signed() - 5000;
    let unit = |draw: u64| quotient((draw >> 11).cast_signed(), 9_007_199_254_740_992.0);
    let mut random = Random(count as u64);
    let mut all: Vec<(String, Vec<V>)> = Vec::new();
    let mut add = |name: &str, value: &mut dyn FnMut(u64) -> V| {
        all.push((name.into(), (0..count).map(|_| value(random.draw())).collect()));
    };
    for (digits, power) in [(2, 1e2), (5, 1e5), (10, 1e10), (22, 1e22)] {
        add(&format!("decimals of {digits} digits"), &mut |draw| quotient(small(draw), power));
    }
    add("thousands", &mut |draw| quotient(small(draw) * 1000, 1.0));
    add("decimals and odd floats", &mut |draw| {
        if draw.is_multiple_of(23) { odd(draw >> 9) } else { quotient(small(draw >> 9), 10.0) }
    });
    add("decimals and rare large ones", &mut |draw| {
        quotient(if draw.is_multiple_of(150) { 1_234_567 } else { small(draw >> 9) % 50 }, 10.0)
    });
    add("odd floats", &mut |draw| odd(draw));
    add("unit interval", &mut |draw| unit(draw));
    add("unit interval and odd floats", &mut |draw| {
        if draw.is_multiple_of(31) { odd(draw >> 9) } else { unit(draw) }
    });
    add("one to two", &mut |draw| quotient((draw >> 12 | 1 << 52).cast_signed(), 4_503_599_627_370_496.0));
    all
}

/// Every layout that the codec supports, every length, every named distribution, both tile sizes.
pub fn distributions(codec: &'static dyn AnyCodec) {
    assert!(codec.id() != format_spec::CONSTANT_BLOCK && !codec.name().is_empty());
    let supported: Vec<Layout> = LAYOUTS.into_iter().filter(|&layout| codec.supports(layout)).collect();
    assert!(!supported.is_empty(), "codec {} supports no layout", codec.name());
    for layout in supported {
        for length in LENGTHS {
            match layout.value_width {
                8 => distributions_of::<u8>(codec, layout.kind, length),
                16 => distributions_of::<u16>(codec, layout.kind, length),
                32 => distributions_of::<u32>(codec, layout.kind, length),
                _ => distributions_of::<u64>(codec, layout.kind, length),
            }
        }
    }
}

fn distributions_of<V: Value>(codec: &'static dyn AnyCodec, kind: Kind, length: usize) {
    // A bytes tile is many times longer than 1024 values.
    let length = if kind == Kind::Bytes { length * 8 } else { length };
    let floats = named_floats::<V>(length);
    for (name, values) in named_distributions::<V>(length).into_iter().chain(floats) {
        for tile_size in tile_sizes(kind) {
            round_trip(codec, kind, &values, tile_size, &name);
        }
    }
}

fn tile_sizes(kind: Kind) -> [u32; 2] {
    match kind {
        Kind::Values => [512, 1024],
        Kind::Bytes => [4096, 16384],
    }
}

/// Encodes, proves and decodes `values` in every way that a block offers.
fn round_trip<V: Value>(codec: &'static dyn AnyCodec, kind: Kind, values: &[V], tile_size: u32, name: &str) {
    let place = format!(
        "{} {kind:?} of {} bits, {} values, tiles of {tile_size}, {name}",
        codec.name(),
        V::WIDTH,
        values.len()
    );
    let registry = Registry::new(vec![codec].leak());
    let encode = || {
        let order = if kind == Kind::Bytes { Order::None } else { Order::Signed };
        encode_block(V::erase(values), kind, order, tile_size, &registry, Choice::Prefer(codec))
            .expect(&place)
    };
    let encoded = encode();
    assert_eq!(encoded.bytes, encode().bytes, "not deterministic: {place}");
    let checked = CheckedBlock::parse(&encoded.bytes, &registry).expect(&place);
    assert!(checked.decode().expect(&place).as_values() == V::erase(values), "decoded differently: {place}");

    let block = Block::parse(&encoded.bytes, &registry).expect(&place);
    let mut random = Random(values.len() as u64);
    for _ in 0..3 {
        let (start, end) =
            (random.draw() as usize % values.len(), random.draw() as usize % (values.len() + 1));
        let wanted = start.min(end)..start.max(end);
        let mut part = vec![V::from_u64(0xA5A5_A5A5_A5A5_A5A5); wanted.len()];
        block.decode_range(wanted.clone(), &mut part).expect(&place);
        assert!(part == values[wanted], "a range decoded differently: {place}");
        let indexes: Vec<usize> = (0..5).map(|_| random.draw() as usize % values.len()).collect();
        let mut taken = vec![V::default(); 5];
        block.take(&indexes, &mut taken).expect(&place);
        assert!(
            taken.iter().zip(&indexes).all(|(&value, &index)| value == values[index]),
            "taken differently: {place}"
        );
    }
    in_parts(&block, &encoded.bytes, &registry, values, &place);
    let shared = codec.encode_shared(V::erase(values));
    let mut encode = codec.encoder(&shared, block.layout());
    for values in values.chunks(tile_size as usize) {
        let (mut alone, mut in_turn) = (Vec::new(), Vec::new());
        codec.encode_tile(&shared, V::erase(values), &mut alone);
        encode(V::erase(values), &mut in_turn);
        assert_eq!(alone, in_turn, "a tile alone and in turn: {place}");
    }
}

/// A block whose head and tiles are read by themselves: it decodes what is here and refuses the rest, and nothing less than all of it is proven.
fn in_parts<V: Value>(block: &Block<'_>, bytes: &[u8], registry: &Registry, values: &[V], place: &str) {
    let head_bytes = block.view().header.head_bytes() as usize;
    let head = Block::parse_head(&bytes[..head_bytes], bytes.len() as u64, registry).expect(place);
    let wanted = values.len() / 3..values.len();
    let extent = head.tiles_extent(wanted.clone()).expect(place);
    let part = head.with_tiles(extent.start, &bytes[extent.start as usize..extent.end as usize]);
    let mut decoded = vec![V::default(); wanted.len()];
    part.decode_range(wanted.clone(), &mut decoded).expect(place);
    assert!(decoded == values[wanted], "a part decoded differently: {place}");
    if extent.start > head_bytes as u64 {
        assert!(part.decode_range(0..1, &mut [V::default()]).is_err(), "a tile that is not here: {place}");
    }
    assert!(part.check().is_err(), "a part was proven: {place}");
    assert!(block.with_tiles(0, bytes).check().is_err(), "other tiles were proven: {place}");
    assert!(head.tiles_extent(0..values.len() + head.tile_size()).is_err() == (extent.end > 0), "{place}");
    let cut = Block::parse_head(&bytes[..head_bytes - 1], bytes.len() as u64, registry);
    assert!(cut.is_err(), "a head that was cut short: {place}");
}

/// Buffers of no, one and several blocks, read whole, by range across blocks, and value by value.
pub fn buffers(codec: &'static dyn AnyCodec) {
    for layout in LAYOUTS.into_iter().filter(|&layout| codec.supports(layout)) {
        for value_count in [0, 1, 1023, 1024, 1025, 5000, 20_000] {
            match layout.value_width {
                8 => buffer_of::<u8>(codec, layout, value_count),
                16 => buffer_of::<u16>(codec, layout, value_count),
                32 => buffer_of::<u32>(codec, layout, value_count),
                _ => buffer_of::<u64>(codec, layout, value_count),
            }
        }
    }
}

/// The blocks of a buffer in memory.
struct MemoryBlocks {
    layout: Layout,
    value_count: u64,
    values_per_block: u32,
    blocks: Vec<Vec<u8>>,
}

impl BlockSource for MemoryBlocks {
    type Error = std::convert::Infallible;
    type Bytes<'a> = &'a [u8];

    fn layout(&self) -> Layout {
        self.layout
    }

    fn value_count(&self) -> u64 {
        self.value_count
    }

    fn values_per_block(&self) -> u32 {
        self.values_per_block
    }

    fn block_bytes(&self, block_index: u32) -> Result<u64, Self::Error> {
        Ok(self.blocks[block_index as usize].len() as u64)
    }

    fn read(&self, block_index: u32, bytes: Range<u64>) -> Result<&[u8], Self::Error> {
        Ok(&self.blocks[block_index as usize][bytes.start as usize..bytes.end as usize])
    }
}

fn buffer_of<V: Value>(codec: &'static dyn AnyCodec, layout: Layout, value_count: usize) {
    let registry = Registry::new(vec![codec].leak());
    let choice = Choice::Prefer(codec);
    let options = EncodeOptions { block_bytes: 8192, tile_size: 512, bytes_tile_size: 4096, choice };
    let order = if layout.kind == Kind::Bytes { Order::None } else { Order::Unsigned };
    for (name, values) in named_distributions::<V>(value_count).into_iter().step_by(5) {
        let place = format!("{} {layout:?}, {value_count} values, {name}", codec.name());
        let encoded =
            encode_values(V::erase(&values), layout.kind, order, &registry, &options).expect(&place);
        let source = MemoryBlocks {
            layout,
            value_count: value_count as u64,
            values_per_block: values_per_block(&options, layout),
            blocks: encoded.into_iter().map(|block| block.bytes).collect(),
        };
        assert_eq!(source.blocks.len(), value_count.div_ceil(source.values_per_block as usize), "{place}");
        let mut random = Random(value_count as u64);
        for round in 0..4 {
            let bound = value_count as u64 + 1;
            let (one, other) = (random.draw() % bound, random.draw() % bound);
            let wanted = if round == 0 { 0..value_count as u64 } else { one.min(other)..one.max(other) };
            let middle = wanted.start.midpoint(wanted.end);
            // The second half first, and some values twice.
            let ranges = [middle..wanted.end, wanted.start..wanted.end];
            let expected: Vec<V> = ranges
                .iter()
                .flat_map(|range| &values[range.start as usize..range.end as usize])
                .copied()
                .collect();
            let mut decoded = vec![V::from_u64(u64::MAX); expected.len()];
            decode_ranges(&source, &registry, &ranges, &mut decoded).expect(&place);
            assert!(decoded == expected, "ranges decoded differently: {place}");
        }
        let count = if value_count == 0 { 0 } else { 40 };
        let indexes: Vec<u64> = (0..count).map(|_| random.draw() % value_count as u64).collect();
        let mut taken = vec![V::default(); count];
        take(&source, &registry, &indexes, &mut taken).expect(&place);
        assert!(
            taken.iter().zip(&indexes).all(|(&value, &index)| value == values[index as usize]),
            "taken differently: {place}"
        );
        let beyond = take(&source, &registry, &[value_count as u64], &mut [V::default()]);
        assert!(matches!(beyond, Err(BufferError::OutOfRange { .. })), "{place}");
    }
}

/// Random values of random widths over random references, with proptest's shrinking.
pub fn random_values(codec: &'static dyn AnyCodec) {
    let strategy = (any::<u64>(), 0_u32..=64, 1_u64..40, prop::collection::vec(any::<u64>(), 1..1500));
    let mut runner = TestRunner::new_with_rng(
        Config { cases: 64, failure_persistence: None, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let outcome = runner.run(&strategy, |(base, bit_width, run, raw)| {
        let mask = u64::MAX.checked_shr(64 - bit_width).unwrap_or(0);
        let raw: Vec<u64> = (0..raw.len()).map(|index| raw[index / run as usize * run as usize]).collect();
        let values: Vec<u64> = raw.iter().map(|bits| base.wrapping_add(bits & mask)).collect();
        for layout in LAYOUTS.into_iter().filter(|&layout| codec.supports(layout)) {
            let tile_size = tile_sizes(layout.kind)[1];
            let name = "random";
            match layout.value_width {
                8 => round_trip::<u8>(codec, layout.kind, &narrow(&values), tile_size, name),
                16 => round_trip::<u16>(codec, layout.kind, &narrow(&values), tile_size, name),
                32 => round_trip::<u32>(codec, layout.kind, &narrow(&values), tile_size, name),
                _ => round_trip::<u64>(codec, layout.kind, &values, tile_size, name),
            }
        }
        Ok(())
    });
    outcome.expect("random values");
}

fn narrow<V: Value>(values: &[u64]) -> Vec<V> {
    values.iter().map(|&value| V::from_u64(value)).collect()
}

/// Truncated, flipped and random tiles: `check_tile` refuses them, or both hooks decode them twice to the same values, whatever the buffer held before.
pub fn damaged_tiles(codec: &'static dyn AnyCodec) {
    for layout in LAYOUTS.into_iter().filter(|&layout| codec.supports(layout)) {
        match layout.value_width {
            8 => damaged_tiles_of::<u8>(codec, layout),
            16 => damaged_tiles_of::<u16>(codec, layout),
            32 => damaged_tiles_of::<u32>(codec, layout),
            _ => damaged_tiles_of::<u64>(codec, layout),
        }
    }
}

fn damaged_tiles_of<V: Value>(codec: &'static dyn AnyCodec, layout: Layout) {
    let mut random = Random(7);
    for value_count in [1, 33, 1000, 1024] {
        let floats = named_floats::<V>(value_count);
        for (_, values) in named_distributions::<V>(value_count).into_iter().chain(floats) {
            let shared = codec.encode_shared(V::erase(&values));
            let mut bytes = Vec::new();
            codec.encode_tile(&shared, V::erase(&values), &mut bytes);
            let whole = check(codec, layout, Tile { bytes: &bytes, shared: &shared, value_count });
            assert!(whole.is_ok(), "codec {} refuses its own tile", codec.name());
            for length in (0..bytes.len()).step_by(bytes.len() / 8 + 1) {
                let _ = check(codec, layout, Tile { bytes: &bytes[..length], shared: &shared, value_count });
            }
            for _ in 0..12 {
                let mut damaged = bytes.clone();
                // Half of the damage goes to the metadata, where it matters.
                let reach = if random.draw().is_multiple_of(2) { bytes.len() } else { bytes.len().min(24) };
                if reach > 0 {
                    damaged[random.draw() as usize % reach] = random.draw() as u8;
                }
                let _ = check(codec, layout, Tile { bytes: &damaged, shared: &shared, value_count });
            }
            let noise: Vec<u8> = (0..bytes.len()).map(|_| random.draw() as u8).collect();
            let _ = check(codec, layout, Tile { bytes: &noise, shared: &shared, value_count });
        }
    }
}

/// What `check_tile` says; where it accepts, decodes twice over different garbage and compares.
pub fn check(codec: &'static dyn AnyCodec, layout: Layout, tile: Tile<'_>) -> Result<(), TileError> {
    codec.check_tile(tile, layout)?;
    let decode = |garbage: u64| {
        let mut values =
            OwnedValues::zeros(layout.value_width, tile.value_count).expect("a width of the format");
        with_values!(OwnedValues, &mut values, values => fill(values, garbage));
        codec
            .decompress_tile(tile, values.as_values_mut())
            .expect("check_tile accepted what the hooks refuse");
        values
    };
    assert!(decode(0) == decode(u64::MAX), "codec {} left values unwritten", codec.name());
    Ok(())
}

fn fill<V: Value>(values: &mut [V], garbage: u64) {
    values.fill(V::from_u64(garbage));
}

/// Layouts that the codec does not support are errors in every entry.
pub fn unsupported_layouts(codec: &'static dyn AnyCodec) {
    let values = Values::U8(&[1, 2, 3]);
    for layout in LAYOUTS.into_iter().filter(|&layout| !codec.supports(layout)) {
        let tile = Tile { bytes: &[0; 64], shared: &[], value_count: 3 };
        assert!(matches!(codec.check_tile(tile, layout), Err(TileError::Layout { .. })));
    }
    let tile = Tile { bytes: &[0; 64], shared: &[], value_count: values.len() };
    let mut room = [0_u8; 2];
    assert!(matches!(codec.decompress_tile(tile, ValuesMut::U8(&mut room)), Err(TileError::Room { .. })));
}
