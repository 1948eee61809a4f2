#![doc = include_str!("../SPEC.md")]
#![forbid(unsafe_code)]

use codec_core::{AnyCodec, Codec, Layout, Tile, TileError, Value, erased};
use zerocopy::IntoBytes;

/// The codec, as registries hold it.
pub const CODEC: &dyn AnyCodec = erased::<Plain>();

/// The values as they are.
#[derive(Debug)]
pub struct Plain;

/// A tile whose bytes are exactly its values.
#[derive(Debug)]
pub struct Metadata<'a> {
    values: &'a [u8],
}

impl Codec for Plain {
    const ID: u16 = 1;
    const NAME: &'static str = "plain";
    type Metadata<'a, V: Value> = Metadata<'a>;
    const DEVICE_SOURCE: Option<&'static str> = Some(include_str!("../cuda/plain.cuh"));

    fn supports(_: Layout) -> bool {
        true
    }

    fn resolve_metadata<V: Value>(tile: Tile<'_>) -> Result<Metadata<'_>, TileError> {
        let needed = tile.value_count.saturating_mul(V::BYTES);
        let found_bytes = tile.bytes.len() as u64;
        let values = tile
            .bytes
            .get(..needed)
            .ok_or(TileError::Truncated { needed_bytes: needed as u64, found_bytes })?;
        Ok(Metadata { values })
    }

    fn decompress_tile<V: Value>(metadata: &Metadata<'_>, values: &mut [V]) {
        values.as_mut_bytes().copy_from_slice(metadata.values);
    }

    fn encode_tile<V: Value>(_: &[u8], values: &[V], tile: &mut Vec<u8>) {
        tile.extend_from_slice(values.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    codec_core::conformance!(super::CODEC);
}
