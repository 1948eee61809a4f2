//! Every kernel compiles with NVRTC for each architecture that is supported, and spills nothing in the default shape. Needs no device.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::cast_possible_truncation)]

#[path = "shim/nvrtc.rs"]
mod nvrtc;

use codec_core::conformance::{named_distributions, named_floats};
use codec_core::{AnyCodec, DeviceParameters, Layout, Tile, Value};
use codecs::REGISTRY;
use format_spec::Order;
use gpu_decode::encode::encode_program;
use gpu_decode::nvrtc::Nvrtc;
use gpu_decode::source::{CodecInUse, ColumnType, Work, rows_program, whole_tiles_program};
use gpu_decode::{GpuError, LaunchShape};
use nvrtc::nvrtc;

const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90", "sm_100"];

fn columns(tile_size: u32) -> Vec<ColumnType> {
    let mut columns = Vec::new();
    for value_width in [8, 16, 32, 64] {
        let supporting = REGISTRY.supporting(Layout::values(value_width));
        let codecs: Vec<CodecInUse> = supporting.filter_map(in_use).collect();
        columns.extend(codecs.iter().map(|codec| {
            let codecs = vec![codec.clone()];
            ColumnType { value_width, tile_size, codecs, shared: false }
        }));
        columns.extend(match value_width {
            8 => specialized::<u8>(tile_size),
            16 => specialized::<u16>(tile_size),
            32 => specialized::<u32>(tile_size),
            _ => specialized::<u64>(tile_size),
        });
        let constant = CodecInUse { codec: None, parameters: DeviceParameters::default() };
        columns.push(ColumnType {
            value_width,
            tile_size,
            codecs: [codecs, vec![constant]].concat(),
            shared: true,
        });
    }
    columns
}

/// Each codec with the parameters of a tile that it suits; a codec for floats of decimals, of reals, and of all that floats can be.
fn specialized<V: Value>(tile_size: u32) -> Vec<ColumnType> {
    let layout = Layout::values(V::WIDTH);
    let mut columns = Vec::new();
    for (codec, in_use) in REGISTRY.supporting(layout).filter_map(|codec| Some((codec, in_use(codec)?))) {
        let integers = format!("{} random bits over a base", V::WIDTH / 2);
        let names: &[&str] = if codec.suits(layout, Order::Unsigned) {
            &[&integers]
        } else {
            &[
                "decimals of 2 digits",
                "unit interval",
                "decimals and odd floats",
                "unit interval and odd floats",
            ]
        };
        let all = named_distributions::<V>(1024).into_iter().chain(named_floats::<V>(1024));
        for (_, values) in all.filter(|(name, _)| names.contains(&name.as_str())) {
            let shared = codec.encode_shared(V::erase(&values));
            let mut bytes = Vec::new();
            codec.encode_tile(&shared, V::erase(&values), &mut bytes);
            let tile = Tile { bytes: &bytes, shared: &shared, value_count: values.len() };
            let parameters = codec.device_parameters(tile, layout);
            let codecs = vec![CodecInUse { parameters, ..in_use.clone() }];
            if !parameters.is_empty() {
                columns.push(ColumnType { value_width: V::WIDTH, tile_size, codecs, shared: true });
            }
        }
    }
    columns
}

fn in_use(codec: &'static dyn AnyCodec) -> Option<CodecInUse> {
    let codec = Some((codec.name(), codec.device_source()?));
    Some(CodecInUse { codec, parameters: DeviceParameters::default() })
}

/// Compiles both programs and returns what the compiler says about registers.
fn compile(nvrtc: &Nvrtc, column: &ColumnType, shape: LaunchShape, work: Work, architecture: &str) -> String {
    let options = ["--ptxas-options=-v".to_owned()];
    let log = |source: String| {
        let compiled = nvrtc.compile(&source, architecture, &options);
        let compiled = compiled.unwrap_or_else(|error| panic!("{}, {shape:?}: {error}", column.cuda()));
        assert!(compiled.cubin.starts_with(b"\x7fELF"));
        compiled.log
    };
    let whole = log(whole_tiles_program(column, shape, work));
    // The program for any rows is not specialized: once a codec is enough.
    if column.general() == *column { whole + &log(rows_program(column, shape, work)) } else { whole }
}

/// Whether the compiler says that a kernel spills registers, or nothing about it.
fn spills(log: &str) -> bool {
    let mut said = log.lines().filter(|line| line.contains("bytes spill")).peekable();
    said.peek().is_none() || said.any(|line| !line.contains(" 0 bytes spill stores, 0 bytes spill loads"))
}

#[test]
fn kernels_compile_for_every_architecture_without_spills() {
    let Some(nvrtc) = nvrtc() else { return };
    for architecture in ARCHITECTURES {
        for column in columns(1024) {
            for work in [Work::Decode, Work::Sum] {
                let log =
                    compile(&nvrtc, &column, LaunchShape::default_for(&column, work), work, architecture);
                assert!(!spills(&log), "{} for {architecture}:\n{log}", column.cuda());
            }
        }
    }
}

#[test]
fn encoding_kernels_compile_for_every_architecture_without_spills() {
    let Some(nvrtc) = nvrtc() else { return };
    for value_width in [8, 16, 32, 64] {
        let encoding =
            REGISTRY.supporting(Layout::values(value_width)).filter(|codec| codec.device_encodes());
        for (codec, tile_size) in encoding.zip([1024, 512].into_iter().cycle()) {
            let column = ColumnType {
                value_width,
                tile_size,
                codecs: in_use(codec).into_iter().collect(),
                shared: false,
            };
            for architecture in ARCHITECTURES {
                let compiled =
                    nvrtc.compile(&encode_program(&column), architecture, &["--ptxas-options=-v".to_owned()]);
                let log = compiled.unwrap_or_else(|error| panic!("{}: {error}", column.cuda())).log;
                assert!(!spills(&log), "{} for {architecture}:\n{log}", column.cuda());
            }
        }
    }
}

#[test]
fn kernels_compile_in_every_shape() {
    let Some(nvrtc) = nvrtc() else { return };
    for tile_size in [512, 1024] {
        let columns = columns(tile_size);
        for (index, group) in [32, 64, 128, 256, 512].into_iter().enumerate() {
            // Each shape meets a different part of the columns, and over both tile sizes most of them.
            for column in columns.iter().skip(index).step_by(5) {
                let shape = LaunchShape { threads_per_block: group, group, blocks_per_multiprocessor: 1 };
                for work in [Work::Decode, Work::Sum] {
                    compile(&nvrtc, column, shape, work, "sm_90");
                }
            }
        }
    }
}

#[test]
fn errors_name_the_place() {
    let Some(nvrtc) = nvrtc() else { return };
    let Err(GpuError::Compile { architecture, log }) =
        nvrtc.compile("#line 7 \"toy.cuh\"\nnonsense", "sm_90", &[])
    else {
        panic!("nonsense compiled");
    };
    assert!(architecture == "sm_90" && log.contains("toy.cuh(7)"), "{log}");
}
