//! Any bytes as a tile of any codec.

use codec_core::conformance::check;
use codec_core::{AnyCodec, Kind, Layout, OwnedValues, Tile, Value, Values, with_values};
use zerocopy::IntoBytes;

/// The layouts that a tile may have.
pub const LAYOUTS: [Layout; 5] =
    [Layout::values(8), Layout::values(16), Layout::values(32), Layout::values(64), Layout::BYTES];

/// Bytes of an input before the shared bytes and the tile.
pub const HEADER_BYTES: usize = 8;

/// Proves and decodes the tile that `input` describes, twice over different garbage; then encodes the same bytes as values.
///
/// The input: u8 codec (an index, so that a new codec needs no change here), u8 layout, u16 reserved, u16 value_count, u16 shared_bytes, shared bytes, tile.
pub fn check_then_decode(input: &[u8]) {
    let Some((header, rest)) = input.split_at_checked(HEADER_BYTES) else { return };
    let codecs: Vec<&'static dyn AnyCodec> = codecs::REGISTRY.iter().collect();
    let codec = codecs[usize::from(header[0]) % codecs.len()];
    let layout = LAYOUTS[usize::from(header[1]) % LAYOUTS.len()];
    let most = if layout.kind == Kind::Bytes { 65_536 } else { 1024 };
    let value_count = usize::from(u16::from_le_bytes([header[4], header[5]])) % most + 1;
    let shared_bytes = usize::from(u16::from_le_bytes([header[6], header[7]])).min(rest.len());
    let (shared, bytes) = rest.split_at(shared_bytes);
    if !codec.supports(layout) {
        assert!(codec.check_tile(Tile { bytes, shared, value_count }, layout).is_err());
        return;
    }
    if codec.check_shared(shared, layout).is_ok() {
        let _ = check(codec, layout, Tile { bytes, shared, value_count });
    }
    encode(codec, layout, rest);
}

/// Encodes `bytes` as values of `layout` and expects the same values back.
fn encode(codec: &'static dyn AnyCodec, layout: Layout, bytes: &[u8]) {
    let width = usize::from(layout.value_width / 8);
    let most = if layout.kind == Kind::Bytes { 65_536 } else { 1024 };
    let count = (bytes.len() / width).min(most);
    let Some(mut values) = OwnedValues::zeros(layout.value_width, count).filter(|_| count > 0) else {
        return;
    };
    with_values!(OwnedValues, &mut values, values => values.as_mut_bytes().copy_from_slice(&bytes[..count * width]));
    let shared = codec.encode_shared(values.as_values());
    assert_eq!(codec.check_shared(&shared, layout), Ok(()));
    let tile = input(codec, layout, values.as_values());
    let tile = Tile { bytes: &tile[HEADER_BYTES + shared.len()..], shared: &shared, value_count: count };
    check(codec, layout, tile).expect("a codec refuses its own tile");
    let mut decoded = OwnedValues::zeros(layout.value_width, count).expect("a width of the format");
    codec.decompress_tile(tile, decoded.as_values_mut()).expect("a proven tile");
    assert!(decoded == values, "codec {} gives other values back", codec.name());
}

/// The input that holds `values` as a tile of `codec`.
pub fn input(codec: &'static dyn AnyCodec, layout: Layout, values: Values<'_>) -> Vec<u8> {
    let index = codecs::REGISTRY.iter().position(|other| other.id() == codec.id()).unwrap_or(0);
    let place = LAYOUTS.iter().position(|other| *other == layout).unwrap_or(0);
    let shared = codec.encode_shared(values);
    let mut input = vec![index as u8, place as u8, 0, 0];
    input.extend_from_slice(&((values.len() - 1) as u16).to_le_bytes());
    input.extend_from_slice(&(shared.len() as u16).to_le_bytes());
    input.extend_from_slice(&shared);
    codec.encode_tile(&shared, values, &mut input);
    input
}

/// Named values of every layout, for seeds.
pub fn seeds_of(layout: Layout, count: usize) -> Vec<OwnedValues> {
    fn of<V: Value>(count: usize) -> Vec<OwnedValues> {
        let all = codec_core::conformance::named_distributions::<V>(count);
        all.into_iter().step_by(5).map(|(_, values)| V::own(values)).collect()
    }
    match layout.value_width {
        8 => of::<u8>(count),
        16 => of::<u16>(count),
        32 => of::<u32>(count),
        _ => of::<u64>(count),
    }
}
