//! Which codec a block gets.

use format_spec::{BlockHeader, FIRST_PRIVATE_CODEC, Layout, Order, TILE_ALIGNMENT};
use zerocopy::FromZeros;

use crate::{AnyCodec, Registry, Values};

/// How the codec of a block is chosen.
#[derive(Clone, Copy, Default)]
pub enum Choice {
    /// By size and cost of decoding: a codec that is slow to decode must save more bits a value than its [`Codec::decode_bits`](crate::Codec::decode_bits).
    #[default]
    Auto,
    /// The one that makes a sample of the block's tiles smallest.
    Size,
    /// As `Auto`, with the cost of decoding counted eightfold.
    Speed,
    /// This one, wherever it supports the values; else as `Auto`.
    Prefer(&'static dyn AnyCodec),
}

impl std::fmt::Debug for Choice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Size => formatter.write_str("size"),
            Self::Speed => formatter.write_str("speed"),
            Self::Prefer(codec) => formatter.write_str(codec.name()),
        }
    }
}

impl Choice {
    /// How often a codec's cost of decoding counts.
    const fn decode_weight(self) -> u64 {
        match self {
            Self::Size => 0,
            Self::Auto | Self::Prefer(_) => 1,
            Self::Speed => 8,
        }
    }
}

/// What was found when a codec was tried on a sample of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// The codec's name.
    pub codec: &'static str,
    /// Bytes that the block would take, header and tables included, as the sample says.
    pub estimated_bytes: u64,
    /// What decides, the least wins: these bytes and what the codec's decoding costs, as bytes that could be read in the same time.
    pub cost_bytes: u64,
}

/// Tiles that are encoded to judge a codec.
const SAMPLED_TILES: usize = 16;

/// The codec for a block of `values` in tiles of `tile_size` values, and what was tried: nothing where a preference decides. `None` where no codec encodes such values.
#[must_use]
pub fn choose(
    registry: &Registry,
    choice: Choice,
    layout: Layout,
    order: Order,
    values: Values<'_>,
    tile_size: usize,
) -> Option<(&'static dyn AnyCodec, Vec<Trial>)> {
    let chosen = chosen(registry, choice, layout, order, values, tile_size)?;
    Some((chosen.codec, chosen.trials))
}

/// A block's codec and what the block needs of it.
pub(crate) struct Chosen {
    pub codec: &'static dyn AnyCodec,
    /// Its shared bytes: finding a dictionary's entries costs as much as encoding, so they are kept.
    pub shared: Vec<u8>,
    pub trials: Vec<Trial>,
}

/// A codec that was tried.
struct Candidate {
    codec: &'static dyn AnyCodec,
    shared: Vec<u8>,
    /// The least wins: bytes, then the codec's id.
    cost: (u64, u16),
}

/// As [`choose`], with the shared bytes.
pub(crate) fn chosen(
    registry: &Registry,
    choice: Choice,
    layout: Layout,
    order: Order,
    values: Values<'_>,
    tile_size: usize,
) -> Option<Chosen> {
    if let Choice::Prefer(codec) = choice
        && codec.supports(layout)
    {
        return Some(Chosen { codec, shared: codec.encode_shared(values), trials: Vec::new() });
    }
    let tile_count = values.len().div_ceil(tile_size);
    let mut trials = Vec::new();
    let mut best: Option<Candidate> = None;
    // What suits no codec gets the best of those that can hold it.
    let any_suits = registry.supporting(layout).any(|codec| codec.suits(layout, order));
    let suiting = registry.supporting(layout).filter(|codec| !any_suits || codec.suits(layout, order));
    let mut candidates: Vec<&'static dyn AnyCodec> = suiting.collect();
    candidates.sort_by_key(|codec| (codec.decode_bits(layout), codec.id()));
    for codec in candidates {
        let decode_bits = u64::from(codec.decode_bits(layout)) * choice.decode_weight() * values.len() as u64;
        // However small the bytes, this cannot win.
        if best.as_ref().is_some_and(|best| decode_bits / 8 >= best.cost.0) {
            continue;
        }
        let shared = codec.encode_shared(values);
        let tiles_bytes = tiles_bytes(codec, &shared, layout, values, tile_size);
        let estimated_bytes = head_bytes(layout, order, shared.len(), tile_count) + tiles_bytes;
        let cost_bytes = estimated_bytes + decode_bits / 8;
        trials.push(Trial { codec: codec.name(), estimated_bytes, cost_bytes });
        let cost = (cost_bytes, codec.id());
        if best.as_ref().is_none_or(|best| cost < best.cost) {
            best = Some(Candidate { codec, shared, cost });
        }
    }
    best.map(|Candidate { codec, shared, .. }| Chosen { codec, shared, trials })
}

/// Bytes that all tiles would take, by a sample of them: evenly spread, the first and last tile among them.
fn tiles_bytes(
    codec: &dyn AnyCodec,
    shared: &[u8],
    layout: Layout,
    values: Values<'_>,
    tile_size: usize,
) -> u64 {
    let tile_count = values.len().div_ceil(tile_size);
    let sample_count = tile_count.min(SAMPLED_TILES);
    let mut encode = codec.encoder(shared, layout);
    let mut tile = Vec::new();
    let (mut sampled_bytes, mut sampled_values) = (0, 0);
    for sample in 0..sample_count {
        let tile_index = if sample_count == 1 { 0 } else { sample * (tile_count - 1) / (sample_count - 1) };
        let start = tile_index * tile_size;
        let sampled = values.slice(start..values.len().min(start + tile_size));
        tile.clear();
        encode(sampled, &mut tile);
        sampled_bytes += (tile.len() as u64).next_multiple_of(TILE_ALIGNMENT);
        sampled_values += sampled.len() as u64;
    }
    (sampled_bytes * values.len() as u64).div_ceil(sampled_values.max(1))
}

/// Length of the header and the tables of a block that is not constant.
fn head_bytes(layout: Layout, order: Order, shared_len: usize, tile_count: usize) -> u64 {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).into();
    BlockHeader {
        codec_id: FIRST_PRIVATE_CODEC.into(),
        value_width: layout.value_width,
        order: order as u8,
        tile_count: count(tile_count),
        shared_bytes: count(shared_len),
        ..BlockHeader::new_zeroed()
    }
    .head_bytes()
}
