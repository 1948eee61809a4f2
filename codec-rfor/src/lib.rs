#![doc = include_str!("../SPEC.md")]
#![forbid(unsafe_code)]

mod runs;

use codec_core::packing::{best_reference, sequence};
use codec_core::{AnyCodec, Codec, Kind, Layout, Tile, TileError, Value, erased};
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The codec, as registries hold it.
pub const CODEC: &dyn AnyCodec = erased::<Rfor>();

/// Widest run length less its reference: lengths are at most 1024, references at least 1.
const MAX_LENGTH_BITS: u32 = 10;
/// Runs that are unpacked before they are written.
const RUNS_AT_ONCE: usize = 64;

/// Run length, frame of reference, bit packing.
#[derive(Debug)]
pub struct Rfor;

/// A tile whose runs are proven to cover exactly its values.
#[derive(Debug)]
pub struct Metadata<'a, V> {
    value_reference: V,
    run_values: sequence::Packed<'a>,
    length_reference: u16,
    run_lengths: sequence::Packed<'a>,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    value_reference: U64,
    length_reference: U16,
    run_count: U16,
    value_bit_width: u8,
    length_bit_width: u8,
    reserved: U16,
}

impl Codec for Rfor {
    const ID: u16 = 3;
    const NAME: &'static str = "rfor";
    type Metadata<'a, V: Value> = Metadata<'a, V>;
    const DEVICE_SOURCE: Option<&'static str> = Some(include_str!("../cuda/rfor.cuh"));
    const DEVICE_ENCODES: bool = true;

    fn decode_bits(_: Layout) -> u32 {
        3
    }

    fn supports(layout: Layout) -> bool {
        layout.kind == Kind::Values
    }

    fn resolve_metadata<V: Value>(tile: Tile<'_>) -> Result<Metadata<'_, V>, TileError> {
        let (header, streams) = Header::ref_from_prefix(tile.bytes).map_err(|_| TileError::Truncated {
            needed_bytes: size_of::<Header>() as u64,
            found_bytes: tile.bytes.len() as u64,
        })?;
        let value_reference = V::from_u64(header.value_reference.get());
        if value_reference.to_u64() != header.value_reference.get() {
            return Err(TileError::Field { field: "value_reference", found: header.value_reference.get() });
        }
        if header.reserved.get() != 0 {
            return Err(TileError::Field { field: "reserved", found: header.reserved.get().into() });
        }
        let run_count = usize::from(header.run_count.get());
        let (value_bits, length_bits) = (header.value_bit_width.into(), header.length_bit_width.into());
        if run_count == 0 || run_count > tile.value_count {
            return Err(TileError::Field { field: "run_count", found: run_count as u64 });
        }
        let (run_values, lengths) = sequence::Packed::parse(streams, run_count, value_bits, V::WIDTH.into())?;
        let (run_lengths, _) = sequence::Packed::parse(lengths, run_count, length_bits, MAX_LENGTH_BITS)?;
        let length_reference = header.length_reference.get();
        check_lengths(&run_lengths, length_reference, tile.value_count as u64)?;
        Ok(Metadata { value_reference, run_values, length_reference, run_lengths })
    }

    fn decompress_tile<V: Value>(metadata: &Metadata<'_, V>, values: &mut [V]) {
        // A few runs at a time: arrays for all that a tile may have would cost more than most tiles.
        let (mut run_values, mut run_lengths) = ([V::default(); RUNS_AT_ONCE], [0_u16; RUNS_AT_ONCE]);
        let run_count = metadata.run_values.len();
        let mut rest = values;
        for first in (0..run_count).step_by(RUNS_AT_ONCE) {
            let count = (run_count - first).min(RUNS_AT_ONCE);
            let run_values = run_values.get_mut(..count).unwrap_or_default();
            let run_lengths = run_lengths.get_mut(..count).unwrap_or_default();
            metadata.run_values.unpack(first, metadata.value_reference, run_values);
            metadata.run_lengths.unpack(first, metadata.length_reference, run_lengths);
            rest = runs::expand(run_values, run_lengths, rest);
        }
    }

    fn encode_tile<V: Value>(_: &[u8], values: &[V], tile: &mut Vec<u8>) {
        let (run_values, run_lengths) = runs::find(values);
        let (value_reference, value_bits) = best_reference(&run_values);
        let length_reference = run_lengths.iter().copied().min().unwrap_or_default();
        let longest = run_lengths.iter().copied().max().unwrap_or_default();
        let length_bits = u16::BITS - (longest - length_reference).leading_zeros();
        let header = Header {
            value_reference: value_reference.to_u64().into(),
            length_reference: length_reference.into(),
            run_count: u16::try_from(run_values.len()).unwrap_or(u16::MAX).into(),
            value_bit_width: u8::try_from(value_bits).unwrap_or(u8::MAX),
            length_bit_width: u8::try_from(length_bits).unwrap_or(u8::MAX),
            reserved: 0.into(),
        };
        tile.extend_from_slice(header.as_bytes());
        sequence::pack(&run_values, value_reference, value_bits, tile);
        sequence::pack(&run_lengths, length_reference, length_bits, tile);
    }
}

/// Every run has a value, and together they are as many as the tile has.
fn check_lengths(lengths: &sequence::Packed<'_>, reference: u16, value_count: u64) -> Result<(), TileError> {
    let mut residuals = [0_u16; RUNS_AT_ONCE];
    let (run_count, mut sum, mut least) = (lengths.len(), 0, u16::MAX);
    for first in (0..run_count).step_by(RUNS_AT_ONCE) {
        let count = (run_count - first).min(RUNS_AT_ONCE);
        let residuals = residuals.get_mut(..count).unwrap_or_default();
        lengths.unpack(first, 0, residuals);
        for &residual in residuals.iter() {
            sum += u64::from(residual);
            least = least.min(residual);
        }
    }
    let (run_count, reference) = (run_count as u64, u64::from(reference));
    let (covered, shortest) = (sum + run_count * reference, u64::from(least) + reference);
    if covered == value_count && shortest > 0 {
        return Ok(());
    }
    Err(TileError::Runs { run_count, covered, value_count })
}

#[cfg(test)]
mod tests {
    use super::*;

    codec_core::conformance!(CODEC);

    fn encoded(values: &[u32]) -> Vec<u8> {
        let mut tile = Vec::new();
        Rfor::encode_tile(&[], values, &mut tile);
        tile
    }

    #[test]
    fn a_tile_of_one_run_is_its_header() {
        assert_eq!(encoded(&[7; 1024]).len(), 16);
    }

    #[test]
    fn runs_that_reach_past_the_tile_are_refused() {
        let bytes = encoded(&[7; 1024]);
        let tile = Tile { bytes: &bytes, shared: &[], value_count: 1000 };
        let refused = Rfor::check_tile::<u32>(tile);
        assert_eq!(refused, Err(TileError::Runs { run_count: 1, covered: 1024, value_count: 1000 }));
    }

    #[test]
    fn a_run_of_no_values_is_refused() {
        // Two runs of lengths 0 and 2: the sum is right, a length is not.
        let mut bytes = encoded(&[1, 2]);
        bytes[8] = 0;
        bytes[13] = 2;
        bytes.truncate(20);
        bytes.extend_from_slice(&0b1000_u32.to_le_bytes());
        let tile = Tile { bytes: &bytes, shared: &[], value_count: 2 };
        assert_eq!(
            Rfor::check_tile::<u32>(tile),
            Err(TileError::Runs { run_count: 2, covered: 2, value_count: 2 })
        );
    }
}
