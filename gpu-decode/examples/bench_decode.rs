//! Checks and measures decoding on device 0: `bench_decode check|quick|variants|table [--json FILE] [--values N] [--codec NAME] [--width N]`.

#![allow(clippy::print_stdout, clippy::expect_used, clippy::panic)]

use std::time::{SystemTime, UNIX_EPOCH};

use codec_core::AnyCodec;
use codecs::REGISTRY;
use gpu_decode::bench::{self, Row, Task, Variant, limits, measure};
use gpu_decode::check::device_matches_host;
use gpu_decode::data::Data;
use gpu_decode::{Device, GpuError, LaunchShape};

fn main() -> Result<(), GpuError> {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|index| arguments.get(index + 1))
    };
    let command = arguments.get(1).map_or("table", String::as_str);
    let device = Device::new(0)?;
    println!("{}", serde_json::to_string(device.info()).expect("plain data"));
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| u64::from(time.subsec_nanos()));
    if matches!(command, "check" | "quick") {
        let report = device_matches_host(&device, &REGISTRY, seed, command == "quick")?;
        println!("seed {seed}: {}", serde_json::to_string(&report).expect("plain data"));
        return Ok(());
    }
    if command == "encode" {
        return encode(&device, seed);
    }
    let value_count = option("--values").and_then(|text| text.parse().ok()).unwrap_or(512 << 20);
    let limits = limits(&device, 2 << 30, 20)?;
    println!("{}", serde_json::to_string(&limits).expect("plain data"));
    let (mut rows, wanted) = (Vec::new(), |task: &Task| {
        option("--codec").is_none_or(|name| name == task.codec.name())
            && option("--width").is_none_or(|width| *width == task.value_width.to_string())
            && option("--bits").is_none_or(|bits| task.data.to_string() == format!("uniform, {bits} bits"))
    });
    for task in tasks(command, value_count).iter().filter(|task| wanted(task)) {
        let measured = measure(&device, &REGISTRY, limits, task, seed)?;
        measured.iter().for_each(print);
        rows.extend(measured);
    }
    if let Some(path) = option("--json") {
        let record =
            serde_json::json!({ "device": device.info(), "limits": limits, "seed": seed, "rows": rows });
        std::fs::write(path, serde_json::to_string_pretty(&record).expect("plain data"))
            .expect("writing the record");
    }
    Ok(())
}

/// Encodes a column on the device, compares some of it with the host's blocks, and times it.
fn encode(device: &Device, seed: u64) -> Result<(), GpuError> {
    for (data, value_count) in [
        (Data::Uniform { bits: 6 }, 512 << 20),
        (Data::Uniform { bits: 16 }, 512 << 20),
        (Data::MixedWidths, 512 << 20),
        (Data::Runs { average: 4 }, 512 << 20),
        (Data::Runs { average: 32 }, 512 << 20),
    ] {
        for codec in REGISTRY.iter().filter(|codec| codec.device_encodes()) {
            let row = bench::measure_encode(device, &REGISTRY, codec, data, value_count, 20, seed)?;
            println!("{}", serde_json::to_string(&row).expect("plain data"));
        }
    }
    Ok(())
}

fn print(row: &Row) {
    println!(
        "{:5} u{:<2} {:26} {:6} {:8.3} ms {:7.0} GB/s out {:6.0} moved {:5.1} % {:6.0} Gv/s  {} regs {} B local {} blocks {} {:.0} ms {:?}",
        row.codec,
        row.value_width,
        row.data.to_string(),
        row.kernel,
        row.milliseconds,
        row.output_gb_per_s,
        row.moved_gb_per_s,
        row.of_limit * 100.0,
        row.giga_values_per_s,
        row.resources.registers,
        row.resources.local_bytes,
        row.resources.blocks_per_multiprocessor,
        label(&row.variant),
        row.program_ms,
        row.program_origin,
    );
}

fn label(variant: &Variant) -> String {
    let LaunchShape { threads_per_block, group, blocks_per_multiprocessor } = variant.shape;
    format!(
        "{group}/{threads_per_block}x{blocks_per_multiprocessor} {} {}",
        variant.tiles_per_group,
        variant.options.join(" ")
    )
}

fn codec(name: &str) -> &'static dyn AnyCodec {
    REGISTRY.by_name(name).unwrap_or_else(|| panic!("no codec {name}"))
}

fn tasks(command: &str, value_count: usize) -> Vec<Task> {
    let task = |name: &str, value_width: u8, data: Data| Task {
        codec: codec(name),
        value_width,
        data,
        // As many bytes for every width.
        value_count: value_count / usize::from(value_width) * 32,
        repetitions: 20,
        variants: variants(command, value_width),
    };
    let mut tasks = Vec::new();
    let variants_only = command == "variants";
    for value_width in [32_u8, 8, 16, 64] {
        let step =
            if variants_only { usize::from(value_width) / 4 } else { usize::from(value_width).div_ceil(32) };
        let first = if variants_only { usize::from(value_width) / 4 - 2 } else { step };
        for bits in (first..=usize::from(value_width)).step_by(step) {
            tasks.push(task(
                "flbp",
                value_width,
                Data::Uniform { bits: u8::try_from(bits).unwrap_or(u8::MAX) },
            ));
        }
        tasks.push(task("flbp", value_width, Data::MixedWidths));
        for average in [1, 4, 32, 256] {
            tasks.push(task("rfor", value_width, Data::Runs { average }));
        }
        tasks.push(task("dfor", value_width, Data::Sorted));
        tasks.push(task("plain", value_width, Data::MixedWidths));
        if value_width >= 32 {
            for data in [Data::Decimals { odd: 0 }, Data::Decimals { odd: 5 }, Data::Reals] {
                tasks.push(task("alp", value_width, data));
            }
        }
    }
    tasks
}

fn variants(command: &str, value_width: u8) -> Vec<Variant> {
    if command != "variants" {
        return Vec::new();
    }
    let mut all = Vec::new();
    let half = if value_width == 64 { 2 } else { 1 };
    for (threads_per_block, warps, tiles_per_group, tiles_per_sum) in
        [(64, 40, 1, 8), (128, 40, 1, 4), (64, 40, 4, 2), (128, 32, 2, 16), (256, 40, 2, 8)]
    {
        let shape = LaunchShape {
            threads_per_block,
            blocks_per_multiprocessor: warps / half * 32 / threads_per_block,
            group: 32,
        };
        all.push(Variant { shape, tiles_per_group, tiles_per_sum, options: Vec::new() });
    }
    all
}
