#![doc = include_str!("../SPEC.md")]
#![forbid(unsafe_code)]

use codec_core::{AnyCodec, Codec, Kind, Layout, Tile, TileError, Value, erased};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The codec, as registries hold it.
pub const CODEC: &dyn AnyCodec = erased::<Deflate>();

/// DEFLATE over a tile's bytes.
#[derive(Debug)]
pub struct Deflate;

/// A tile whose content is there: only inflating a stream proves it.
#[derive(Debug)]
pub struct Metadata {
    content: Vec<u8>,
}

/// Most shared bytes: how far a match reaches.
const MAX_SHARED_BYTES: usize = 1 << 15;
/// Most shared bytes that the writer makes.
const SAMPLE_BYTES: usize = 1 << 14;
/// Bytes of each piece of the shared sample.
const PIECE_BYTES: usize = 1 << 10;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    stream_bytes: U32,
    reserved: [u8; 12],
}

impl Codec for Deflate {
    const ID: u16 = 7;
    const NAME: &'static str = "deflate";
    type Metadata<'a, V: Value> = Metadata;

    fn supports(_: Layout) -> bool {
        true
    }

    /// A core inflates some hundred megabytes a second: text must shrink by a quarter to be worth that, and numbers, for which bit packing is there, are never.
    fn decode_bits(layout: Layout) -> u32 {
        match layout.kind {
            Kind::Bytes => 2,
            Kind::Values => u32::from(layout.value_width),
        }
    }

    fn encode_shared<V: Value>(values: &[V]) -> Vec<u8> {
        let bytes = values.as_bytes();
        // Fixed-width values are compressed transposed, where pieces of the block are of no use.
        if V::BYTES > 1 || bytes.len() < 2 * SAMPLE_BYTES {
            return Vec::new();
        }
        let piece_count = (bytes.len() / 32).min(SAMPLE_BYTES) / PIECE_BYTES;
        let step = bytes.len() / piece_count.max(1);
        let pieces = (0..piece_count).filter_map(|piece| bytes.get(piece * step..piece * step + PIECE_BYTES));
        pieces.flatten().copied().collect()
    }

    fn check_shared(shared: &[u8], _: Layout) -> Result<(), TileError> {
        if shared.len() <= MAX_SHARED_BYTES {
            return Ok(());
        }
        Err(TileError::Shared { reason: "the dictionary has more than 32768 bytes" })
    }

    fn resolve_metadata<V: Value>(tile: Tile<'_>) -> Result<Metadata, TileError> {
        let found_bytes = tile.bytes.len() as u64;
        let (header, rest) = Header::ref_from_prefix(tile.bytes)
            .map_err(|_| TileError::Truncated { needed_bytes: size_of::<Header>() as u64, found_bytes })?;
        if header.reserved != [0; 12] {
            return Err(TileError::Field { field: "reserved", found: 1 });
        }
        let stream_bytes = header.stream_bytes.get();
        let needed_bytes = size_of::<Header>() as u64 + u64::from(stream_bytes);
        let truncated = TileError::Truncated { needed_bytes, found_bytes };
        // A tile has at most 65536 values: what is allocated is bounded by the format, not by the stream.
        let length = tile.value_count.saturating_mul(V::BYTES);
        if stream_bytes == 0 {
            return rest.get(..length).map(|content| Metadata { content: content.to_vec() }).ok_or(truncated);
        }
        let stream =
            usize::try_from(stream_bytes).ok().and_then(|length| rest.get(..length)).ok_or(truncated)?;
        let content = inflate(tile.shared, stream, length)
            .ok_or(TileError::Field { field: "stream_bytes", found: stream_bytes.into() })?;
        Ok(Metadata { content })
    }

    fn decompress_tile<V: Value>(metadata: &Metadata, values: &mut [V]) {
        if V::BYTES == 1 {
            values.as_mut_bytes().copy_from_slice(&metadata.content);
            return;
        }
        let count = values.len();
        for (position, value) in values.iter_mut().enumerate() {
            let mut bits = 0;
            for byte in (0..V::BYTES).rev() {
                bits =
                    bits << 8 | metadata.content.get(byte * count + position).copied().map_or(0, u64::from);
            }
            *value = V::from_u64(bits);
        }
    }

    fn encode_tile<V: Value>(shared: &[u8], values: &[V], tile: &mut Vec<u8>) {
        let content: Vec<u8> = if V::BYTES == 1 {
            values.as_bytes().to_vec()
        } else {
            let byte = |shift: usize| values.iter().map(move |value| value.to_u64() >> (8 * shift));
            (0..V::BYTES).flat_map(byte).map(u8::from_u64).collect()
        };
        let stream =
            deflate(shared, &content).filter(|stream| stream.len() < content.len()).unwrap_or_default();
        let stream_bytes = u32::try_from(stream.len()).unwrap_or_default();
        tile.extend_from_slice(Header { stream_bytes: stream_bytes.into(), reserved: [0; 12] }.as_bytes());
        tile.extend_from_slice(if stream.is_empty() { &content } else { &stream });
    }
}

/// The content as a stream; `None` where that would not be shorter.
fn deflate(shared: &[u8], content: &[u8]) -> Option<Vec<u8>> {
    let mut compress = Compress::new(Compression::default(), false);
    if !shared.is_empty() {
        compress.set_dictionary(shared).ok()?;
    }
    let mut stream = Vec::with_capacity(content.len());
    match compress.compress_vec(content, &mut stream, FlushCompress::Finish) {
        Ok(Status::StreamEnd) => Some(stream),
        _ => None,
    }
}

/// The content of a stream: exactly `length` bytes from exactly its bytes.
fn inflate(shared: &[u8], stream: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut decompress = Decompress::new(false);
    if !shared.is_empty() {
        decompress.set_dictionary(shared).ok()?;
    }
    let mut content = vec![0; length];
    let status = decompress.decompress(stream, &mut content, FlushDecompress::Finish).ok()?;
    let whole = decompress.total_in() == stream.len() as u64 && decompress.total_out() == length as u64;
    (status == Status::StreamEnd && whole).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    codec_core::conformance!(CODEC);

    #[test]
    fn repeated_text_gets_small_and_the_sample_helps() {
        let text: Vec<u8> =
            (0..200_000_u32).flat_map(|row| format!("row {} of the log\n", row % 977).into_bytes()).collect();
        let shared = Deflate::encode_shared(&text);
        assert_eq!(shared.len(), SAMPLE_BYTES);
        let size = |shared: &[u8]| {
            let mut tile = Vec::new();
            Deflate::encode_tile(shared, &text[50_000..66_384], &mut tile);
            tile.len()
        };
        assert!(size(&shared) < size(&[]), "{} {}", size(&shared), size(&[]));
        assert!(size(&[]) * 3 < 16_384);
    }

    #[test]
    fn a_content_of_another_length_is_refused() {
        let mut tile = Vec::new();
        Deflate::encode_tile(&[], &[1_u8; 100], &mut tile);
        for value_count in [99, 101] {
            assert!(Deflate::check_tile::<u8>(Tile { bytes: &tile, shared: &[], value_count }).is_err());
        }
    }
}
