//! The trait that a codec author implements, and the form of it that the rest of the program calls.

use std::marker::PhantomData;

use format_spec::{Layout, Order};

use crate::{TileError, Value, Values, ValuesMut, with_values};

/// One encoded tile.
#[derive(Debug, Clone, Copy)]
pub struct Tile<'a> {
    /// The tile's bytes: metadata first, then payload; may end with padding.
    pub bytes: &'a [u8],
    /// What the block keeps for all its tiles.
    pub shared: &'a [u8],
    /// Values in the tile, at least 1; fewer than the tile size only in a block's last tile. For the kind bytes a value is a byte.
    pub value_count: usize,
}

/// A codec: how a tile of values becomes bytes, and back by two hooks.
///
/// Implement it on an empty type and name that type's [`erased`] form `CODEC` in the crate's root. Fixed-width values come as `V` = u8, u16, u32 or u64;
/// a segment of a string or binary column (kind bytes) comes as `V` = u8. Device code (`cuda/<name>.cuh`) has the same two hooks.
///
/// Nothing here may panic, whatever the bytes.
pub trait Codec: Send + Sync + 'static {
    /// The id in block headers; from [`format_spec::FIRST_PRIVATE_CODEC`] on for private codecs.
    const ID: u16;
    /// The name on the command line and in reports.
    const NAME: &'static str;
    /// What a tile's own header says, proven: decoding from it cannot fail.
    type Metadata<'a, V: Value>;
    /// The device half: CUDA C++ with the same two hooks, as `codec::<name>` (the name with `_` for `-`); `None` where the codec has none. The contract is in
    /// `gpu-decode/cuda/`; `codec-plain/cuda/plain.cuh` is the template.
    const DEVICE_SOURCE: Option<&'static str> = None;
    /// Whether the device half also encodes, by `choose_metadata`, `tile_words`, `encode_tile` and its `EncodeScratch`.
    const DEVICE_ENCODES: bool = false;

    /// What decoding a value costs beyond reading its bytes, in bits a value that a scan could read from memory in the same time. The automatic choice weighs it against size.
    fn decode_bits(layout: Layout) -> u32 {
        let _ = layout;
        0
    }

    /// Which values the codec can encode.
    fn supports(layout: Layout) -> bool;

    /// Whether the automatic choice should try the codec on values that compare by `order`: a codec for floats leaves integers alone. Only a hint: the codec
    /// encodes whatever it supports.
    fn suits(layout: Layout, order: Order) -> bool {
        let _ = (layout, order);
        true
    }

    /// First hook: reads the tile's own header and proves that the tile's bytes suffice for it.
    ///
    /// # Errors
    /// Exactly the bytes from which [`Codec::decompress_tile`] could not decode within bounds.
    fn resolve_metadata<V: Value>(tile: Tile<'_>) -> Result<Self::Metadata<'_, V>, TileError>;

    /// Second hook: decodes the tile. `values` has the tile's value_count, and every one of them is written.
    fn decompress_tile<V: Value>(metadata: &Self::Metadata<'_, V>, values: &mut [V]);

    /// Appends the encoding of `values` (at least one, at most a tile) to `tile`, which is empty. The same values give the same bytes.
    fn encode_tile<V: Value>(shared: &[u8], values: &[V], tile: &mut Vec<u8>);

    /// Encodes one tile of a block after the other, each as [`Codec::encode_tile`] does. For codecs that find something out from `shared` first, once for all tiles.
    fn encoder<'a, V: Value>(shared: &'a [u8]) -> TileEncoder<'a, &'a [V]> {
        Box::new(move |values, tile| Self::encode_tile(shared, values, tile))
    }

    /// What to keep for all tiles of a block of `values`: tables. None for most codecs.
    fn encode_shared<V: Value>(values: &[V]) -> Vec<u8> {
        let _ = values;
        Vec::new()
    }

    /// Proves what the block keeps for all tiles, once a block.
    ///
    /// # Errors
    /// Bytes that [`Codec::encode_shared`] cannot have written.
    fn check_shared(shared: &[u8], layout: Layout) -> Result<(), TileError> {
        let _ = layout;
        if shared.is_empty() { Ok(()) } else { Err(TileError::Shared { reason: "this codec keeps none" }) }
    }

    /// The contract of untrusted bytes: accepts exactly the tiles from which the hooks, on the host or on a device, decode within bounds. Resolving the metadata proves
    /// that here; a codec that has a cheaper proof for the host hooks than for the device's writes its own.
    ///
    /// # Errors
    /// A tile that must not be decoded.
    fn check_tile<V: Value>(tile: Tile<'_>) -> Result<(), TileError> {
        Self::resolve_metadata::<V>(tile).map(drop)
    }

    /// What occurs in `tile` that the device half can be specialized for, as a set of up to 128 members that only the codec understands. The union over all tiles of a column
    /// becomes the device half's template constants; the empty set stands for anything.
    fn device_parameters<V: Value>(tile: Tile<'_>) -> DeviceParameters {
        let _ = tile;
        DeviceParameters::default()
    }
}

/// Appends the encoding of a tile's values to bytes that are empty.
pub type TileEncoder<'a, Values> = Box<dyn FnMut(Values, &mut Vec<u8>) + 'a>;

/// A codec's set of what occurs in tiles, opaque to everyone else: see [`Codec::device_parameters`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceParameters {
    /// Members 0 to 63.
    pub low: u64,
    /// Members 64 to 127.
    pub high: u64,
}

impl DeviceParameters {
    /// The set of `member` alone; empty for members from 128 on.
    #[must_use]
    pub const fn member(member: u32) -> Self {
        match member {
            0..64 => Self { low: 1 << member, high: 0 },
            64..128 => Self { low: 0, high: 1 << (member - 64) },
            _ => Self { low: 0, high: 0 },
        }
    }

    /// All members of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self { low: self.low | other.low, high: self.high | other.high }
    }

    /// Whether nothing is known.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.low == 0 && self.high == 0
    }
}

/// A [`Codec`] without type parameters: what registries hold and blocks call.
pub trait AnyCodec: Send + Sync {
    /// [`Codec::ID`].
    fn id(&self) -> u16;
    /// [`Codec::NAME`].
    fn name(&self) -> &'static str;
    /// [`Codec::decode_bits`].
    fn decode_bits(&self, layout: Layout) -> u32;
    /// [`Codec::supports`].
    fn supports(&self, layout: Layout) -> bool;
    /// [`Codec::suits`].
    fn suits(&self, layout: Layout, order: Order) -> bool;
    /// [`Codec::encode_shared`].
    fn encode_shared(&self, values: Values<'_>) -> Vec<u8>;
    /// [`Codec::encode_tile`].
    fn encode_tile(&self, shared: &[u8], values: Values<'_>, tile: &mut Vec<u8>);
    /// [`Codec::encoder`] of a block of this layout.
    fn encoder<'a>(&self, shared: &'a [u8], layout: Layout) -> TileEncoder<'a, Values<'a>>;
    /// [`Codec::check_shared`].
    ///
    /// # Errors
    /// As there.
    fn check_shared(&self, shared: &[u8], layout: Layout) -> Result<(), TileError>;
    /// [`Codec::check_tile`].
    ///
    /// # Errors
    /// As there, or a layout that the codec does not support.
    fn check_tile(&self, tile: Tile<'_>, layout: Layout) -> Result<(), TileError>;
    /// Both hooks, one after the other.
    ///
    /// # Errors
    /// As [`Codec::resolve_metadata`], or where `values` has another length than the tile.
    fn decompress_tile(&self, tile: Tile<'_>, values: ValuesMut<'_>) -> Result<(), TileError>;
    /// [`Codec::DEVICE_SOURCE`].
    fn device_source(&self) -> Option<&'static str>;
    /// [`Codec::DEVICE_ENCODES`].
    fn device_encodes(&self) -> bool;
    /// [`Codec::device_parameters`].
    fn device_parameters(&self, tile: Tile<'_>, layout: Layout) -> DeviceParameters;
}

/// The form of codec `C` that registries hold.
#[must_use]
pub const fn erased<C: Codec>() -> &'static dyn AnyCodec {
    &Erased::<C>(PhantomData)
}

struct Erased<C>(PhantomData<C>);

impl<C: Codec> AnyCodec for Erased<C> {
    fn id(&self) -> u16 {
        C::ID
    }

    fn name(&self) -> &'static str {
        C::NAME
    }

    fn decode_bits(&self, layout: Layout) -> u32 {
        C::decode_bits(layout)
    }

    fn supports(&self, layout: Layout) -> bool {
        C::supports(layout)
    }

    fn suits(&self, layout: Layout, order: Order) -> bool {
        C::suits(layout, order)
    }

    fn encode_shared(&self, values: Values<'_>) -> Vec<u8> {
        with_values!(Values, values, values => C::encode_shared(values))
    }

    fn encode_tile(&self, shared: &[u8], values: Values<'_>, tile: &mut Vec<u8>) {
        with_values!(Values, values, values => C::encode_tile(shared, values, tile));
    }

    fn encoder<'a>(&self, shared: &'a [u8], layout: Layout) -> TileEncoder<'a, Values<'a>> {
        match layout.value_width {
            8 => erased_encoder::<C, u8>(shared),
            16 => erased_encoder::<C, u16>(shared),
            32 => erased_encoder::<C, u32>(shared),
            _ => erased_encoder::<C, u64>(shared),
        }
    }

    fn check_shared(&self, shared: &[u8], layout: Layout) -> Result<(), TileError> {
        C::check_shared(shared, layout)
    }

    fn check_tile(&self, tile: Tile<'_>, layout: Layout) -> Result<(), TileError> {
        match layout.value_width {
            _ if !C::supports(layout) => Err(TileError::Layout { codec: C::NAME, layout }),
            8 => C::check_tile::<u8>(tile),
            16 => C::check_tile::<u16>(tile),
            32 => C::check_tile::<u32>(tile),
            _ => C::check_tile::<u64>(tile),
        }
    }

    fn decompress_tile(&self, tile: Tile<'_>, values: ValuesMut<'_>) -> Result<(), TileError> {
        if values.len() != tile.value_count {
            return Err(TileError::Room { value_count: tile.value_count as u64, room: values.len() as u64 });
        }
        with_values!(ValuesMut, values, values => decompress::<C, _>(tile, values))
    }

    fn device_source(&self) -> Option<&'static str> {
        C::DEVICE_SOURCE
    }

    fn device_encodes(&self) -> bool {
        C::DEVICE_ENCODES
    }

    fn device_parameters(&self, tile: Tile<'_>, layout: Layout) -> DeviceParameters {
        match layout.value_width {
            8 => C::device_parameters::<u8>(tile),
            16 => C::device_parameters::<u16>(tile),
            32 => C::device_parameters::<u32>(tile),
            _ => C::device_parameters::<u64>(tile),
        }
    }
}

fn decompress<C: Codec, V: Value>(tile: Tile<'_>, values: &mut [V]) -> Result<(), TileError> {
    let metadata = C::resolve_metadata::<V>(tile)?;
    C::decompress_tile(&metadata, values);
    Ok(())
}

fn erased_encoder<'a, C: Codec, V: Value>(shared: &'a [u8]) -> TileEncoder<'a, Values<'a>> {
    let mut encode = C::encoder::<V>(shared);
    Box::new(move |values, tile| {
        if let Some(values) = V::restore(values) {
            encode(values, tile);
        }
    })
}
