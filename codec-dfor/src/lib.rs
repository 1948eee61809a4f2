#![doc = include_str!("../SPEC.md")]
#![forbid(unsafe_code)]

use codec_core::packing::{best_reference, lanes};
use codec_core::{AnyCodec, Codec, DeviceParameters, Kind, Layout, Tile, TileError, Value, erased};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The codec, as registries hold it.
pub const CODEC: &dyn AnyCodec = erased::<Dfor>();

/// Delta, frame of reference, bit packing.
#[derive(Debug)]
pub struct Dfor;

/// A tile whose residuals are proven to be there.
#[derive(Debug)]
pub struct Metadata<'a, V> {
    first: V,
    delta_reference: V,
    residuals: lanes::Packed<'a>,
}

/// The header of tiles of values of at most 32 bits.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct NarrowHeader {
    first: U32,
    delta_reference: U32,
    bit_width: U32,
    reserved: U32,
}

/// The header of tiles of values of 64 bits.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct WideHeader {
    first: U64,
    delta_reference: U64,
    bit_width: U32,
    reserved: [u8; 12],
}

/// What both headers say.
struct Fields {
    first: u64,
    delta_reference: u64,
    bit_width: u32,
    reserved_is_zero: bool,
}

impl Codec for Dfor {
    const ID: u16 = 4;
    const NAME: &'static str = "dfor";
    type Metadata<'a, V: Value> = Metadata<'a, V>;
    const DEVICE_SOURCE: Option<&'static str> = Some(include_str!("../cuda/dfor.cuh"));

    fn decode_bits(_: Layout) -> u32 {
        2
    }

    fn supports(layout: Layout) -> bool {
        layout.kind == Kind::Values
    }

    fn resolve_metadata<V: Value>(tile: Tile<'_>) -> Result<Metadata<'_, V>, TileError> {
        let (fields, packed) = parse_header::<V>(tile.bytes)?;
        let (first, delta_reference) = (V::from_u64(fields.first), V::from_u64(fields.delta_reference));
        if first.to_u64() != fields.first {
            return Err(TileError::Field { field: "first", found: fields.first });
        }
        if delta_reference.to_u64() != fields.delta_reference {
            return Err(TileError::Field { field: "delta_reference", found: fields.delta_reference });
        }
        if !fields.reserved_is_zero {
            return Err(TileError::Field { field: "reserved", found: 1 });
        }
        let residuals = lanes::Packed::parse::<V>(packed, tile.value_count, fields.bit_width)?;
        Ok(Metadata { first, delta_reference, residuals })
    }

    fn decompress_tile<V: Value>(metadata: &Metadata<'_, V>, values: &mut [V]) {
        metadata.residuals.unpack(metadata.delta_reference, values);
        let Some((first, rest)) = values.split_first_mut() else { return };
        *first = metadata.first;
        let mut value = metadata.first;
        for delta in rest {
            value = value.wrapping_add(*delta);
            *delta = value;
        }
    }

    fn encode_tile<V: Value>(_: &[u8], values: &[V], tile: &mut Vec<u8>) {
        let first = values.first().copied().unwrap_or_default();
        let deltas: Vec<V> = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        let (delta_reference, bit_width) = best_reference(&deltas);
        append_header(first, delta_reference, bit_width, tile);
        let mut packed = vec![delta_reference];
        packed.extend_from_slice(&deltas);
        lanes::pack(&packed, delta_reference, bit_width, tile);
    }

    /// The set of bit widths.
    fn device_parameters<V: Value>(tile: Tile<'_>) -> DeviceParameters {
        Self::resolve_metadata::<V>(tile).map_or(DeviceParameters::default(), |metadata| {
            DeviceParameters::member(metadata.residuals.bit_width())
        })
    }
}

fn parse_header<V: Value>(bytes: &[u8]) -> Result<(Fields, &[u8]), TileError> {
    let truncated =
        |needed: usize| TileError::Truncated { needed_bytes: needed as u64, found_bytes: bytes.len() as u64 };
    if V::WIDTH <= 32 {
        let (header, packed) =
            NarrowHeader::ref_from_prefix(bytes).map_err(|_| truncated(size_of::<NarrowHeader>()))?;
        let fields = Fields {
            first: header.first.get().into(),
            delta_reference: header.delta_reference.get().into(),
            bit_width: header.bit_width.get(),
            reserved_is_zero: header.reserved.get() == 0,
        };
        return Ok((fields, packed));
    }
    let (header, packed) =
        WideHeader::ref_from_prefix(bytes).map_err(|_| truncated(size_of::<WideHeader>()))?;
    let fields = Fields {
        first: header.first.get(),
        delta_reference: header.delta_reference.get(),
        bit_width: header.bit_width.get(),
        reserved_is_zero: header.reserved == [0; 12],
    };
    Ok((fields, packed))
}

fn append_header<V: Value>(first: V, delta_reference: V, bit_width: u32, tile: &mut Vec<u8>) {
    if V::WIDTH <= 32 {
        let header = NarrowHeader {
            first: first.to_u32().into(),
            delta_reference: delta_reference.to_u32().into(),
            bit_width: bit_width.into(),
            reserved: 0.into(),
        };
        tile.extend_from_slice(header.as_bytes());
    } else {
        let header = WideHeader {
            first: first.to_u64().into(),
            delta_reference: delta_reference.to_u64().into(),
            bit_width: bit_width.into(),
            reserved: [0; 12],
        };
        tile.extend_from_slice(header.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    codec_core::conformance!(CODEC);

    #[test]
    fn equal_steps_take_no_residuals() {
        let values: Vec<u32> = (0..1024).map(|position| 5 + 3 * position).collect();
        let mut tile = Vec::new();
        Dfor::encode_tile(&[], &values, &mut tile);
        assert_eq!(tile.len(), 16);
    }

    #[test]
    fn a_tile_of_one_value_is_its_header() {
        let mut tile = Vec::new();
        Dfor::encode_tile(&[], &[u64::MAX], &mut tile);
        assert_eq!(tile.len(), 32);
    }
}
