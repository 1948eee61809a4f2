//! One column, one codec, one core: the two hooks and the encoder alone, and blocks with their checksums.

use std::hint::black_box;
use std::time::Duration;

use ::codecs::REGISTRY;
use codec_core::{
    AnyCodec, Block, Choice, Kind, Order, OwnedValues, Tile, Values, ValuesMut, encode_block, with_values,
};

use crate::clock::time;
use crate::columns::Column;
use crate::report::Row;

/// Values a tile.
const TILE_LEN: usize = 1024;

/// A column as one block of one codec.
#[derive(Debug)]
pub struct EncodedColumn {
    /// The column.
    pub column: Column,
    codec: &'static str,
    block: Vec<u8>,
}

impl EncodedColumn {
    /// Encodes `column` by the codec named; `None` where there is none or it does not support the values.
    #[must_use]
    pub fn new(column: Column, codec: &'static str) -> Option<Self> {
        let values = column.values.as_values();
        let choice = Choice::Prefer(REGISTRY.by_name(codec)?);
        let encoded = encode_block(values, Kind::Values, Order::Unsigned, 1024, &REGISTRY, choice).ok()?;
        (encoded.codec == codec).then_some(Self { column, codec, block: encoded.bytes })
    }

    /// Whether codec or data contain `filter`.
    #[must_use]
    pub fn matches(&self, filter: &str) -> bool {
        self.codec.contains(filter) || self.column.name.contains(filter)
    }

    /// Codec and data.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}: {}", self.codec, self.column.name)
    }

    /// Bytes of the values before encoding.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        let values = self.column.values.as_values();
        values.len() * usize::from(values.value_width() / 8)
    }

    /// Bytes of the block.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.block.len()
    }

    /// Room for the decoded values.
    #[must_use]
    pub fn room(&self) -> OwnedValues {
        let values = self.column.values.as_values();
        OwnedValues::zeros(values.value_width(), values.len()).unwrap_or(OwnedValues::U8(Vec::new()))
    }

    fn codec(&self) -> Option<&'static dyn AnyCodec> {
        REGISTRY.by_name(self.codec)
    }

    /// Both hooks on every tile, without checksums.
    pub fn decode_tiles(&self, room: &mut OwnedValues) {
        let (Ok(block), Some(codec)) = (Block::parse(&self.block, &REGISTRY), self.codec()) else { return };
        let view = block.view();
        with_values!(OwnedValues, room, room => {
            for (tile_index, values) in (0..).zip(room.chunks_mut(TILE_LEN)) {
                let bytes = view.tile(tile_index).unwrap_or_default();
                let tile = Tile { bytes, shared: view.shared(), value_count: values.len() };
                let decoded = codec.decompress_tile(tile, erase(values));
                debug_assert!(decoded.is_ok(), "{decoded:?}");
            }
        });
        black_box(room);
    }

    /// The block as a reader decodes it: header, checksums, hooks.
    pub fn decode_block(&self, room: &mut OwnedValues) {
        let decoded = Block::parse(&self.block, &REGISTRY).and_then(
            |block| with_values!(OwnedValues, room, room => block.decode_range(0..room.len(), room)),
        );
        debug_assert!(decoded.is_ok(), "{decoded:?}");
        black_box(room);
    }

    /// The encoder on every tile.
    pub fn encode_tiles(&self, tile: &mut Vec<u8>) {
        let Some(codec) = self.codec() else { return };
        let values = self.column.values.as_values();
        for start in (0..values.len()).step_by(TILE_LEN) {
            tile.clear();
            codec.encode_tile(&[], values.slice(start..start + TILE_LEN), tile);
            black_box(&tile);
        }
    }

    /// The block as a writer encodes it: statistics, tiles, checksums.
    pub fn encode_block(&self) {
        let Some(codec) = self.codec() else { return };
        let values: Values<'_> = self.column.values.as_values();
        let choice = Choice::Prefer(codec);
        let encoded = encode_block(values, Kind::Values, Order::Unsigned, 1024, &REGISTRY, choice);
        debug_assert!(encoded.is_ok(), "{encoded:?}");
        let _ = black_box(encoded);
    }

    /// Rows of the four measurements.
    pub fn measure(&self, budget: Duration) -> Vec<Row> {
        let (mut room, mut tile) = (self.room(), Vec::new());
        let row = |what: &str, timing| {
            let ratio = self.value_bytes() as f64 / self.block_bytes() as f64;
            Row::speed("cb2t", self.codec, &self.column.name, what, timing, self.value_bytes())
                .with_ratio(ratio)
        };
        vec![
            row("decode tiles", time(budget, || self.decode_tiles(&mut room))),
            row("decode block", time(budget, || self.decode_block(&mut room))),
            row("encode tiles", time(budget, || self.encode_tiles(&mut tile))),
            row("encode block", time(budget, || self.encode_block())),
        ]
    }
}

fn erase<V: codec_core::Value>(values: &mut [V]) -> ValuesMut<'_> {
    V::erase_mut(values)
}

/// Every codec with the columns that show it.
#[must_use]
pub fn cases() -> Vec<EncodedColumn> {
    use crate::columns::{ascending, fractions, prices, runs, uniform};
    let mut cases = vec![(uniform::<u32>(32), "plain"), (uniform::<u64>(64), "plain")];
    cases.extend((1..=32).map(|bit_width| (uniform::<u32>(bit_width), "flbp")));
    cases.extend([1, 4, 8].map(|bit_width| (uniform::<u8>(bit_width), "flbp")));
    cases.extend([1, 7, 12, 16].map(|bit_width| (uniform::<u16>(bit_width), "flbp")));
    cases.extend([1, 7, 16, 31, 33, 48, 63, 64].map(|bit_width| (uniform::<u64>(bit_width), "flbp")));
    cases.extend([2, 4, 8, 16, 32, 64, 256].map(|average| (runs(average), "rfor")));
    cases.extend([1, 3, 8, 16].map(|gap_bits| (ascending(gap_bits), "dfor")));
    cases.extend([(prices(), "alp"), (fractions(), "alp")]);
    cases.into_iter().filter_map(|(column, codec)| EncodedColumn::new(column, codec)).collect()
}
