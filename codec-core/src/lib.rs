//! What a codec is, and everything that works for every codec.
//!
//! A codec is the [`Codec`] trait: above all the two hooks [`Codec::resolve_metadata`] and [`Codec::decompress_tile`]. From them come blocks
//! ([`encode_block`], [`Block`], [`CheckedBlock`]), whole buffers ([`encode_values`], [`decode_ranges`], [`take`]) and the suite that each codec
//! runs as its tests ([`macro@conformance`], feature `conformance`).
//!
//! | module | idea |
//! | --- | --- |
//! | [`value`] | the four value types, and runs of them whose type is known at run time |
//! | [`codec`] | the trait, and its form without type parameters |
//! | [`packing`] | integers of b bits: in lanes, and in a sequence |
//! | [`block`] | encode one block, prove one block, decode tiles |
//! | [`mod@choose`] | which codec a block gets |
//! | [`buffer`] | many blocks: in parallel, ranges, single values |
//! | [`registry`] | codecs by id and name |
//! | [`statistics`] | minima and maxima by order |

pub mod block;
pub mod buffer;
pub mod choose;
pub mod codec;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod error;
pub mod packing;
pub mod registry;
pub mod statistics;
pub mod value;

pub use block::{Block, CheckedBlock, EncodedBlock, encode_block};
pub use buffer::{BlockSource, EncodeOptions, decode_ranges, encode_values, take, values_per_block};
pub use choose::{Choice, Trial, choose};
pub use codec::{AnyCodec, Codec, DeviceParameters, Tile, TileEncoder, erased};
pub use error::{BlockError, BufferError, EncodeError, TileError};
pub use format_spec::{Kind, Layout, Order};
pub use registry::Registry;
pub use value::{OwnedValues, Value, Values, ValuesMut};

// Values are read and written as they lie in memory, which is the format's byte order only here.
const _: () = assert!(cfg!(target_endian = "little"), "cb2t needs a little-endian machine");
