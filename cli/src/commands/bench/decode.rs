//! `cb2t bench decode`: columns decoded into device memory, and decoded and summed, against the limits of the device's memory.

use std::time::{SystemTime, UNIX_EPOCH};

use codec_core::Order;
use gpu_decode::bench::{Row, Task, limits, measure};
use gpu_decode::data::Data;
use serde_json::json;

use super::codecs;
use crate::args::{BenchCodecs, BenchDecode};
use crate::commands::devices::cuda;
use crate::error::{CliError, Outcome};
use crate::output::{print_json, print_text};
use crate::render::{counted, table};

/// Bytes over which the device's own limits are measured.
const LIMIT_BYTES: usize = 2 << 30;

pub fn run(args: &BenchDecode) -> Result<Outcome, CliError> {
    if args.device == "cpu" {
        let repeat = args.repeat.try_into().unwrap_or(5);
        let values = args.values.min(1 << 24);
        return codecs::run(&BenchCodecs {
            codecs: args.codecs.clone(),
            bits: args.bits.clone(),
            values,
            repeat,
            json: args.json,
        });
    }
    let device = cuda(&args.device)?;
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| u64::from(time.subsec_nanos()));
    let limits = limits(&device, LIMIT_BYTES, args.repeat).map_err(CliError::device)?;
    let mut rows = Vec::new();
    for task in tasks(args)? {
        rows.extend(measure(&device, &cb2t::REGISTRY, limits, &task, seed).map_err(CliError::device)?);
    }
    if args.json {
        print_json(&json!({ "device": device.info(), "limits": limits, "seed": seed, "rows": rows }))?;
        return Ok(Outcome::Done);
    }
    let header = [
        "codec",
        "width",
        "data",
        "kernel",
        "ms",
        "GB/s out",
        "GB/s moved",
        "of limit",
        "G values/s",
        "registers",
        "spilled B",
        "blocks/SM",
    ];
    print_text(&format!(
        "{}: copy {:.0}, read {:.0}, write {:.0} GB/s; {} a column, medians of {}\n\n{}",
        device.info().name,
        limits.copy_gb_per_s,
        limits.read_gb_per_s,
        limits.write_gb_per_s,
        counted(args.values as u64, "value"),
        args.repeat,
        table(&header, rows.iter().map(line).collect(), &[1, 4, 5, 6, 7, 8, 9, 10, 11])
    ))?;
    Ok(Outcome::Done)
}

fn line(row: &Row) -> Vec<String> {
    vec![
        row.codec.to_owned(),
        row.value_width.to_string(),
        row.data.to_string(),
        row.kernel.to_owned(),
        format!("{:.3}", row.milliseconds),
        format!("{:.0}", row.output_gb_per_s),
        format!("{:.0}", row.moved_gb_per_s),
        format!("{:.1} %", row.of_limit * 100.0),
        format!("{:.0}", row.giga_values_per_s),
        row.resources.registers.to_string(),
        row.resources.local_bytes.to_string(),
        row.resources.blocks_per_multiprocessor.to_string(),
    ]
}

/// Each codec with device code on random bits, runs and sorted values; those for floats on floats.
fn tasks(args: &BenchDecode) -> Result<Vec<Task>, CliError> {
    let wanted =
        |name: &str| args.codecs.as_ref().is_none_or(|names| names.iter().any(|other| other == name));
    if let Some(name) = args.codecs.iter().flatten().find(|name| cb2t::REGISTRY.by_name(name).is_none()) {
        return Err(CliError::Usage(format!("--codec {name}: no such codec")));
    }
    let mut integers: Vec<Data> =
        args.bits.iter().map(|&bits| Data::Uniform { bits: u8::try_from(bits).unwrap_or(32) }).collect();
    integers.extend([Data::MixedWidths, Data::Sorted]);
    integers.extend([1, 4, 32, 256].map(|average| Data::Runs { average }));
    let floats = [Data::Decimals { odd: 0 }, Data::Decimals { odd: 5 }, Data::Reals];
    let codecs =
        cb2t::REGISTRY.iter().filter(|codec| codec.device_source().is_some() && wanted(codec.name()));
    let layout = codec_core::Layout::values(32);
    let tasks = codecs.filter(|codec| codec.supports(layout)).flat_map(|codec| {
        let data = if codec.suits(layout, Order::Unsigned) { integers.as_slice() } else { &floats };
        data.iter().map(move |&data| Task {
            codec,
            value_width: 32,
            data,
            value_count: args.values,
            repetitions: args.repeat,
            // The default shape of the column.
            variants: Vec::new(),
        })
    });
    Ok(tasks.collect())
}
