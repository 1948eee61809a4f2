//! What the writer tried, estimated and achieved.

use std::collections::BTreeMap;

use codec_core::Trial;

/// How a table was written: one entry a buffer of each node, over all row groups.
#[derive(Debug, Clone, Default)]
pub struct WriteReport {
    /// Rows written.
    pub row_count: u64,
    /// Row groups written.
    pub row_group_count: u64,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// What Arrow's own buffers of all columns took.
    pub arrow_bytes: u64,
    /// The buffers, by column (with the path below it) and role.
    pub buffers: BTreeMap<(String, &'static str), BufferReport>,
}

/// How the blocks of one buffer were encoded.
#[derive(Debug, Clone, Default)]
pub struct BufferReport {
    /// Blocks written.
    pub block_count: u64,
    /// Values in them.
    pub value_count: u64,
    /// Their bytes, headers and tables included.
    pub stored_bytes: u64,
    /// By codec.
    pub codecs: BTreeMap<&'static str, CodecReport>,
}

/// What was found about one codec for a buffer.
#[derive(Debug, Clone, Default)]
pub struct CodecReport {
    /// Blocks for which it was tried on a sample.
    pub tried_blocks: u64,
    /// Bytes that the samples promised for all blocks that it was tried on.
    pub estimated_bytes: u64,
    /// These bytes and what its decoding costs, as bytes that could be read in the same time: what decided.
    pub cost_bytes: u64,
    /// Blocks that it got.
    pub chosen_blocks: u64,
    /// Bytes that the samples promised for the blocks that it got.
    pub chosen_estimated_bytes: u64,
    /// Bytes that these blocks took, headers and tables included.
    pub chosen_bytes: u64,
}

impl WriteReport {
    /// Adds one block of `block_bytes` bytes.
    pub(crate) fn add(
        &mut self,
        column: &str,
        role: &'static str,
        codec: &'static str,
        trials: &[Trial],
        value_count: u32,
        block_bytes: u64,
    ) {
        let buffer = self.buffers.entry((column.to_owned(), role)).or_default();
        buffer.block_count += 1;
        buffer.value_count += u64::from(value_count);
        buffer.stored_bytes += block_bytes;
        for trial in trials {
            let tried = buffer.codecs.entry(trial.codec).or_default();
            tried.tried_blocks += 1;
            tried.estimated_bytes += trial.estimated_bytes;
            tried.cost_bytes += trial.cost_bytes;
            if trial.codec == codec {
                tried.chosen_estimated_bytes += trial.estimated_bytes;
            }
        }
        let chosen = buffer.codecs.entry(codec).or_default();
        chosen.chosen_blocks += 1;
        chosen.chosen_bytes += block_bytes;
    }
}
