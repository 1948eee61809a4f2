#![doc = include_str!("../SPEC.md")]
#![forbid(unsafe_code)]

mod block;
mod error;
mod file;
mod footer;
mod layout;
mod section;

pub use block::{BlockHeader, BlockView, MAX_BLOCK_BYTES, TILE_ALIGNMENT, block_checksum};
pub use error::FormatError;
pub use file::{FILE_HEADER_BYTES, FileHeader, TRAILER_BYTES, Trailer};
pub use footer::{ColumnEntry, Footer, FooterHeader, footer_bytes};
pub use layout::{CONSTANT_BLOCK, Encoding, FIRST_PRIVATE_CODEC, Kind, Layout, Order, Role, is_tile_size};
pub use section::{
    BlockEntry, BufferEntry, ColumnSection, DictionaryEntry, NO_DICTIONARY, NodeChunk, SectionHeader,
    section_bytes,
};

/// The layout version that this crate writes and reads.
pub const FORMAT_VERSION: u16 = 0;

/// Blocks, column sections and the footer begin at multiples of this many bytes.
pub const FILE_ALIGNMENT: u64 = 64;

/// The format's checksum of one run of bytes: CRC-32 of ISO-HDLC, as `zlib.crc32` computes it.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The checksum of several runs of bytes as if they were one.
#[must_use]
pub fn checksum_of(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// `bytes` rounded up to a multiple of `alignment`, a power of two; `None` past the end of u64.
#[must_use]
pub fn align(bytes: u64, alignment: u64) -> Option<u64> {
    bytes.checked_add(alignment - 1).map(|sum| sum & !(alignment - 1))
}

/// Whether all of `bytes` are zero, as reserved fields and padding must be.
#[must_use]
pub fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}
