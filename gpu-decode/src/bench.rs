//! What `cb2t bench decode` measures: columns decoded into device memory, or decoded and summed, against the limits of the device's memory, measured in the same run.

use codec_core::{AnyCodec, CheckedBlock, Registry, Value};
use format_spec::Order;
use zerocopy::IntoBytes;

use crate::check::{check_all, encode_with};
use crate::data::Data;
use crate::decode::{Decoder, PARTIAL_SUMS};
use crate::encode::{EncodeOptions, Encoder};
use crate::program::{Argument, Origin, Resources};
use crate::source::{Part, Work, join};
use crate::{Device, DeviceColumn, DeviceMemory, GpuError, LaunchShape};

/// Values that are made and encoded; longer columns repeat their blocks. Far more than the second-level cache holds.
const DISTINCT_VALUES: usize = 1 << 26;
/// Uncompressed bytes a block, as files have by default.
const BLOCK_BYTES: u32 = 2 << 20;

/// What the device's memory can do, in GB/s of bytes moved.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Limits {
    /// Bytes read and bytes written by the driver's copy.
    pub copy_gb_per_s: f64,
    /// Bytes read by a kernel that does nothing else.
    pub read_gb_per_s: f64,
    /// Bytes written by the driver's fill.
    pub write_gb_per_s: f64,
}

/// What to measure.
#[derive(Clone)]
pub struct Task {
    /// The codec of all blocks but constant ones.
    pub codec: &'static dyn AnyCodec,
    /// Bits a value.
    pub value_width: u8,
    /// What the values are like.
    pub data: Data,
    /// Values of the column.
    pub value_count: usize,
    /// Times that each kernel is timed.
    pub repetitions: u32,
    /// Shapes and compiler options, each measured; none stands for the default.
    pub variants: Vec<Variant>,
}

/// How a kernel is compiled and launched.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Variant {
    /// Threads and groups.
    pub shape: LaunchShape,
    /// Neighbouring tiles a group when decoding into memory.
    pub tiles_per_group: u32,
    /// Neighbouring tiles a group when summing.
    pub tiles_per_sum: u32,
    /// Options for the compiler.
    pub options: Vec<String>,
}

impl Variant {
    /// The default for `work` on `column`.
    #[must_use]
    pub fn default_for(column: &DeviceColumn, work: Work) -> Self {
        let shape = LaunchShape::default_for(column.column_type(), work);
        Self { shape, tiles_per_group: 1, tiles_per_sum: 8, options: Vec::new() }
    }
}

/// One kernel measured.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Row {
    /// The codec's name.
    pub codec: &'static str,
    /// Bits a value.
    pub value_width: u8,
    /// What the values are like.
    pub data: Data,
    /// `decode` (into device memory) or `sum` (nothing written).
    pub kernel: &'static str,
    /// How it was compiled and launched.
    pub variant: Variant,
    /// Values of the column.
    pub value_count: u64,
    /// Bytes that the kernel reads: tiles and the table of their places.
    pub read_bytes: u64,
    /// Bytes that it writes.
    pub written_bytes: u64,
    /// Median of the repetitions.
    pub milliseconds: f64,
    /// Decoded bytes in GB/s.
    pub output_gb_per_s: f64,
    /// Bytes read and written in GB/s.
    pub moved_gb_per_s: f64,
    /// Those as a fraction of the copy's limit (decode) or the read limit (sum).
    pub of_limit: f64,
    /// Values a second, 10^9.
    pub giga_values_per_s: f64,
    /// Registers, spills, occupancy.
    pub resources: Resources,
    /// Milliseconds until the program was there, and where from.
    pub program_ms: f64,
    /// Compiled or read from disk.
    pub program_origin: Origin,
}

/// Measures copy, read and fill over `bytes` bytes.
///
/// # Errors
/// Too little memory, or of the device.
pub fn limits(device: &Device, bytes: usize, repetitions: u32) -> Result<Limits, GpuError> {
    let bytes = bytes / 16 * 16;
    let mut from = DeviceMemory::filled(device, bytes, 0x5A)?;
    let mut to = DeviceMemory::filled(device, bytes, 0)?;
    let text = join(&[], &[Part { name: "bandwidth.cuh", text: include_str!("../cuda/bandwidth.cuh") }]);
    let read = device.program(&text, &[])?.kernel(device, "read_all")?;
    let words = bytes as u64 / 16;
    let gb_per_s = |bytes: usize, milliseconds: f64| to_f64(bytes as u64) / milliseconds / 1e6;
    let copy = median(repetitions, || device.time(|| from.copy_to(&mut to, bytes)))?;
    let arguments =
        [Argument::Address(from.address()), Argument::U64(words), Argument::Address(to.address())];
    let blocks = device.info().multiprocessor_count * 8;
    // SAFETY: the parameters of `read_all`: `words` words of 16 bytes at `from`, and at most one u64 written to `to`; both live until after the synchronization in `time`.
    let read = median(repetitions, || device.time(|| unsafe { read.launch(blocks, 256, &arguments) }))?;
    let write = median(repetitions, || device.time(|| from.fill(1)))?;
    Ok(Limits {
        copy_gb_per_s: gb_per_s(2 * bytes, copy),
        read_gb_per_s: gb_per_s(bytes, read),
        write_gb_per_s: gb_per_s(bytes, write),
    })
}

/// Measures one task in all its variants. What is decoded and summed is compared with what was encoded.
///
/// # Errors
/// A value that differs, or whatever keeps the device from decoding.
pub fn measure(
    device: &Device,
    registry: &Registry,
    limits: Limits,
    task: &Task,
    seed: u64,
) -> Result<Vec<Row>, GpuError> {
    match task.value_width {
        8 => measure_values::<u8>(device, registry, limits, task, seed),
        16 => measure_values::<u16>(device, registry, limits, task, seed),
        32 => measure_values::<u32>(device, registry, limits, task, seed),
        _ => measure_values::<u64>(device, registry, limits, task, seed),
    }
}

fn measure_values<V: Value>(
    device: &Device,
    registry: &Registry,
    limits: Limits,
    task: &Task,
    seed: u64,
) -> Result<Vec<Row>, GpuError> {
    let values = task.data.generate::<V>(DISTINCT_VALUES.min(task.value_count), seed);
    let encoded = encode_with(&values, task.codec, registry, 1024, BLOCK_BYTES)
        .map_err(|error| GpuError::Driver { what: "encoding", message: error.to_string() })?;
    let distinct = check_all(&encoded, registry)?;
    let repeats = task.value_count.div_ceil(values.len()).max(1);
    let blocks: Vec<CheckedBlock<'_>> =
        distinct.iter().copied().cycle().take(distinct.len() * repeats).collect();
    let column = DeviceColumn::upload(device, &blocks, registry)?;
    let mut out = DeviceMemory::allocate(device, values.len() * repeats * V::BYTES)?;
    let mut rows = Vec::new();
    let defaults = [Work::Decode, Work::Sum].map(|work| (work, Variant::default_for(&column, work)));
    let given = task
        .variants
        .iter()
        .flat_map(|variant| [Work::Decode, Work::Sum].map(|work| (work, variant.clone())));
    let all: Vec<(Work, Variant)> = if task.variants.is_empty() { defaults.into() } else { given.collect() };
    for (work, variant) in &all {
        let mut decoder = Decoder::with_options(&column, variant.shape, &variant.options)?;
        let measured = Measured { task, variant, limits, column: &column, value_bytes: V::BYTES as u64 };
        rows.push(match work {
            Work::Decode => {
                decoder.tiles_per_group = variant.tiles_per_group;
                measured.decode(device, &decoder, &values, &mut out)?
            }
            Work::Sum => {
                decoder.tiles_per_group = variant.tiles_per_sum;
                measured.sum(device, &decoder, &values, repeats as u64)?
            }
        });
    }
    Ok(rows)
}

/// Encoding on the device, measured.
#[derive(Debug, Clone, serde::Serialize)]
pub struct EncodeRow {
    /// The codec's name.
    pub codec: &'static str,
    /// What the values are like; 32 bits each.
    pub data: Data,
    /// Values of the column.
    pub value_count: u64,
    /// Bytes of the blocks.
    pub encoded_bytes: u64,
    /// Median of the repetitions, all kernels together.
    pub milliseconds: f64,
    /// Bytes of values in GB/s.
    pub input_gb_per_s: f64,
}

/// Measures encoding a column of u32 on the device. The blocks are compared with the host's.
///
/// # Errors
/// A block that differs, or whatever keeps the device from encoding.
pub fn measure_encode(
    device: &Device,
    registry: &Registry,
    codec: &'static dyn AnyCodec,
    data: Data,
    value_count: usize,
    repetitions: u32,
    seed: u64,
) -> Result<EncodeRow, GpuError> {
    let tiles_per_block = BLOCK_BYTES / 4 / 1024;
    let options = EncodeOptions { codec, order: Order::Unsigned, tile_size: 1024, tiles_per_block };
    let distinct = data.generate::<u32>(DISTINCT_VALUES.min(value_count), seed);
    let mut values = DeviceMemory::allocate(device, value_count * 4)?;
    for offset in (0..value_count).step_by(distinct.len().max(1)) {
        let part = distinct.get(..distinct.len().min(value_count - offset)).unwrap_or_default();
        values.write(offset * 4, part.as_bytes())?;
    }
    let mut encoder = Encoder::new(device, 32, value_count as u64, options)?;
    encoder.encode(&values)?;
    let host = encode_with(&distinct, codec, registry, 1024, BLOCK_BYTES)
        .map_err(|error| GpuError::Driver { what: "encoding", message: error.to_string() })?;
    for (index, (device, host)) in encoder.download()?.iter().zip(&host).enumerate() {
        if *device != host.bytes {
            let place = format!("encoding with codec {}, {data}: block {index}", codec.name());
            let at = device.iter().zip(&host.bytes).position(|(device, host)| device != host).unwrap_or(0);
            let byte = |bytes: &[u8]| bytes.get(at).copied().unwrap_or(0).into();
            return Err(GpuError::Differs {
                place,
                index: at as u64,
                found: byte(device),
                expected: byte(&host.bytes),
            });
        }
    }
    let milliseconds = median(repetitions, || device.time(|| encoder.encode(&values)))?;
    Ok(EncodeRow {
        codec: codec.name(),
        data,
        value_count: value_count as u64,
        encoded_bytes: encoder.encoded_bytes()?,
        milliseconds,
        input_gb_per_s: to_f64(value_count as u64 * 4) / milliseconds / 1e6,
    })
}

struct Measured<'a> {
    task: &'a Task,
    variant: &'a Variant,
    limits: Limits,
    column: &'a DeviceColumn,
    value_bytes: u64,
}

impl Measured<'_> {
    fn decode<V: Value>(
        &self,
        device: &Device,
        decoder: &Decoder<'_>,
        values: &[V],
        out: &mut DeviceMemory,
    ) -> Result<Row, GpuError> {
        let rows = 0..self.column.value_count();
        out.fill(0xA5)?;
        decoder.decode(rows.clone(), out)?;
        // The last repetition: all before it must have been passed.
        let mut decoded = vec![V::default(); values.len()];
        out.read(out.len() - size_of_val(values), decoded.as_mut_bytes())?;
        if let Some(index) = decoded.iter().zip(values).position(|(decoded, value)| decoded != value) {
            let of = |values: &[V]| values.get(index).map_or(0, |value| value.to_u64());
            return Err(self.differs("decode", index as u64, of(&decoded), of(values)));
        }
        let milliseconds =
            median(self.task.repetitions, || device.time(|| decoder.decode(rows.clone(), out)))?;
        let written_bytes = self.column.value_count() * self.value_bytes;
        self.row(device, decoder, Work::Decode, milliseconds, written_bytes, self.limits.copy_gb_per_s)
    }

    fn sum<V: Value>(
        &self,
        device: &Device,
        decoder: &Decoder<'_>,
        values: &[V],
        repeats: u64,
    ) -> Result<Row, GpuError> {
        let rows = 0..self.column.value_count();
        let expected =
            values.iter().fold(0, |sum: u64, value| sum.wrapping_add(value.to_u64())).wrapping_mul(repeats);
        let found = decoder.sum(rows.clone())?;
        if found != expected {
            return Err(self.differs("sum", 0, found, expected));
        }
        let mut sum = DeviceMemory::filled(device, 8 * PARTIAL_SUMS, 0)?;
        let milliseconds =
            median(self.task.repetitions, || device.time(|| decoder.add_sums(rows.clone(), &mut sum)))?;
        self.row(device, decoder, Work::Sum, milliseconds, 0, self.limits.read_gb_per_s)
    }

    fn row(
        &self,
        device: &Device,
        decoder: &Decoder<'_>,
        kernel: Work,
        milliseconds: f64,
        written_bytes: u64,
        limit: f64,
    ) -> Result<Row, GpuError> {
        let value_count = self.column.value_count();
        let read_bytes = self.column.read_bytes();
        let moved_gb_per_s = to_f64(read_bytes + written_bytes) / milliseconds / 1e6;
        let program = decoder.whole_tiles(kernel)?;
        Ok(Row {
            codec: self.task.codec.name(),
            value_width: self.task.value_width,
            data: self.task.data,
            kernel: kernel.kernel(),
            variant: self.variant.clone(),
            value_count,
            read_bytes,
            written_bytes,
            milliseconds,
            output_gb_per_s: to_f64(value_count * self.value_bytes) / milliseconds / 1e6,
            moved_gb_per_s,
            of_limit: moved_gb_per_s / limit,
            giga_values_per_s: to_f64(value_count) / milliseconds / 1e6,
            resources: program
                .kernel(device, kernel.kernel())?
                .resources(self.variant.shape.threads_per_block)?,
            program_ms: program.milliseconds(),
            program_origin: program.origin(),
        })
    }

    fn differs(&self, kernel: &str, index: u64, found: u64, expected: u64) -> GpuError {
        let Task { codec, value_width, data, .. } = self.task;
        GpuError::Differs {
            place: format!("{kernel} of codec {}, {value_width} bits, {data}", codec.name()),
            index,
            found,
            expected,
        }
    }
}

/// The median of `repetitions` runs after three that are not counted.
fn median(repetitions: u32, mut run: impl FnMut() -> Result<f64, GpuError>) -> Result<f64, GpuError> {
    for _ in 0..3 {
        run()?;
    }
    let mut all = (0..repetitions.max(1)).map(|_| run()).collect::<Result<Vec<f64>, _>>()?;
    all.sort_by(f64::total_cmp);
    Ok(all.get(all.len() / 2).copied().unwrap_or_default())
}

/// Counts of bytes and values are far below 2^53.
#[allow(clippy::cast_precision_loss)]
fn to_f64(count: u64) -> f64 {
    count as f64
}
