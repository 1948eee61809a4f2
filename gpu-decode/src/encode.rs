//! Encoding on the device: a column in device memory becomes blocks in device memory, byte for byte those that the host writes.

use codec_core::{AnyCodec, DeviceParameters};
use cudarc::driver::DeviceRepr;
use format_spec::{Layout, Order};
use zerocopy::{FromBytes, IntoBytes};

use crate::program::Argument;
use crate::source::{CodecInUse, ColumnType, Part, join};
use crate::{Device, DeviceMemory, GpuError};

/// The kernels' bodies.
pub const ENCODE: Part<'_> = Part { name: "encode.cuh", text: include_str!("../cuda/encode.cuh") };
/// Threads a thread block of all encoding kernels.
const THREADS: u32 = 128;
/// Bytes of `cb2t::TilePlan` and `cb2t::BlockPlan` of cuda/encode.cuh.
const TILE_PLAN_BYTES: usize = 40;
const BLOCK_PLAN_BYTES: usize = 40;
/// As `cb2t::TOO_LONG_BYTES` of cuda/encode.cuh: what stands for the length of a block that is longer than blocks may be.
const TOO_LONG_BYTES: u64 = 1 << 48;

/// How a column is to be encoded.
#[derive(Clone, Copy)]
pub struct EncodeOptions {
    /// The codec of all blocks but constant ones.
    pub codec: &'static dyn AnyCodec,
    /// How the statistics compare: none, unsigned or signed.
    pub order: Order,
    /// Values a tile: 512 or 1024.
    pub tile_size: u32,
    /// Tiles in every block but the last.
    pub tiles_per_block: u32,
}

/// `cb2t::EncodeJob` of cuda/encode.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct EncodeJob {
    value_count: u64,
    tile_size: u32,
    tiles_per_block: u32,
    tile_count: u32,
    block_count: u32,
    codec_id: u32,
    order: u32,
    sign: u64,
}

// SAFETY: plain numbers in C layout, as `cb2t::EncodeJob` has them.
unsafe impl DeviceRepr for EncodeJob {}

/// Kernels and memory to encode columns of one length: made once, used for any number of columns.
pub struct Encoder {
    device: Device,
    job: EncodeJob,
    program: crate::Program,
    tiles: DeviceMemory,
    blocks: DeviceMemory,
    end: DeviceMemory,
    checksum_tables: DeviceMemory,
    out: DeviceMemory,
    value_bytes: u64,
}

impl Encoder {
    /// An encoder for columns of `value_count` values of `value_width` bits.
    ///
    /// # Errors
    /// A codec that does not encode such values on a device, no values or too many, statistics as floats, or too little device memory.
    pub fn new(
        device: &Device,
        value_width: u8,
        value_count: u64,
        options: EncodeOptions,
    ) -> Result<Self, GpuError> {
        let EncodeOptions { codec, order, tile_size, tiles_per_block } = options;
        let source = codec.device_source().filter(|_| codec.device_encodes());
        let source = source.ok_or(GpuError::NoDeviceCode { codec: codec.name() })?;
        let layout = Layout::values(value_width);
        let fits = |count: u64| u32::try_from(count).ok().filter(|&count| count > 0 && count < 1 << 31);
        let tile_count = fits(value_count.div_ceil(u64::from(tile_size.max(1))));
        let possible = codec.supports(layout) && matches!(tile_size, 512 | 1024) && order != Order::Float;
        let (Some(tile_count), true, Some(_)) = (tile_count, possible, fits(tiles_per_block.into())) else {
            return Err(GpuError::Encode { value_count, value_width, tile_size, tiles_per_block });
        };
        let block_count = tile_count.div_ceil(tiles_per_block);
        let job = EncodeJob {
            value_count,
            tile_size,
            tiles_per_block,
            tile_count,
            block_count,
            codec_id: codec.id().into(),
            order: order as u32,
            sign: if order == Order::Signed { 1 << (value_width - 1) } else { 0 },
        };
        let column = ColumnType {
            value_width,
            tile_size,
            codecs: vec![CodecInUse {
                codec: Some((codec.name(), source)),
                parameters: DeviceParameters::default(),
            }],
            shared: false,
        };
        let allocate = |bytes: usize| DeviceMemory::allocate(device, bytes);
        let mut checksum_tables = allocate(size_of_val(&checksum_tables()))?;
        checksum_tables.write(0, self::checksum_tables().as_bytes())?;
        Ok(Self {
            device: device.clone(),
            job,
            program: device.program(&encode_program(&column), &[])?,
            tiles: allocate(tile_count as usize * TILE_PLAN_BYTES)?,
            blocks: allocate(block_count as usize * BLOCK_PLAN_BYTES)?,
            end: allocate(8)?,
            checksum_tables,
            out: allocate(0)?,
            value_bytes: u64::from(value_width / 8),
        })
    }

    /// Encodes the values at the beginning of `values`. Waits until the blocks' length is known, which is the room that they get, and enqueues the rest.
    ///
    /// # Errors
    /// Fewer values than the encoder is for, too little device memory, or an error of the device.
    pub fn encode(&mut self, values: &DeviceMemory) -> Result<(), GpuError> {
        let (value_count, room) = (self.job.value_count, values.len() as u64 / self.value_bytes);
        if room < value_count {
            return Err(GpuError::OutOfRange { start: 0, end: value_count, value_count, room });
        }
        let job = Argument::EncodeJob(self.job);
        let address = |memory: &DeviceMemory| Argument::Address(memory.address());
        let (values, tables) = (address(values), address(&self.checksum_tables));
        let [tiles, blocks, end] = [&self.tiles, &self.blocks, &self.end].map(address);
        let warps = THREADS / 32;
        let each_tile = self.job.tile_count.div_ceil(warps);
        let each_block = self.job.block_count.div_ceil(warps);
        self.launch("measure_tiles", each_tile, &[job, values, tiles])?;
        self.launch("lay_out_blocks", each_block, &[job, tiles, blocks])?;
        self.launch("place_blocks", 1, &[job, blocks, end])?;
        let encoded_bytes = self.encoded_bytes()?;
        if encoded_bytes >= TOO_LONG_BYTES {
            let EncodeJob { value_count, tile_size, tiles_per_block, .. } = self.job;
            let value_width = u8::try_from(self.value_bytes * 8).unwrap_or(u8::MAX);
            return Err(GpuError::Encode { value_count, value_width, tile_size, tiles_per_block });
        }
        let encoded_bytes = usize::try_from(encoded_bytes).unwrap_or(usize::MAX);
        if self.out.len() < encoded_bytes {
            self.out = DeviceMemory::allocate(&self.device, 0)?;
            self.out = DeviceMemory::allocate(&self.device, encoded_bytes)?;
        }
        let out = address(&self.out);
        // Enough to fill the device; each warp then takes many tiles, for which the tables are loaded once.
        let resident = (self.device.info().multiprocessor_count * 16).min(each_tile);
        self.launch("write_tiles", resident, &[job, values, tiles, blocks, tables, out])?;
        self.launch("write_headers", each_block, &[job, blocks, tables, out])
    }

    fn launch(
        &self,
        name: &'static str,
        thread_blocks: u32,
        arguments: &[Argument<'_>],
    ) -> Result<(), GpuError> {
        let threads = if name == "place_blocks" { 32 } else { THREADS };
        let kernel = self.program.kernel(&self.device, name)?;
        // SAFETY: `encode` gives the kernels' parameters in their order (`encode_program`). They read `value_count` values, which `values` was found to have, and write plans for all tiles
        // and blocks, for which `new` has allocated, and blocks, whose length `place_blocks` has found before `encode` made room for it. Nothing changes the values in between: `encode`
        // borrows them until all kernels are enqueued, and they run in order.
        unsafe { kernel.launch(thread_blocks, threads, arguments) }
    }

    /// The blocks of the last [`Encoder::encode`], copied to the host.
    ///
    /// # Errors
    /// An error of the device.
    pub fn download(&self) -> Result<Vec<Vec<u8>>, GpuError> {
        let mut plans = vec![0_u8; self.blocks.len()];
        self.blocks.read(0, &mut plans)?;
        let number = |bytes: &[u8], at: usize| {
            let field = bytes.get(at..at + 8).and_then(|field| u64::read_from_bytes(field).ok());
            usize::try_from(field.unwrap_or_default()).unwrap_or(usize::MAX)
        };
        let place = |plan: &[u8]| (number(plan, 0), number(plan, 32) & 0xFFFF_FFFF);
        plans
            .chunks_exact(BLOCK_PLAN_BYTES)
            .map(place)
            .map(|(offset, bytes)| {
                let mut block = vec![0; bytes.min(self.out.len())];
                self.out.read(offset, &mut block)?;
                Ok(block)
            })
            .collect()
    }

    /// Bytes of all blocks, each aligned as in a file, after the last [`Encoder::encode`].
    ///
    /// # Errors
    /// An error of the device.
    pub fn encoded_bytes(&self) -> Result<u64, GpuError> {
        let mut bytes = [0; 8];
        self.end.read(0, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// The encoding kernels for columns of this type, whose first codec encodes.
#[must_use]
pub fn encode_program(column: &ColumnType) -> String {
    let (value, items) = (column.value(), column.tile_size / 32);
    let codec = column.codecs.first().map(|codec| codec.cuda(value)).unwrap_or_default();
    let kernel = |name: &str, template: &str, parameters: &str, arguments: &str| {
        format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}(cb2t::EncodeJob job, {parameters}) {{\n  cb2t::{name}{template}(job, {arguments});\n}}\n"
        )
    };
    let tiles = format!("<{codec}, {value}, {items}, {THREADS}>");
    let blocks = format!("<{value}, {THREADS}>");
    let kernels = [
        kernel(
            "measure_tiles",
            &tiles,
            &format!("const {value}* values, cb2t::TilePlan* tiles"),
            "values, tiles",
        ),
        kernel("lay_out_blocks", &blocks, "cb2t::TilePlan* tiles, cb2t::BlockPlan* blocks", "tiles, blocks"),
        kernel("place_blocks", "", "cb2t::BlockPlan* blocks, u64* end", "blocks, end"),
        kernel(
            "write_tiles",
            &tiles,
            &format!(
                "const {value}* values, const cb2t::TilePlan* tiles, const cb2t::BlockPlan* blocks, const cb2t::ChecksumTables* tables, u8* out"
            ),
            "values, tiles, blocks, tables, out",
        ),
        kernel(
            "write_headers",
            &blocks,
            "const cb2t::BlockPlan* blocks, const cb2t::ChecksumTables* tables, u8* out",
            "blocks, tables, out",
        ),
    ];
    join(&[column], &[ENCODE, Part { name: "encode.cu", text: &kernels.concat() }])
}

/// The CRC-32's generator, reflected: the coefficient of x^31 is the lowest bit.
const GENERATOR: u32 = 0xEDB8_8320;

/// `cb2t::ChecksumTables` of cuda/encode.cuh.
#[must_use]
pub fn checksum_tables() -> [u32; 4 * 256 + 32] {
    let times_1024 = power(1024);
    let mut tables = [0; 4 * 256 + 32];
    let (products, to_end) = tables.split_at_mut(4 * 256);
    for (byte, shift) in [0, 8, 16, 24].into_iter().enumerate() {
        for (value, product) in (0_u32..).zip(products.iter_mut().skip(byte * 256).take(256)) {
            *product = polynomial_product(value << shift, times_1024);
        }
    }
    for (lane, factor) in (0_u32..).zip(to_end) {
        *factor = power(32 * (32 - lane));
    }
    tables
}

/// x^exponent modulo the generator.
fn power(exponent: u32) -> u32 {
    // x^0 is the highest bit.
    (0..exponent).fold(1 << 31, |power, _| times_x(power))
}

const fn times_x(polynomial: u32) -> u32 {
    (polynomial >> 1) ^ (if polynomial & 1 == 1 { GENERATOR } else { 0 })
}

fn polynomial_product(left: u32, right: u32) -> u32 {
    let mut multiple = right;
    let mut product = 0;
    for bit in (0..32).rev() {
        if left >> bit & 1 == 1 {
            product ^= multiple;
        }
        multiple = times_x(multiple);
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warps_way_to_the_checksum_is_crc_32() {
        let tables = checksum_tables();
        let (products, to_end) = tables.split_at(1024);
        for count in [1, 15, 31, 32, 33, 100] {
            let words: Vec<u32> = (0..count).map(|word: u32| word.wrapping_mul(0x9E37_79B9)).collect();
            let before = count.next_multiple_of(32) - count;
            let mut sums = [0_u32; 32];
            for row in 0..count.div_ceil(32) {
                for (lane, sum) in (0..).zip(&mut sums) {
                    let bytes = sum.to_le_bytes();
                    *sum = (0..4).fold(0, |all, byte| all ^ products[byte * 256 + usize::from(bytes[byte])]);
                    let place = row * 32 + lane;
                    if place >= before {
                        *sum ^= words[(place - before) as usize];
                    }
                    if place == before {
                        *sum ^= u32::MAX;
                    }
                }
            }
            let register =
                sums.iter().zip(to_end).fold(0, |all, (&sum, &factor)| all ^ polynomial_product(sum, factor));
            assert_eq!(!register, crc32fast::hash(words.as_bytes()), "{count} words");
        }
    }
}
