#![doc = include_str!("../SPEC.md")]
#![forbid(unsafe_code)]

use codec_core::packing::{best_reference, lanes};
use codec_core::{AnyCodec, Codec, DeviceParameters, Kind, Layout, Tile, TileError, Value, erased};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The codec, as registries hold it.
pub const CODEC: &dyn AnyCodec = erased::<Flbp>();

/// Frame of reference and lane-interleaved bit packing.
#[derive(Debug)]
pub struct Flbp;

/// A tile whose residuals are proven to be there.
#[derive(Debug)]
pub struct Metadata<'a, V> {
    reference: V,
    residuals: lanes::Packed<'a>,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    reference: U64,
    bit_width: U32,
    reserved: U32,
}

impl Codec for Flbp {
    const ID: u16 = 2;
    const NAME: &'static str = "flbp";
    type Metadata<'a, V: Value> = Metadata<'a, V>;
    const DEVICE_SOURCE: Option<&'static str> = Some(include_str!("../cuda/flbp.cuh"));
    const DEVICE_ENCODES: bool = true;

    fn supports(layout: Layout) -> bool {
        layout.kind == Kind::Values
    }

    fn resolve_metadata<V: Value>(tile: Tile<'_>) -> Result<Metadata<'_, V>, TileError> {
        let (header, packed) = Header::ref_from_prefix(tile.bytes).map_err(|_| TileError::Truncated {
            needed_bytes: size_of::<Header>() as u64,
            found_bytes: tile.bytes.len() as u64,
        })?;
        let reference = V::from_u64(header.reference.get());
        if reference.to_u64() != header.reference.get() {
            return Err(TileError::Field { field: "reference", found: header.reference.get() });
        }
        if header.reserved.get() != 0 {
            return Err(TileError::Field { field: "reserved", found: header.reserved.get().into() });
        }
        let residuals = lanes::Packed::parse::<V>(packed, tile.value_count, header.bit_width.get())?;
        Ok(Metadata { reference, residuals })
    }

    fn decompress_tile<V: Value>(metadata: &Metadata<'_, V>, values: &mut [V]) {
        metadata.residuals.unpack(metadata.reference, values);
    }

    fn encode_tile<V: Value>(_: &[u8], values: &[V], tile: &mut Vec<u8>) {
        let (reference, bit_width) = best_reference(values);
        let header =
            Header { reference: reference.to_u64().into(), bit_width: bit_width.into(), reserved: 0.into() };
        tile.extend_from_slice(header.as_bytes());
        lanes::pack(values, reference, bit_width, tile);
    }

    /// The set of bit widths.
    fn device_parameters<V: Value>(tile: Tile<'_>) -> DeviceParameters {
        Self::resolve_metadata::<V>(tile).map_or(DeviceParameters::default(), |metadata| {
            DeviceParameters::member(metadata.residuals.bit_width())
        })
    }
}

#[cfg(test)]
mod tests {
    codec_core::conformance!(super::CODEC);
}
