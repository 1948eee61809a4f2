#![doc = include_str!("../SPEC.md")]
#![forbid(unsafe_code)]

mod decimal;
mod exceptions;
mod float;
mod split;

use codec_core::packing::lanes;
use codec_core::{
    AnyCodec, Codec, DeviceParameters, Kind, Layout, Order, Tile, TileError, Value, Values, ValuesMut, erased,
};
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::decimal::Decimal;
use crate::exceptions::Exceptions;
use crate::float::Float;
use crate::split::Split;

/// The codec, as registries hold it.
pub const CODEC: &dyn AnyCodec = erased::<Alp>();

/// Adaptive lossless floating point.
#[derive(Debug)]
pub struct Alp;

/// A tile whose parts are proven to be there and to fit.
#[derive(Debug)]
pub enum Metadata<'a> {
    /// Integers at an exponent.
    Decimal(DecimalTile<'a>),
    /// Left parts from a dictionary, right parts packed.
    Split(SplitTile<'a>),
}

/// A tile of scheme decimal.
#[derive(Debug)]
pub struct DecimalTile<'a> {
    reference: u64,
    exponent: i8,
    residuals: lanes::Packed<'a>,
    exceptions: Exceptions<'a>,
}

/// A tile of scheme split.
#[derive(Debug)]
pub struct SplitTile<'a> {
    reference: u64,
    right_bits: u32,
    dictionary: [u16; split::DICTIONARY_LEN],
    codes: lanes::Packed<'a>,
    residuals: lanes::Packed<'a>,
    exceptions: Exceptions<'a>,
}

const DECIMAL: u8 = 0;
const SPLIT: u8 = 1;

/// Members of the device parameters behind the bit widths 0 to 64, as cuda/alp.cuh has them.
const SPLIT_TILES: u32 = 65;
const DECIMAL_TILES: u32 = 66;
const EXCEPTIONS: u32 = 67;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    reference: U64,
    scheme: u8,
    exponent: i8,
    bit_width: u8,
    right_bits: u8,
    code_bit_width: u8,
    reserved: u8,
    exception_count: U16,
}

impl Codec for Alp {
    const ID: u16 = 5;
    const NAME: &'static str = "alp";
    type Metadata<'a, V: Value> = Metadata<'a>;
    const DEVICE_SOURCE: Option<&'static str> = Some(include_str!("../cuda/alp.cuh"));

    /// A conversion and a division a value, or a look-up.
    fn decode_bits(_: Layout) -> u32 {
        2
    }

    fn supports(layout: Layout) -> bool {
        layout.kind == Kind::Values && layout.value_width >= 32
    }

    /// Integers, too, come back bit for bit, but the integer codecs serve them better.
    fn suits(_: Layout, order: Order) -> bool {
        order == Order::Float
    }

    fn resolve_metadata<V: Value>(tile: Tile<'_>) -> Result<Metadata<'_>, TileError> {
        let (header, parts) = Header::ref_from_prefix(tile.bytes).map_err(|_| TileError::Truncated {
            needed_bytes: size_of::<Header>() as u64,
            found_bytes: tile.bytes.len() as u64,
        })?;
        check_field("reserved", header.reserved.into(), header.reserved == 0)?;
        match header.scheme {
            DECIMAL => resolve_decimal::<V>(header, parts, tile.value_count).map(Metadata::Decimal),
            SPLIT => resolve_split::<V>(header, parts, tile.value_count).map(Metadata::Split),
            scheme => Err(TileError::Field { field: "scheme", found: scheme.into() }),
        }
    }

    fn decompress_tile<V: Value>(metadata: &Metadata<'_>, values: &mut [V]) {
        match metadata {
            Metadata::Decimal(tile) => tile.decompress(values),
            Metadata::Split(tile) => tile.decompress(values),
        }
    }

    fn encode_tile<V: Value>(_: &[u8], values: &[V], tile: &mut Vec<u8>) {
        match V::erase(values) {
            Values::U32(values) => encode::<f32>(values, tile),
            Values::U64(values) => encode::<f64>(values, tile),
            // There are no such tiles: the codec does not support these widths.
            Values::U8(_) | Values::U16(_) => {}
        }
    }

    /// The set of the residuals' bit widths, and of what else occurs.
    fn device_parameters<V: Value>(tile: Tile<'_>) -> DeviceParameters {
        let (residuals, scheme, exceptions) = match &Self::resolve_metadata::<V>(tile) {
            Ok(Metadata::Decimal(tile)) => {
                (tile.residuals.bit_width(), DECIMAL_TILES, tile.exceptions.count())
            }
            Ok(Metadata::Split(tile)) => (tile.residuals.bit_width(), SPLIT_TILES, tile.exceptions.count()),
            Err(_) => return DeviceParameters::default(),
        };
        let exceptions =
            if exceptions > 0 { DeviceParameters::member(EXCEPTIONS) } else { DeviceParameters::default() };
        DeviceParameters::member(residuals).union(DeviceParameters::member(scheme)).union(exceptions)
    }
}

/// The scheme that takes fewer bits, as a sample of the tile says. Split holds everything, so there is always one.
fn encode<F: Float>(values: &[F::Bits], tile: &mut Vec<u8>) {
    let decimal = decimal::plan::<F>(values);
    if let Some(plan) = decimal.as_ref().filter(|plan| plan.is_safe) {
        return Decimal::of::<F>(values, plan.exponent).append(tile);
    }
    let split = split::plan(values);
    match decimal {
        Some(decimal) if decimal.value_bits <= split.value_bits => {
            Decimal::of::<F>(values, decimal.exponent).append(tile);
        }
        _ => Split::of(values, &split).append(tile),
    }
}

fn resolve_decimal<'a, V: Value>(
    header: &Header,
    parts: &'a [u8],
    value_count: usize,
) -> Result<DecimalTile<'a>, TileError> {
    let reference = header.reference.get();
    let limit = if V::WIDTH == 32 { f32::MAX_EXPONENT } else { f64::MAX_EXPONENT };
    check_field("reference", reference, V::from_u64(reference).to_u64() == reference)?;
    check_field("exponent", header.exponent.cast_unsigned().into(), header.exponent.unsigned_abs() <= limit)?;
    check_field("right_bits", header.right_bits.into(), header.right_bits == 0)?;
    check_field("code_bit_width", header.code_bit_width.into(), header.code_bit_width == 0)?;
    let (residuals, rest) = take_lanes::<V>(parts, value_count, header.bit_width.into())?;
    let exceptions =
        Exceptions::parse(rest, V::BYTES, usize::from(header.exception_count.get()), value_count)?;
    Ok(DecimalTile { reference, exponent: header.exponent, residuals, exceptions })
}

fn resolve_split<'a, V: Value>(
    header: &Header,
    parts: &'a [u8],
    value_count: usize,
) -> Result<SplitTile<'a>, TileError> {
    let (reference, right_bits) = (header.reference.get(), u32::from(header.right_bits));
    let width = u32::from(V::WIDTH);
    check_field("exponent", header.exponent.cast_unsigned().into(), header.exponent == 0)?;
    check_field(
        "right_bits",
        right_bits.into(),
        (width - split::MAX_LEFT_BITS..width).contains(&right_bits),
    )?;
    check_field("reference", reference, reference >> right_bits == 0)?;
    check_field("bit_width", header.bit_width.into(), u32::from(header.bit_width) <= right_bits)?;
    check_field(
        "code_bit_width",
        header.code_bit_width.into(),
        header.code_bit_width <= split::MAX_CODE_BITS,
    )?;
    let (dictionary, rest) = <[U16; split::DICTIONARY_LEN]>::ref_from_prefix(parts).map_err(|_| {
        let needed_bytes = (size_of::<Header>() + 2 * split::DICTIONARY_LEN) as u64;
        TileError::Truncated { needed_bytes, found_bytes: (size_of::<Header>() + parts.len()) as u64 }
    })?;
    let dictionary = dictionary.map(U16::get);
    let is_left = |left: u16| u32::from(left) >> (width - right_bits) == 0;
    for left in dictionary {
        check_field("dictionary", left.into(), is_left(left))?;
    }
    let (codes, rest) = take_lanes::<u8>(rest, value_count, header.code_bit_width.into())?;
    let (residuals, rest) = take_lanes::<V>(rest, value_count, header.bit_width.into())?;
    let exception_count = usize::from(header.exception_count.get());
    let exceptions = Exceptions::parse(rest, size_of::<u16>(), exception_count, value_count)?;
    for (_, left) in exceptions.iter::<u16>() {
        check_field("exception_lefts", left.into(), is_left(left))?;
    }
    Ok(SplitTile { reference, right_bits, dictionary, codes, residuals, exceptions })
}

fn check_field(field: &'static str, found: u64, is_allowed: bool) -> Result<(), TileError> {
    if is_allowed { Ok(()) } else { Err(TileError::Field { field, found }) }
}

/// Values packed in lanes, and the bytes behind them.
fn take_lanes<V: Value>(
    bytes: &[u8],
    value_count: usize,
    bit_width: u32,
) -> Result<(lanes::Packed<'_>, &[u8]), TileError> {
    let packed = lanes::Packed::parse::<V>(bytes, value_count, bit_width)?;
    Ok((packed, bytes.get(lanes::packed_bytes(value_count, bit_width)..).unwrap_or_default()))
}

impl DecimalTile<'_> {
    fn decompress<V: Value>(&self, values: &mut [V]) {
        self.residuals.unpack(V::from_u64(self.reference), values);
        match V::erase_mut(values) {
            ValuesMut::U32(integers) => decimal::to_floats::<f32>(integers, self.exponent),
            ValuesMut::U64(integers) => decimal::to_floats::<f64>(integers, self.exponent),
            ValuesMut::U8(_) | ValuesMut::U16(_) => {}
        }
        for (position, value) in self.exceptions.iter::<V>() {
            if let Some(place) = values.get_mut(position) {
                *place = value;
            }
        }
    }
}

impl SplitTile<'_> {
    fn decompress<V: Value>(&self, values: &mut [V]) {
        self.residuals.unpack(V::from_u64(self.reference), values);
        split::join(values, self.right_bits, &self.dictionary, &self.codes);
        let right_mask = (1_u64 << self.right_bits) - 1;
        for (position, left) in self.exceptions.iter::<u16>() {
            if let Some(place) = values.get_mut(position) {
                let right = place.to_u64() & right_mask;
                *place = V::from_u64(u64::from(left) << self.right_bits | right);
            }
        }
    }
}

#[cfg(test)]
mod tests;
