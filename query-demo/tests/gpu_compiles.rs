//! Every kernel compiles with NVRTC for each architecture that is supported. Needs no device.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[path = "../../gpu-decode/tests/shim/nvrtc.rs"]
mod nvrtc;
mod ssb;

use codec_core::{DeviceParameters, Layout};
use codecs::REGISTRY;
use gpu_decode::nvrtc::Nvrtc;
use gpu_decode::source::{CodecInUse, ColumnType};
use nvrtc::nvrtc;
use query_demo::gpu::bindings::{compact_program, program};
use query_demo::gpu::check::check;
use query_demo::gpu::tuple::tuple_code;
use query_demo::gpu::{Options, Placement, Shape, ShapeOptions};
use query_demo::plan::{Input, Pipeline, Plan};

const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90", "sm_100"];

/// The type of a column as the codec with this name has it: specialized for the width of the input's range.
fn column(input: &Input, codec: &str, tile_size: u32) -> ColumnType {
    let codec = REGISTRY.by_name(codec).unwrap();
    assert!(codec.supports(Layout::values(input.value_width)));
    let bits = u64::BITS - input.range.span().leading_zeros();
    let codec = CodecInUse {
        codec: Some((codec.name(), codec.device_source().unwrap())),
        parameters: DeviceParameters::member(bits),
    };
    ColumnType { value_width: input.value_width, tile_size, codecs: vec![codec], shared: false }
}

fn source(plan: &Plan, index: usize, codec: &str, placement: Placement, shape: ShapeOptions) -> String {
    let pipeline: &Pipeline = &plan.pipelines[index];
    let columns: Vec<ColumnType> = pipeline.inputs.iter().map(|input| column(input, codec, 1024)).collect();
    let options = Options { placement, shape, ..Options::default() };
    let code = tuple_code(plan, index).unwrap();
    let shape = Shape::new(&options, 1024, code.most_threads).unwrap();
    let columns: Vec<&ColumnType> = columns.iter().collect();
    program(&code, &columns, placement, shape)
}

fn compile(nvrtc: &Nvrtc, source: &str, architecture: &str) -> String {
    let options = ["--ptxas-options=-v".to_owned()];
    let start = std::time::Instant::now();
    let compiled =
        nvrtc.compile(source, architecture, &options).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let registers = compiled.log.lines().filter(|line| line.contains("registers") || line.contains("spill"));
    format!("{:.0} ms {}", start.elapsed().as_secs_f64() * 1e3, registers.collect::<Vec<_>>().join(" "))
}

#[test]
fn kernels_compile_for_every_architecture() {
    let Some(nvrtc) = nvrtc() else { return };
    for architecture in ARCHITECTURES {
        println!("compact: {}", compile(&nvrtc, &compact_program(), architecture));
        for (name, plan) in ssb::queries() {
            check(&plan).unwrap();
            for index in 0..plan.pipelines.len() {
                let source = source(&plan, index, "flbp", Placement::Register, ShapeOptions::default());
                println!("{name} {index} {architecture}: {}", compile(&nvrtc, &source, architecture));
            }
        }
    }
}
