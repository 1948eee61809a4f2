#![doc = include_str!("../SPEC.md")]
#![forbid(unsafe_code)]

mod distinct;
mod lookup;

use codec_core::packing::{best_reference, lanes};
use codec_core::{
    AnyCodec, Codec, DeviceParameters, Kind, Layout, Tile, TileEncoder, TileError, Value, erased,
};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use distinct::distinct;
use lookup::Lookup;

/// The codec, as registries hold it.
pub const CODEC: &dyn AnyCodec = erased::<Dict>();

/// Most distinct values of a block that has a dictionary.
const MAX_ENTRIES: usize = 1 << 16;
/// Bits of the largest code.
const CODE_BITS: u32 = 16;
/// The bit_width of tiles that hold the values themselves.
const VALUES: u32 = u32::MAX;

/// The distinct values of a block and codes.
#[derive(Debug)]
pub struct Dict;

/// A tile whose codes are proven to be those of entries.
#[derive(Debug)]
pub enum Metadata<'a> {
    /// The block has a dictionary.
    Codes {
        /// The entries, of the value's width each.
        entries: &'a [u8],
        /// The smallest code.
        reference: u16,
        /// The codes less the smallest.
        codes: lanes::Packed<'a>,
    },
    /// It has none: the values themselves.
    Values(&'a [u8]),
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    reference: U32,
    bit_width: U32,
    reserved: [u8; 8],
}

impl Codec for Dict {
    const ID: u16 = 6;
    const NAME: &'static str = "dict";
    const DEVICE_SOURCE: Option<&'static str> = Some(include_str!("../cuda/dict.cuh"));
    type Metadata<'a, V: Value> = Metadata<'a>;

    fn decode_bits(_: Layout) -> u32 {
        1
    }

    fn supports(layout: Layout) -> bool {
        layout.kind == Kind::Values && layout.value_width > 8
    }

    fn encode_shared<V: Value>(values: &[V]) -> Vec<u8> {
        distinct(values, MAX_ENTRIES).map_or_else(Vec::new, |entries| entries.as_bytes().to_vec())
    }

    fn check_shared(shared: &[u8], layout: Layout) -> Result<(), TileError> {
        match layout.value_width {
            16 => check_entries::<u16>(shared),
            32 => check_entries::<u32>(shared),
            _ => check_entries::<u64>(shared),
        }
    }

    fn resolve_metadata<V: Value>(tile: Tile<'_>) -> Result<Metadata<'_>, TileError> {
        let truncated = |needed: usize| TileError::Truncated {
            needed_bytes: needed as u64,
            found_bytes: tile.bytes.len() as u64,
        };
        let (header, packed) =
            Header::ref_from_prefix(tile.bytes).map_err(|_| truncated(size_of::<Header>()))?;
        if header.reserved != [0; 8] {
            return Err(TileError::Field { field: "reserved", found: 1 });
        }
        let found = header.reference.get();
        if header.bit_width.get() == VALUES && found == 0 {
            let needed = tile.value_count.saturating_mul(V::BYTES);
            let truncated = truncated(needed.saturating_add(size_of::<Header>()));
            return packed.get(..needed).map(Metadata::Values).ok_or(truncated);
        }
        let entry_count = tile.shared.len() / V::BYTES;
        let reference = u16::try_from(found).ok().filter(|&reference| usize::from(reference) < entry_count);
        let reference = reference.ok_or(TileError::Field { field: "reference", found: found.into() })?;
        let bit_width = header.bit_width.get();
        let codes = lanes::Packed::parse::<u16>(packed, tile.value_count, bit_width)?;
        check_codes(&codes, reference, entry_count, tile.value_count)?;
        Ok(Metadata::Codes { entries: tile.shared, reference, codes })
    }

    fn decompress_tile<V: Value>(metadata: &Metadata<'_>, values: &mut [V]) {
        match metadata {
            Metadata::Values(bytes) => values.as_mut_bytes().copy_from_slice(bytes),
            Metadata::Codes { entries, reference, codes } => {
                let mut room = [0; 1024];
                let Some(room) = room.get_mut(..values.len()) else { return };
                codes.unpack(*reference, room);
                for (value, &code) in values.iter_mut().zip(&*room) {
                    *value = entry(entries, code);
                }
            }
        }
    }

    fn encode_tile<V: Value>(shared: &[u8], values: &[V], tile: &mut Vec<u8>) {
        if shared.is_empty() {
            append_values(values, tile);
        } else {
            let codes: Vec<u16> = values.iter().map(|&value| code(shared, value)).collect();
            append_codes(&codes, tile);
        }
    }

    /// A search for each value's code would take most of the time of writing a table; a look-up takes a nanosecond.
    fn encoder<'a, V: Value>(shared: &'a [u8]) -> TileEncoder<'a, &'a [V]> {
        if shared.is_empty() {
            return Box::new(append_values);
        }
        let lookup = Lookup::of(shared);
        let mut codes = Vec::new();
        Box::new(move |values, tile| {
            codes.clear();
            lookup.append(values, &mut codes);
            append_codes(&codes, tile);
        })
    }

    /// The set of bit widths of codes, and 64 for values themselves.
    fn device_parameters<V: Value>(tile: Tile<'_>) -> DeviceParameters {
        match Self::resolve_metadata::<V>(tile) {
            Ok(Metadata::Codes { codes, .. }) => DeviceParameters::member(codes.bit_width()),
            Ok(Metadata::Values(_)) => DeviceParameters::member(64),
            Err(_) => DeviceParameters::default(),
        }
    }
}

fn append_values<V: Value>(values: &[V], tile: &mut Vec<u8>) {
    let header = Header { reference: 0.into(), bit_width: VALUES.into(), reserved: [0; 8] };
    tile.extend_from_slice(header.as_bytes());
    tile.extend_from_slice(values.as_bytes());
}

fn append_codes(codes: &[u16], tile: &mut Vec<u8>) {
    let (reference, bit_width) = best_reference(codes);
    let header =
        Header { reference: u32::from(reference).into(), bit_width: bit_width.into(), reserved: [0; 8] };
    tile.extend_from_slice(header.as_bytes());
    lanes::pack(codes, reference, bit_width, tile);
}

/// The entry with this code, which is one.
fn entry<V: Value>(entries: &[u8], code: u16) -> V {
    let start = usize::from(code) * V::BYTES;
    let stored = entries.get(start..start + V::BYTES).unwrap_or_default();
    V::read_from_bytes(stored).unwrap_or_default()
}

/// The code of a value, which is an entry.
fn code<V: Value>(entries: &[u8], value: V) -> u16 {
    let (mut low, mut high) = (0, entries.len() / V::BYTES);
    while low + 1 < high {
        let middle = low.midpoint(high);
        // Fewer than 2^16 + 1 entries: a middle one has a code.
        let is_below = u16::try_from(middle).is_ok_and(|code| entry::<V>(entries, code) <= value);
        if is_below { low = middle } else { high = middle }
    }
    u16::try_from(low).unwrap_or(u16::MAX)
}

fn check_entries<V: Value>(shared: &[u8]) -> Result<(), TileError> {
    let refuse = |reason| Err(TileError::Shared { reason });
    if shared.is_empty() {
        return Ok(());
    }
    if !shared.len().is_multiple_of(V::BYTES) {
        return refuse("they are no whole number of values");
    }
    let count = shared.len() / V::BYTES;
    if count > MAX_ENTRIES {
        return refuse("there are more than 65536 values");
    }
    let ascend = (1..count).all(|index| match (u16::try_from(index - 1), u16::try_from(index)) {
        (Ok(before), Ok(code)) => entry::<V>(shared, before) < entry::<V>(shared, code),
        _ => false,
    });
    if ascend { Ok(()) } else { refuse("the values do not ascend") }
}

/// Every code is less than entry_count. Mostly the header alone proves it; else the codes are looked at.
fn check_codes(
    codes: &lanes::Packed<'_>,
    reference: u16,
    entry_count: usize,
    value_count: usize,
) -> Result<(), TileError> {
    let largest = usize::from(reference) + (1_usize << codes.bit_width().min(CODE_BITS)) - 1;
    if largest < entry_count {
        return Ok(());
    }
    let mut room = vec![0_u16; value_count];
    codes.unpack(0, &mut room);
    let found = room.iter().copied().max().map_or(0, usize::from) + usize::from(reference);
    if found < entry_count { Ok(()) } else { Err(TileError::Field { field: "code", found: found as u64 }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    codec_core::conformance!(CODEC);

    #[test]
    fn dates_as_numbers_take_the_bits_of_their_count() {
        let dates: Vec<u32> = (0..1024).map(|day| 19_920_101 + day % 7 * 10_000 + day % 12 * 100).collect();
        let shared = Dict::encode_shared(&dates);
        assert_eq!(shared.len(), 84 * 4);
        let mut tile = Vec::new();
        Dict::encode_tile(&shared, &dates, &mut tile);
        assert_eq!(tile.len(), 16 + 128 * 7);
    }

    #[test]
    fn a_code_without_an_entry_is_refused() {
        let values: Vec<u32> = (0..1024).map(|position| position % 3 * 1000).collect();
        let shared = Dict::encode_shared(&values);
        let mut tile = Vec::new();
        Dict::encode_tile(&shared, &values, &mut tile);
        assert!(Dict::check_tile::<u32>(Tile { bytes: &tile, shared: &shared, value_count: 1024 }).is_ok());
        // Two bits of the first lane set: code 3 of three entries.
        tile[16] |= 3;
        let refused = Dict::check_tile::<u32>(Tile { bytes: &tile, shared: &shared, value_count: 1024 });
        assert_eq!(refused, Err(TileError::Field { field: "code", found: 3 }));
    }

    #[test]
    fn entries_that_do_not_ascend_are_refused() {
        let twice = [5_u32, 5].as_bytes().to_vec();
        assert!(Dict::check_shared(&twice, Layout::values(32)).is_err());
        assert!(Dict::check_shared(&twice[..7], Layout::values(32)).is_err());
    }

    #[test]
    fn too_many_distinct_values_are_stored_as_they_are() {
        let values: Vec<u32> = (0..70_000_u32).map(|position| position.wrapping_mul(2_654_435_761)).collect();
        assert!(Dict::encode_shared(&values).is_empty());
    }
}
