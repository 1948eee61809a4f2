//! Checks and measures decoding on device 0: `bench_decode check|quick|encode|table [--json FILE] [--values N] [--codec NAME] [--width N] [--data TEXT] [--shapes SHAPE,...]`.
//! `--data` takes what a task's data prints begins with, as in "uniform, 3 bits".

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
    let shapes = option("--shapes").map_or_else(Vec::new, |text| variants(text));
    let limits = limits(&device, 2 << 30, 20)?;
    println!("{}", serde_json::to_string(&limits).expect("plain data"));
    let (mut rows, wanted) = (Vec::new(), |task: &Task| {
        option("--codec").is_none_or(|name| name == task.codec.name())
            && option("--width").is_none_or(|width| *width == task.value_width.to_string())
            && option("--data").is_none_or(|data| task.data.to_string().starts_with(data))
    });
    for task in tasks(value_count, &shapes).iter().filter(|task| wanted(task)) {
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

fn tasks(value_count: usize, variants: &[Variant]) -> Vec<Task> {
    let task = |name: &str, value_width: u8, data: Data| Task {
        codec: codec(name),
        value_width,
        data,
        // As many bytes for every width.
        value_count: value_count / usize::from(value_width) * 32,
        repetitions: 20,
        variants: variants.to_vec(),
    };
    let mut tasks = Vec::new();
    for value_width in [32_u8, 8, 16, 64] {
        for bits in (1..=value_width).filter(|bits| value_width <= 32 || bits % 2 == 0) {
            tasks.push(task("flbp", value_width, Data::Uniform { bits }));
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

/// Variants from `THREADSxBLOCKSxTILESxSUMMED,...`: threads a thread block, thread blocks a multiprocessor, tiles a warp that decodes, and that sums.
fn variants(text: &str) -> Vec<Variant> {
    let variant = |text: &str| {
        let numbers: Vec<u32> = text.split('x').filter_map(|number| number.parse().ok()).collect();
        let [threads_per_block, blocks_per_multiprocessor, tiles_per_group, tiles_per_sum] = numbers[..]
        else {
            panic!("a shape is THREADSxBLOCKSxTILESxSUMMED, not {text}")
        };
        let shape = LaunchShape { threads_per_block, blocks_per_multiprocessor, group: 32 };
        Variant { shape, tiles_per_group, tiles_per_sum, options: Vec::new() }
    };
    text.split(',').map(variant).collect()
}
