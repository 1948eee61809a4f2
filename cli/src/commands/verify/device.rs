//! `cb2t verify --device cuda`: every column decoded on the device and compared with the host, bit for bit.

use cb2t::Table;
use codec_core::{CheckedBlock, Value, with_values};
use gpu_decode::decode::Decoder;
use gpu_decode::{Device, DeviceColumn, DeviceMemory, GpuError};
use zerocopy::IntoBytes;

use crate::error::CliError;

/// What was compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compared {
    /// Values decoded on both sides.
    pub values: u64,
    /// Blocks decoded on the device.
    pub blocks: u64,
    /// Blocks left out: of codecs without device code, or of bytes.
    pub left_out: u64,
}

/// Decodes all buffers of fixed-width values on `device`. `Err` with the inner error says that the device failed; a difference is the inner `Err`.
pub fn compare(table: &Table, device: &Device, file: &str) -> Result<Result<Compared, String>, CliError> {
    let mut compared = Compared::default();
    for index in 0..table.schema().fields().len() {
        let column = table.column(index).map_err(CliError::table(file))?;
        for entry in &column.section.buffers {
            let bytes = column
                .section
                .buffer_blocks(entry)
                .iter()
                .map(|block| table.container().block(block))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| CliError::table(file)(error.into()))?;
            let blocks = bytes
                .iter()
                .map(|bytes| CheckedBlock::parse(bytes.as_ref(), table.registry()))
                .collect::<Result<Vec<_>, _>>();
            let blocks = match blocks {
                Ok(blocks) => blocks,
                Err(error) => return Ok(Err(format!("column {}: {error}", column.node.path))),
            };
            match compare_buffer(&blocks, table, device) {
                Ok(Some(values)) => {
                    compared.values += values;
                    compared.blocks += blocks.len() as u64;
                }
                Ok(None) => {
                    return Ok(Err(format!(
                        "column {}: the device decoded other values than the host",
                        column.node.path
                    )));
                }
                Err(GpuError::NoDeviceCode { .. } | GpuError::Layout { .. }) => {
                    compared.left_out += blocks.len() as u64
                }
                Err(error) => return Err(CliError::device(error)),
            }
        }
    }
    Ok(Ok(compared))
}

/// The number of values, or `None` where one differs.
fn compare_buffer(
    blocks: &[CheckedBlock<'_>],
    table: &Table,
    device: &Device,
) -> Result<Option<u64>, GpuError> {
    let Some(first) = blocks.first() else { return Ok(Some(0)) };
    let uploaded = DeviceColumn::upload(device, blocks, table.registry())?;
    let width = first.block().layout().value_width;
    let decoder = Decoder::with_defaults(&uploaded);
    let count = uploaded.value_count();
    let mut out = DeviceMemory::filled(
        device,
        usize::try_from(count * u64::from(width / 8)).unwrap_or(usize::MAX),
        0xA5,
    )?;
    decoder.decode(0..count, &mut out)?;
    let mut offset = 0;
    for block in blocks {
        let expected = block.decode()?;
        let bytes = with_values!(OwnedValues, &expected, values => as_bytes(values)).to_vec();
        let mut found = vec![0; bytes.len()];
        out.read(offset, &mut found)?;
        if found != bytes {
            return Ok(None);
        }
        offset += bytes.len();
    }
    Ok(Some(count))
}

fn as_bytes<V: Value>(values: &[V]) -> &[u8] {
    values.as_bytes()
}
