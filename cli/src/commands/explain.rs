//! What was tried, estimated and achieved: `pack --explain` and `inspect --why`.

use arrow_io::table::{CodecReport, WriteReport};
use serde::Serialize;

use crate::render::{grouped, table};

/// One buffer of a report, as JSON.
#[derive(Serialize)]
pub struct BufferSummary<'a> {
    column: &'a str,
    buffer: &'a str,
    blocks: u64,
    values: u64,
    bytes: u64,
    codecs: Vec<CodecSummary<'a>>,
}

#[derive(Serialize)]
struct CodecSummary<'a> {
    codec: &'a str,
    tried_blocks: u64,
    estimated_bytes: u64,
    cost_bytes: u64,
    chosen_blocks: u64,
    chosen_estimated_bytes: u64,
    chosen_bytes: u64,
}

/// The buffers of a report for JSON.
pub fn buffer_reports(report: &WriteReport) -> Vec<BufferSummary<'_>> {
    let buffers = report.buffers.iter().map(|((column, role), buffer)| BufferSummary {
        column,
        buffer: role,
        blocks: buffer.block_count,
        values: buffer.value_count,
        bytes: buffer.stored_bytes,
        codecs: buffer.codecs.iter().map(|(codec, found)| codec_summary(codec, found)).collect(),
    });
    buffers.collect()
}

fn codec_summary<'a>(codec: &'a str, found: &CodecReport) -> CodecSummary<'a> {
    CodecSummary {
        codec,
        tried_blocks: found.tried_blocks,
        estimated_bytes: found.estimated_bytes,
        cost_bytes: found.cost_bytes,
        chosen_blocks: found.chosen_blocks,
        chosen_estimated_bytes: found.chosen_estimated_bytes,
        chosen_bytes: found.chosen_bytes,
    }
}

/// A row a codec of each buffer.
pub fn explained(report: &WriteReport) -> String {
    let mut rows = Vec::new();
    for ((column, role), buffer) in &report.buffers {
        for (codec, found) in &buffer.codecs {
            let tried = |bytes: u64| if found.tried_blocks == 0 { "-".into() } else { grouped(bytes) };
            let chosen = |text: String| if found.chosen_blocks == 0 { "-".into() } else { text };
            rows.push(vec![
                column.clone(),
                (*role).to_owned(),
                (*codec).to_owned(),
                grouped(found.tried_blocks),
                tried(found.estimated_bytes),
                tried(found.cost_bytes),
                grouped(found.chosen_blocks),
                chosen(tried(found.chosen_estimated_bytes)),
                chosen(grouped(found.chosen_bytes)),
            ]);
        }
    }
    let header = [
        "column",
        "buffer",
        "codec",
        "tried blocks",
        "estimated bytes",
        "with decoding",
        "chosen blocks",
        "of these estimated",
        "achieved",
    ];
    table(&header, rows, &[3, 4, 5, 6, 7, 8])
}
