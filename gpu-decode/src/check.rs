//! Whether a device decodes what the host encoded, bit for bit, over a whole registry.

use std::ops::Range;

use codec_core::{
    AnyCodec, CheckedBlock, Choice, EncodeError, EncodeOptions, EncodedBlock, Kind, Layout, Registry, Value,
    encode_values,
};
use format_spec::Order;
use rayon::prelude::*;
use zerocopy::IntoBytes;

use crate::data::Data;
use crate::decode::Decoder;
use crate::source::Work;
use crate::{Device, DeviceColumn, DeviceMemory, GpuError, LaunchShape};

/// Values of one column of the check.
const VALUE_COUNT: usize = 150_000;
/// Uncompressed bytes of its blocks: small, for many blocks.
const BLOCK_BYTES: u32 = 1 << 16;

/// What was compared.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct CheckReport {
    /// Columns uploaded.
    pub columns: u64,
    /// Columns decoded, one for each launch shape and range.
    pub decodes: u64,
    /// Values compared.
    pub values: u64,
    /// Seconds it took.
    pub seconds: f64,
}

/// Encodes random columns with every codec of `registry` in every width and both tile sizes, decodes them on `device` in every launch shape, whole and in ranges, and compares.
/// `quick` takes one shape only, for slow tools.
///
/// # Errors
/// The first difference, or whatever keeps the device from decoding.
pub fn device_matches_host(
    device: &Device,
    registry: &Registry,
    seed: u64,
    quick: bool,
) -> Result<CheckReport, GpuError> {
    let start = std::time::Instant::now();
    let mut report = CheckReport::default();
    for codec in registry.iter().filter(|codec| codec.device_source().is_some()) {
        for tile_size in [512, 1024] {
            let check = Check { device, registry, codec, tile_size, seed, quick };
            for value_width in [8, 16, 32, 64] {
                if !codec.supports(Layout::values(value_width)) {
                    continue;
                }
                match value_width {
                    8 => check.columns::<u8>(&mut report)?,
                    16 => check.columns::<u16>(&mut report)?,
                    32 => check.columns::<u32>(&mut report)?,
                    _ => check.columns::<u64>(&mut report)?,
                }
            }
        }
    }
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// Encodes with `codec` wherever it can.
///
/// # Errors
/// As [`encode_values`].
pub fn encode_with<V: Value>(
    values: &[V],
    codec: &'static dyn AnyCodec,
    registry: &Registry,
    tile_size: u32,
    block_bytes: u32,
) -> Result<Vec<EncodedBlock>, EncodeError> {
    let options =
        EncodeOptions { block_bytes, tile_size, choice: Choice::Prefer(codec), ..EncodeOptions::default() };
    encode_values(V::erase(values), Kind::Values, Order::Unsigned, registry, &options)
}

/// Proves all blocks, in parallel.
///
/// # Errors
/// The first block that is wrong.
pub fn check_all<'b>(
    blocks: &'b [EncodedBlock],
    registry: &Registry,
) -> Result<Vec<CheckedBlock<'b>>, GpuError> {
    blocks
        .par_iter()
        .map(|block| CheckedBlock::parse(&block.bytes, registry).map_err(GpuError::from))
        .collect()
}

struct Check<'a> {
    device: &'a Device,
    registry: &'a Registry,
    codec: &'static dyn AnyCodec,
    tile_size: u32,
    seed: u64,
    quick: bool,
}

impl Check<'_> {
    fn columns<V: Value>(&self, report: &mut CheckReport) -> Result<(), GpuError> {
        let mut data = vec![
            Data::MixedWidths,
            Data::Sorted,
            Data::Runs { average: 1 },
            Data::Runs { average: 4 },
            Data::Runs { average: 300 },
        ];
        if V::WIDTH >= 32 {
            data.extend([Data::Decimals { odd: 0 }, Data::Decimals { odd: 20 }, Data::Reals]);
        }
        let step = if self.quick { 7 } else { 1 };
        data.extend((0..=V::WIDTH).step_by(step).map(|bits| Data::Uniform { bits }));
        let columns: Vec<(Data, Vec<V>, DeviceColumn)> = data
            .into_iter()
            .zip(self.seed..)
            .map(|(data, seed)| {
                let values = data.generate::<V>(VALUE_COUNT - usize::from(V::WIDTH), seed);
                Ok((data, values.clone(), self.upload(&values)?))
            })
            .collect::<Result<_, GpuError>>()?;
        // Compiling takes most of the time: all cores do it ahead.
        let needed: Vec<(&DeviceColumn, Option<u32>)> = columns
            .iter()
            .flat_map(|(data, _, column)| self.groups(*data).map(move |group| (column, group)))
            .collect();
        needed.par_iter().try_for_each(|(column, group)| {
            let decoder = decoder(column, *group)?;
            [Work::Decode, Work::Sum].into_iter().try_for_each(|work| {
                decoder.whole_tiles(work)?;
                decoder.rows(work).map(drop)
            })
        })?;
        for (data, values, column) in &columns {
            report.columns += 1;
            for group in self.groups(*data) {
                self.compare(*data, values, column, group, report)?;
            }
        }
        Ok(())
    }

    /// The default shapes and every larger group on the columns that have everything; the defaults alone on the rest, whose code is specialized.
    fn groups(&self, data: Data) -> impl Iterator<Item = Option<u32>> + use<> {
        let every = !self.quick && !matches!(data, Data::Uniform { .. });
        let groups: &[u32] = if every { &[64, 128, 256, 512] } else { &[] };
        std::iter::once(None).chain(groups.iter().map(|&group| Some(group)))
    }

    fn upload<V: Value>(&self, values: &[V]) -> Result<DeviceColumn, GpuError> {
        let encoded = encode_with(values, self.codec, self.registry, self.tile_size, BLOCK_BYTES)
            .map_err(|error| GpuError::Driver { what: "encoding", message: error.to_string() })?;
        DeviceColumn::upload(self.device, &check_all(&encoded, self.registry)?, self.registry)
    }

    fn compare<V: Value>(
        &self,
        data: Data,
        values: &[V],
        column: &DeviceColumn,
        group: Option<u32>,
        report: &mut CheckReport,
    ) -> Result<(), GpuError> {
        let decoder = decoder(column, group)?;
        let count = values.len() as u64;
        for rows in [0..count, count / 3..count / 2 + 1, count - 1..count] {
            let place = format!(
                "codec {}, {} bits, tiles of {}, {data}, groups of {}, rows {} to {}",
                self.codec.name(),
                V::WIDTH,
                self.tile_size,
                group.unwrap_or(32),
                rows.start,
                rows.end
            );
            let expected = slice(values, &rows);
            let mut decoded = vec![V::default(); expected.len()];
            let mut out = DeviceMemory::filled(self.device, size_of_val(expected), 0xA5)?;
            decoder.decode(rows.clone(), &mut out)?;
            out.read(0, decoded.as_mut_bytes())?;
            let differs = decoded.iter().zip(expected).position(|(decoded, expected)| decoded != expected);
            if let Some(index) = differs {
                let of = |values: &[V]| values.get(index).map_or(0, |value| value.to_u64());
                return Err(GpuError::Differs {
                    place,
                    index: index as u64,
                    found: of(&decoded),
                    expected: of(expected),
                });
            }
            let sum = decoder.sum(rows.clone())?;
            let expected_sum = expected.iter().fold(0, |sum: u64, value| sum.wrapping_add(value.to_u64()));
            if sum != expected_sum {
                return Err(GpuError::Differs {
                    place: format!("{place}: sum"),
                    index: 0,
                    found: sum,
                    expected: expected_sum,
                });
            }
            report.decodes += 1;
            report.values += expected.len() as u64;
        }
        Ok(())
    }
}

/// Kernels in the default shapes, or with a thread block of so many threads a tile.
fn decoder(column: &DeviceColumn, group: Option<u32>) -> Result<Decoder<'_>, GpuError> {
    let Some(group) = group else { return Ok(Decoder::with_defaults(column)) };
    Decoder::new(column, LaunchShape { threads_per_block: group, group, blocks_per_multiprocessor: 1 })
}

fn slice<'v, V>(values: &'v [V], rows: &Range<u64>) -> &'v [V] {
    let index = |row| usize::try_from(row).unwrap_or(usize::MAX);
    values.get(index(rows.start)..index(rows.end)).unwrap_or_default()
}
