//! Every codec's device half decodes what the host encoded, bit for bit: all named distributions, all bit widths, both tile sizes, groups of 32 to 512 threads. Each tile lies alone in
//! memory of exactly its length, so a read beyond it is found.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::cast_possible_truncation)]

mod shim;

use std::fmt::Write;

use codec_core::conformance::{Random, named_distributions, named_floats};
use codec_core::{
    AnyCodec, CheckedBlock, Choice, DeviceParameters, Kind, Layout, Tile, Value, encode_block, with_values,
};
use codecs::REGISTRY;
use format_spec::Order;
use gpu_decode::column::Plan;
use gpu_decode::source::{CodecInUse, ColumnType, DECODE, Part, join};
use shim::ShimProgram;
use zerocopy::IntoBytes;

/// Tile sizes and the groups that decode such tiles.
const TILE_SIZES: [u32; 2] = [512, 1024];
const GROUPS: [u32; 5] = [32, 64, 128, 256, 512];
/// Lengths of single tiles: whole, and around the borders of rows.
const LENGTHS: [usize; 8] = [1, 2, 31, 33, 500, 512, 1000, 1024];
/// Specialized code is as long as there are parameters: this many at a time, in few shapes.
const PARAMETERS_AT_A_TIME: usize = 11;

struct KernelType {
    column: ColumnType,
    group: u32,
    threads: u32,
}

struct Case {
    kernel: usize,
    bytes: Vec<u8>,
    tiles: Vec<u8>,
    shared_offsets: Vec<u32>,
    rows: std::ops::Range<u64>,
    tiles_per_group: u64,
    expected: Vec<u8>,
}

/// An encoded tile and its values.
struct Encoded<V> {
    bytes: Vec<u8>,
    tile_offset: usize,
    values: Vec<V>,
    parameters: DeviceParameters,
}

fn program_text(kernels: &[KernelType]) -> String {
    let columns: Vec<&ColumnType> = kernels.iter().map(|kernel| &kernel.column).collect();
    let mut text = String::new();
    let mut table = String::from("const Kernel KERNELS[] = {\n");
    for (index, KernelType { column, group, threads }) in kernels.iter().enumerate() {
        let (name, value, items) = (column.cuda(), column.value(), column.tile_size / group);
        let arguments = format!("{name}, {group}, {items}, {threads}");
        writeln!(
            text,
            "static void tiles_{index}(cb2t::ColumnView column, u32 first, u32 end, u32 each, void* out) {{ \
             cb2t::decode_whole_tiles<{arguments}>(column, first, end, each, static_cast<{value}*>(out)); }}\n\
             static void rows_{index}(cb2t::ColumnView column, u64 begin, u64 end, void* out) {{ \
             cb2t::decode_rows<{arguments}>(column, begin, end, static_cast<{value}*>(out)); }}\n\
             static void sum_tiles_{index}(cb2t::ColumnView column, u32 first, u32 end, u32 each, u64* out) {{ \
             cb2t::sum_whole_tiles<{arguments}>(column, first, end, each, out); }}\n\
             static void sum_rows_{index}(cb2t::ColumnView column, u64 begin, u64 end, u64* out) {{ \
             cb2t::sum_rows<{arguments}>(column, begin, end, out); }}"
        )
        .unwrap();
        let (bytes, tile_size) = (column.value_width / 8, column.tile_size);
        writeln!(table, "  {{\"{name}, group {group}\", {threads}, {group}, {tile_size}, {bytes}, tiles_{index}, rows_{index}, sum_tiles_{index}, sum_rows_{index}}},")
            .unwrap();
    }
    writeln!(table, "}};\nconst u64 KERNEL_COUNT = {};", kernels.len()).unwrap();
    let cases = include_str!("shim/cases.h");
    join(
        &columns,
        &[DECODE, Part { name: "cases.h", text: cases }, Part { name: "kernels", text: &(text + &table) }],
    )
}

fn input(cases: &[Case]) -> Vec<u8> {
    let mut input = Vec::new();
    for case in cases {
        let entries = case.tiles.len() / 8;
        let header = [
            case.kernel as u64,
            case.bytes.len() as u64,
            entries as u64,
            case.shared_offsets.len() as u64,
            case.rows.start,
            case.rows.end,
            case.tiles_per_group,
        ];
        input.extend_from_slice(header.as_bytes());
        input.extend_from_slice(&case.bytes);
        input.extend_from_slice(&case.tiles);
        input.extend_from_slice(case.shared_offsets.as_bytes());
        input.extend_from_slice(&case.expected);
    }
    input
}

fn agree(kernels: &[KernelType], cases: &[Case]) {
    let Some(program) = ShimProgram::compile(&program_text(kernels)) else { return };
    let output = program.run(&input(cases));
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains(&format!("{} cases agree", cases.len())), "{text}");
}

/// The codecs that encode such values and have a device half; only the one that `CB2T_TEST_CODEC` names, where it is set.
fn decodable(value_width: u8) -> Vec<&'static dyn AnyCodec> {
    let only = std::env::var("CB2T_TEST_CODEC").ok();
    let supporting = REGISTRY.supporting(Layout::values(value_width));
    let wanted = supporting.filter(|codec| only.as_ref().is_none_or(|only| only == codec.name()));
    let codecs: Vec<_> = wanted.filter(|codec| codec.device_source().is_some()).collect();
    assert!(
        !codecs.is_empty(),
        "no codec {} has device code for {value_width} bits",
        only.unwrap_or_default()
    );
    codecs
}

fn column_type<V: Value>(
    tile_size: u32,
    codec: &'static dyn AnyCodec,
    parameters: DeviceParameters,
) -> ColumnType {
    let source = codec.device_source().unwrap_or_else(|| panic!("codec {} has no device code", codec.name()));
    let codecs = vec![CodecInUse { codec: Some((codec.name(), source)), parameters }];
    ColumnType { value_width: V::WIDTH, tile_size, codecs, shared: true }
}

fn encode<V: Value>(codec: &dyn AnyCodec, values: Vec<V>) -> Encoded<V> {
    let mut bytes = Vec::new();
    let shared = codec.encode_shared(V::erase(&values));
    codec.encode_tile(&shared, V::erase(&values), &mut bytes);
    let tile = Tile { bytes: &bytes, shared: &shared, value_count: values.len() };
    let layout = Layout::values(V::WIDTH);
    codec.check_tile(tile, layout).unwrap();
    let parameters = codec.device_parameters(tile, layout);
    bytes.resize(bytes.len().max(1).next_multiple_of(16), 0);
    // What a block keeps for its tiles lies before them.
    let mut before = shared;
    before.resize(before.len().next_multiple_of(16), 0);
    let tile_offset = before.len();
    before.extend_from_slice(&bytes);
    Encoded { bytes: before, tile_offset, values, parameters }
}

fn case_of<V: Value>(kernel: usize, tile: &Encoded<V>) -> Case {
    let rows = 0..tile.values.len() as u64;
    let entry = [tile.tile_offset as u32 / 16, tile.values.len() as u32];
    Case {
        kernel,
        bytes: tile.bytes.clone(),
        tiles: entry.as_bytes().to_vec(),
        shared_offsets: vec![0],
        rows,
        tiles_per_group: 1,
        expected: tile.values.as_bytes().to_vec(),
    }
}

fn hooks<V: Value>() {
    for codec in decodable(V::WIDTH) {
        let (mut kernels, mut cases) = (Vec::new(), Vec::new());
        for tile_size in TILE_SIZES {
            let lengths = LENGTHS.into_iter().filter(|&length| length <= tile_size as usize);
            let named =
                lengths.flat_map(|length| [named_distributions::<V>(length), named_floats::<V>(length)]);
            let mut tiles: Vec<Encoded<V>> =
                named.flatten().map(|(_, values)| encode(codec, values)).collect();
            // Without parameters, every shape. A second group of threads in the thread block does nothing, and must not be in the way.
            for group in GROUPS {
                let threads = if group == 32 { 64 } else { group };
                for tile in &tiles {
                    cases.push(case_of(kernels.len(), tile));
                }
                kernels.push(KernelType {
                    column: column_type::<V>(tile_size, codec, DeviceParameters::default()),
                    group,
                    threads,
                });
            }
            // Specialized for what occurs, some of it at a time.
            tiles.sort_by_key(|tile| tile.parameters);
            let distinct: Vec<&[Encoded<V>]> =
                tiles.chunk_by(|left, right| left.parameters == right.parameters).collect();
            for tiles in distinct.chunks(PARAMETERS_AT_A_TIME) {
                let all = tiles
                    .iter()
                    .map(|tiles| tiles[0].parameters)
                    .fold(DeviceParameters::default(), DeviceParameters::union);
                if all.is_empty() {
                    continue;
                }
                for group in [32, 128] {
                    for tile in tiles.iter().flat_map(|tiles| tiles.iter()) {
                        cases.push(case_of(kernels.len(), tile));
                    }
                    kernels.push(KernelType {
                        column: column_type::<V>(tile_size, codec, all),
                        group,
                        threads: group,
                    });
                }
            }
        }
        agree(&kernels, &cases);
    }
}

#[test]
fn hooks_of_u8() {
    hooks::<u8>();
}

#[test]
fn hooks_of_u16() {
    hooks::<u16>();
}

#[test]
fn hooks_of_u32() {
    hooks::<u32>();
}

#[test]
fn hooks_of_u64() {
    hooks::<u64>();
}

/// A column of several blocks with different codecs, constant blocks among them, in ranges that begin and end anywhere.
fn columns<V: Value>() {
    let mut random = Random(u64::from(V::WIDTH));
    let codecs = decodable(V::WIDTH);
    for tile_size in TILE_SIZES {
        let (mut kernels, mut cases) = (Vec::new(), Vec::new());
        for picked in 0..4 {
            let mut encoded = Vec::new();
            for block in 0..5_u64 {
                let value_count = if block == 4 { 777 } else { 3 * tile_size as usize };
                let bits = random.draw() % u64::from(V::WIDTH);
                let values: Vec<V> = (0..value_count)
                    .map(|_| V::from_u64(if block == picked { 7 } else { random.draw() >> (63 - bits) }))
                    .collect();
                let codec = codecs[(block + picked) as usize % codecs.len()];
                let choice = Choice::Prefer(codec);
                encoded.push(
                    encode_block(
                        V::erase(&values),
                        Kind::Values,
                        Order::Unsigned,
                        tile_size,
                        &REGISTRY,
                        choice,
                    )
                    .unwrap(),
                );
            }
            let blocks: Vec<CheckedBlock<'_>> =
                encoded.iter().map(|block| CheckedBlock::parse(&block.bytes, &REGISTRY).unwrap()).collect();
            let plan = Plan::new(&blocks, &REGISTRY).unwrap();
            let mut bytes = Vec::new();
            let mut values: Vec<u8> = Vec::new();
            for block in &blocks {
                bytes.extend_from_slice(block.bytes());
                bytes.resize(bytes.len().next_multiple_of(64), 0);
                with_values!(OwnedValues, block.decode().unwrap(), decoded => values.extend_from_slice(decoded.as_bytes()));
            }
            assert_eq!(bytes.len(), plan.bytes());
            let value_count = (values.len() / V::BYTES) as u64;
            for group in [32, 256] {
                for _ in 0..6 {
                    let (left, right) =
                        (random.draw() % (value_count + 1), random.draw() % (value_count + 1));
                    let rows = if random.draw().is_multiple_of(4) {
                        0..value_count
                    } else {
                        left.min(right)..left.max(right)
                    };
                    let tiles_per_group = 1 + random.draw() % 3;
                    let part = rows.start as usize * V::BYTES..rows.end as usize * V::BYTES;
                    cases.push(Case {
                        kernel: kernels.len(),
                        bytes: bytes.clone(),
                        tiles: plan.tiles().as_bytes().to_vec(),
                        shared_offsets: plan.shared_offsets().to_vec(),
                        rows,
                        tiles_per_group,
                        expected: values[part].to_vec(),
                    });
                }
                let column = plan.column_type().clone();
                kernels.push(KernelType { column, group, threads: if group == 32 { 96 } else { group } });
            }
        }
        agree(&kernels, &cases);
    }
}

#[test]
fn columns_of_several_codecs() {
    columns::<u8>();
    columns::<u16>();
    columns::<u32>();
    columns::<u64>();
}
