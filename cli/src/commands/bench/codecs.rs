//! `cb2t bench codecs`: every codec on made-up values, one core.

use std::hint::black_box;

use codec_core::{AnyCodec, Block, Choice, Kind, Order, Values, encode_block};
use serde_json::json;

use super::{machine, median};
use crate::args::BenchCodecs;
use crate::error::{CliError, Outcome};
use crate::output::{print_json, print_text};
use crate::render::{counted, table};

/// Made-up values of 32 bits and what they are.
struct Data {
    name: String,
    values: Vec<u32>,
}

struct Measured {
    codec: &'static str,
    data: String,
    bits_per_value: f64,
    encode_gb_per_second: f64,
    decode_gb_per_second: f64,
}

pub fn run(args: &BenchCodecs) -> Result<Outcome, CliError> {
    let codecs: Vec<&'static dyn AnyCodec> = match &args.codecs {
        None => cb2t::REGISTRY.iter().collect(),
        Some(names) => names.iter().map(|name| named(name)).collect::<Result<_, _>>()?,
    };
    let mut measured = Vec::new();
    for data in data(args.values, &args.bits) {
        for codec in codecs.iter().filter(|codec| codec.supports(codec_core::Layout::values(32))) {
            measured.push(measure(*codec, &data, args.repeat)?);
        }
    }
    if args.json {
        let rows = measured.iter().map(|row| {
            json!({
                "codec": row.codec, "data": row.data, "bits_per_value": row.bits_per_value,
                "encode_gb_per_second": row.encode_gb_per_second, "decode_gb_per_second": row.decode_gb_per_second,
            })
        });
        let report = json!({ "values": args.values, "value_width": 32, "cores": 1, "machine": machine(), "rows": rows.collect::<Vec<_>>() });
        print_json(&report)?;
        return Ok(Outcome::Done);
    }
    let line = |row: &Measured| {
        let figure = |number: f64| format!("{number:.2}");
        vec![
            row.data.clone(),
            row.codec.to_owned(),
            figure(row.bits_per_value),
            figure(row.encode_gb_per_second),
            figure(row.decode_gb_per_second),
        ]
    };
    let header = ["data", "codec", "bits/value", "encode GB/s", "decode GB/s"];
    print_text(&format!(
        "{} of 32 bits in blocks of 2 MiB, one core, medians; GB of values\n\n{}",
        counted(args.values as u64, "value"),
        table(&header, measured.iter().map(line).collect(), &[2, 3, 4])
    ))?;
    Ok(Outcome::Done)
}

fn named(name: &str) -> Result<&'static dyn AnyCodec, CliError> {
    cb2t::REGISTRY.by_name(name).ok_or_else(|| CliError::Usage(format!("--codec {name}: no such codec")))
}

/// Random bits of each width, runs, and sorted values.
fn data(count: usize, bits: &[u32]) -> Vec<Data> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The high half is the random one.
        u32::try_from(state >> 32).unwrap_or_default()
    };
    let mut all = Vec::new();
    for &width in bits {
        let values = (0..count)
            .map(|_| 1_000_000_u32.wrapping_add(draw().checked_shr(32 - width).unwrap_or(0)))
            .collect();
        all.push(Data { name: format!("{width} random bits"), values });
    }
    for run in [4, 32, 256] {
        let mut values = Vec::with_capacity(count);
        while values.len() < count {
            let value = 19_920_000 + draw() % 65_536;
            values.extend(std::iter::repeat_n(
                value,
                (1 + draw() as usize % (2 * run - 1)).min(count - values.len()),
            ));
        }
        all.push(Data { name: format!("runs of about {run}"), values });
    }
    let mut sum = 0_u32;
    let sorted = (0..count).map(|_| {
        sum = sum.wrapping_add(draw() % 16);
        sum
    });
    all.push(Data { name: "sorted".into(), values: sorted.collect() });
    all
}

fn measure(codec: &'static dyn AnyCodec, data: &Data, repeat: usize) -> Result<Measured, CliError> {
    const BLOCK_VALUES: usize = 1 << 19;
    let failed = |reason: String| CliError::Unsupported { file: format!("codec {}", codec.name()), reason };
    let encode = || {
        let blocks = data.values.chunks(BLOCK_VALUES).map(|values| {
            encode_block(
                Values::U32(values),
                Kind::Values,
                Order::Unsigned,
                1024,
                &cb2t::REGISTRY,
                Choice::Prefer(codec),
            )
            .map(|block| block.bytes)
        });
        blocks.collect::<Result<Vec<_>, _>>().map_err(|error| failed(error.to_string()))
    };
    let (encode_seconds, blocks) = median(repeat, encode)?;
    let mut decoded = vec![0_u32; data.values.len()];
    let (decode_seconds, ()) = median(repeat, || {
        for (bytes, room) in blocks.iter().zip(decoded.chunks_mut(BLOCK_VALUES)) {
            let block = Block::parse(bytes, &cb2t::REGISTRY).map_err(|error| failed(error.to_string()))?;
            block.decode_range(0..room.len(), room).map_err(|error| failed(error.to_string()))?;
        }
        black_box(&decoded);
        Ok(())
    })?;
    if decoded != data.values {
        return Err(failed(format!("other values came back of {}", data.name)));
    }
    let stored: usize = blocks.iter().map(Vec::len).sum();
    let gigabytes = data.values.len() as f64 * 4.0 / 1e9;
    Ok(Measured {
        codec: codec.name(),
        data: data.name.clone(),
        bits_per_value: stored as f64 * 8.0 / data.values.len() as f64,
        encode_gb_per_second: gigabytes / encode_seconds,
        decode_gb_per_second: gigabytes / decode_seconds,
    })
}
