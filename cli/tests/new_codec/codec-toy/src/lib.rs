#![doc = include_str!("../SPEC.md")]
#![forbid(unsafe_code)]

use codec_core::{AnyCodec, Codec, Kind, Layout, Tile, TileError, Value, erased};

/// The codec, as registries hold it.
pub const CODEC: &dyn AnyCodec = erased::<Toy>();

/// Values in as few whole bytes as they need.
#[derive(Debug)]
pub struct Toy;

/// A tile whose values are proven to be there.
#[derive(Debug)]
pub struct Metadata<'a> {
    value_bytes: usize,
    packed: &'a [u8],
}

impl Codec for Toy {
    const ID: u16 = 0xF001;
    const NAME: &'static str = "toy";
    type Metadata<'a, V: Value> = Metadata<'a>;
    const DEVICE_SOURCE: Option<&'static str> = Some(include_str!("../cuda/toy.cuh"));

    fn supports(layout: Layout) -> bool {
        layout.kind == Kind::Values
    }

    fn resolve_metadata<V: Value>(tile: Tile<'_>) -> Result<Metadata<'_>, TileError> {
        let found_bytes = tile.bytes.len() as u64;
        let truncated = |needed: usize| TileError::Truncated { needed_bytes: needed as u64, found_bytes };
        let (&value_bytes, packed) = tile.bytes.split_first().ok_or(truncated(1))?;
        let value_bytes = usize::from(value_bytes);
        if value_bytes > V::BYTES {
            return Err(TileError::Field { field: "b", found: value_bytes as u64 });
        }
        let needed = tile.value_count * value_bytes;
        let packed = packed.get(..needed).ok_or(truncated(1 + needed))?;
        Ok(Metadata { value_bytes, packed })
    }

    fn decompress_tile<V: Value>(metadata: &Metadata<'_>, values: &mut [V]) {
        values.fill(V::default());
        if metadata.value_bytes > 0 {
            for (value, bytes) in values.iter_mut().zip(metadata.packed.chunks_exact(metadata.value_bytes)) {
                *value = V::from_u64(bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)));
            }
        }
    }

    fn encode_tile<V: Value>(_: &[u8], values: &[V], tile: &mut Vec<u8>) {
        let largest = values.iter().max().map_or(0, |value| value.to_u64());
        let value_bytes = (u64::BITS - largest.leading_zeros()).div_ceil(8);
        tile.push(u8::try_from(value_bytes).unwrap_or(8));
        for value in values {
            tile.extend(value.to_u64().to_le_bytes().iter().take(value_bytes as usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    codec_core::conformance!(CODEC);

    #[test]
    fn small_values_take_one_byte_each() {
        let mut tile = Vec::new();
        Toy::encode_tile(&[], &[1_u64, 2, 255], &mut tile);
        assert_eq!(tile, [1, 1, 2, 255]);
    }
}
