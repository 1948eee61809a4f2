//! Device code encodes the same blocks as the host, byte for byte.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::cast_possible_truncation)]

mod shim;

use std::fmt::Write;

use codec_core::conformance::named_distributions;
use codec_core::{AnyCodec, Choice, DeviceParameters, EncodeOptions, Kind, Layout, Value, encode_values};
use codecs::REGISTRY;
use format_spec::Order;
use gpu_decode::encode::{ENCODE, checksum_tables};
use gpu_decode::source::{CodecInUse, ColumnType, Part, join};
use shim::ShimProgram;
use zerocopy::IntoBytes;

const TILE_SIZES: [u32; 2] = [512, 1024];
const LENGTHS: [usize; 5] = [1, 33, 1000, 1024, 5000];
const TILES_PER_BLOCK: u32 = 3;

fn program_text(codec: &'static dyn AnyCodec, value_width: u8) -> String {
    let source = codec.device_source().unwrap();
    let in_use = CodecInUse { codec: Some((codec.name(), source)), parameters: DeviceParameters::default() };
    let column = ColumnType { value_width, tile_size: 1024, codecs: vec![in_use.clone()], shared: false };
    let value = column.value();
    let mut table = String::from("const Kernel KERNELS[] = {\n");
    for tile_size in TILE_SIZES {
        let tiles = format!("<{}, {value}, {}, THREADS>", in_use.cuda(value), tile_size / 32);
        writeln!(
            table,
            "{{{}, [](const cb2t::EncodeJob& job, const void* values, cb2t::TilePlan* tiles) {{ \
             cb2t::measure_tiles{tiles}(job, static_cast<const {value}*>(values), tiles); }}, \
             cb2t::lay_out_blocks<{value}, THREADS>, \
             [](const cb2t::EncodeJob& job, const void* values, const cb2t::TilePlan* tiles, const cb2t::BlockPlan* blocks, const cb2t::ChecksumTables* tables, u8* out) {{ \
             cb2t::write_tiles{tiles}(job, static_cast<const {value}*>(values), tiles, blocks, tables, out); }}, \
             cb2t::write_headers<{value}, THREADS>}},",
            value_width / 8
        )
        .unwrap();
    }
    table.push_str("};\n");
    let driver = Part { name: "encode.h", text: include_str!("shim/encode.h") };
    join(&[&column], &[ENCODE, driver, Part { name: "kernels", text: &table }])
}

/// What the host writes, in the form of shim/encode.h.
fn blocks_of_host<V: Value>(
    values: &[V],
    order: Order,
    tile_size: u32,
    codec: &'static dyn AnyCodec,
) -> Vec<u8> {
    let block_bytes = TILES_PER_BLOCK * tile_size * V::BYTES as u32;
    let options =
        EncodeOptions { block_bytes, tile_size, choice: Choice::Prefer(codec), ..EncodeOptions::default() };
    let blocks = encode_values(V::erase(values), Kind::Values, order, &REGISTRY, &options).unwrap();
    let mut written = (blocks.len() as u64).to_le_bytes().to_vec();
    for block in blocks {
        written.extend_from_slice(&(block.bytes.len() as u64).to_le_bytes());
        written.extend_from_slice(&block.bytes);
    }
    written
}

fn encodes<V: Value>() {
    let encoding = REGISTRY.supporting(Layout::values(V::WIDTH)).filter(|codec| codec.device_encodes());
    for codec in encoding {
        let Some(program) = ShimProgram::compile(&program_text(codec, V::WIDTH)) else { return };
        let (mut input, mut expected, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let sign = 1_u64 << (V::WIDTH - 1);
        for length in LENGTHS {
            for (index, (name, values)) in named_distributions::<V>(length).into_iter().enumerate() {
                let (kernel, tile_size) = (index % 2, TILE_SIZES[index % 2]);
                let order = [Order::None, Order::Unsigned, Order::Signed][index % 3];
                let sign = if order == Order::Signed { sign } else { 0 };
                let header = [
                    kernel as u64,
                    length as u64,
                    tile_size.into(),
                    TILES_PER_BLOCK.into(),
                    codec.id().into(),
                    order as u64,
                    sign,
                ];
                input.extend_from_slice(header.as_bytes());
                input.extend_from_slice(checksum_tables().as_bytes());
                input.extend_from_slice(values.as_bytes());
                expected.push(blocks_of_host(&values, order, tile_size, codec));
                names.push(format!("{name}, {length} values, tiles of {tile_size}, {order:?}"));
            }
        }
        let output = program.run(&input);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut written = output.stdout.as_slice();
        for (name, expected) in names.iter().zip(&expected) {
            let (own, rest) = written.split_at_checked(expected.len()).unwrap_or((written, &[]));
            assert!(own == expected.as_slice(), "codec {}, {} bits, {name}", codec.name(), V::WIDTH);
            written = rest;
        }
        assert!(written.is_empty());
    }
}

#[test]
fn blocks_are_the_hosts_byte_for_byte() {
    encodes::<u8>();
    encodes::<u16>();
    encodes::<u32>();
    encodes::<u64>();
}
