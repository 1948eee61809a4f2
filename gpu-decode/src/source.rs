//! What a program is joined from: prelude, packing, encoding, the codecs in use, the column, and kernels, each after a `#line` that names it in the compiler's messages.

use std::fmt::Write;

use codec_core::DeviceParameters;

use crate::decode::LaunchShape;

const PRELUDE: Part<'_> = Part { name: "prelude.cuh", text: include_str!("../cuda/prelude.cuh") };
const PACKING: Part<'_> = Part { name: "packing.cuh", text: include_str!("../cuda/packing.cuh") };
const ENCODING: Part<'_> = Part { name: "encoding.cuh", text: include_str!("../cuda/encoding.cuh") };
const COLUMN: Part<'_> = Part { name: "column.cuh", text: include_str!("../cuda/column.cuh") };
/// The bodies of the kernels that decode to memory and that sum.
pub const DECODE: Part<'_> = Part { name: "decode.cuh", text: include_str!("../cuda/decode.cuh") };

/// A piece of CUDA C++ and the name that the compiler gives it in messages.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// File name.
    pub name: &'a str,
    /// Text, whole lines.
    pub text: &'a str,
}

/// A codec of a column: its device half and what that is specialized for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecInUse {
    /// The codec's name; `None` for constant blocks, which need no codec.
    pub codec: Option<(&'static str, &'static str)>,
    /// The union over the column's tiles.
    pub parameters: DeviceParameters,
}

impl CodecInUse {
    /// The codec's name, "constant" for constant blocks.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.codec.map_or("constant", |(name, _)| name)
    }

    /// As in `codec::NAME<u32, 0x40ull, 0x0ull>`.
    #[must_use]
    pub fn cuda(&self, value: &str) -> String {
        let DeviceParameters { low, high } = self.parameters;
        match self.codec {
            None => format!("cb2t::ConstantBlock<{value}, 0, 0>"),
            Some((name, _)) => {
                format!("codec::{}<{value}, {low:#x}ull, {high:#x}ull>", name.replace('-', "_"))
            }
        }
    }
}

/// The type of a column in CUDA C++: everything that its kernels are specialized for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnType {
    /// Bits a value: 8, 16, 32 or 64.
    pub value_width: u8,
    /// Values a tile.
    pub tile_size: u32,
    /// The codecs, in the order of the tiles' codec numbers.
    pub codecs: Vec<CodecInUse>,
    /// Whether any block keeps bytes for all its tiles.
    pub shared: bool,
}

impl ColumnType {
    /// As in `cb2t::Column<u32, false, codec::NAME<u32, 0x40ull, 0x0ull>>`.
    #[must_use]
    pub fn cuda(&self) -> String {
        let value = self.value();
        let codecs: Vec<String> = self.codecs.iter().map(|codec| codec.cuda(value)).collect();
        format!("cb2t::Column<{value}, {}, {}>", self.shared, codecs.join(", "))
    }

    /// The type that makes no use of what occurs in the column.
    #[must_use]
    pub fn general(&self) -> Self {
        let mut general = self.clone();
        for codec in &mut general.codecs {
            codec.parameters = DeviceParameters::default();
        }
        general
    }

    /// The values' type in CUDA C++.
    #[must_use]
    pub fn value(&self) -> &'static str {
        match self.value_width {
            8 => "u8",
            16 => "u16",
            32 => "u32",
            _ => "u64",
        }
    }
}

/// A program over columns of these types: prelude, packing, encoding, each codec once, column, then `parts`.
#[must_use]
pub fn join(columns: &[&ColumnType], parts: &[Part<'_>]) -> String {
    let mut text = String::new();
    add(&mut text, PRELUDE);
    add(&mut text, PACKING);
    add(&mut text, ENCODING);
    let mut added: Vec<&str> = Vec::new();
    for (name, source) in columns.iter().flat_map(|column| &column.codecs).filter_map(|codec| codec.codec) {
        if !added.contains(&name) {
            added.push(name);
            add(&mut text, Part { name: &format!("{name}.cuh"), text: source });
        }
    }
    add(&mut text, COLUMN);
    for &part in parts {
        add(&mut text, part);
    }
    text
}

fn add(text: &mut String, part: Part<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "#line 1 \"{}\"\n{}", part.name, part.text);
}

/// What a kernel does with the values of a column. Each has a program of its own: who decodes does not wait for the compilation of what sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Writes them to device memory.
    Decode,
    /// Adds them.
    Sum,
}

impl Work {
    /// The kernel's name.
    #[must_use]
    pub fn kernel(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Sum => "sum",
        }
    }

    /// What it writes to: values, or partial sums.
    fn output(self, column: &ColumnType) -> &'static str {
        match self {
            Self::Decode => column.value(),
            Self::Sum => "u64",
        }
    }
}

/// The kernel for whole tiles of one column in one launch shape, specialized for what occurs in it.
#[must_use]
pub fn whole_tiles_program(column: &ColumnType, shape: LaunchShape, work: Work) -> String {
    let (bounds, name) = (bounds(shape), arguments(column, shape));
    let (kernel, output) = (work.kernel(), work.output(column));
    let text = format!(
        "extern \"C\" __global__ void {bounds} {kernel}(cb2t::ColumnView column, u32 first_tile, u32 tile_end, u32 tiles_per_group, {output}* out) {{\n  \
         cb2t::{kernel}_whole_tiles<{name}>(column, first_tile, tile_end, tiles_per_group, out);\n}}\n"
    );
    join(&[column], &[DECODE, Part { name: "whole_tiles.cu", text: &text }])
}

/// The kernel for any rows of columns like this one: not specialized, so that one program serves all columns with these codecs.
#[must_use]
pub fn rows_program(column: &ColumnType, shape: LaunchShape, work: Work) -> String {
    let column = &column.general();
    let shape = LaunchShape { blocks_per_multiprocessor: 1, ..shape };
    let (bounds, name) = (bounds(shape), arguments(column, shape));
    let (kernel, output) = (work.kernel(), work.output(column));
    let text = format!(
        "extern \"C\" __global__ void {bounds} {kernel}(cb2t::ColumnView column, u64 begin, u64 end, {output}* out) {{\n  \
         cb2t::{kernel}_rows<{name}>(column, begin, end, out);\n}}\n"
    );
    join(&[column], &[DECODE, Part { name: "rows.cu", text: &text }])
}

fn bounds(shape: LaunchShape) -> String {
    format!("__launch_bounds__({}, {})", shape.threads_per_block, shape.blocks_per_multiprocessor)
}

/// Template arguments of all these kernels: column, group, items_per_thread, threads_per_block.
fn arguments(column: &ColumnType, shape: LaunchShape) -> String {
    let items = column.tile_size / shape.group.max(1);
    format!("{}, {}, {items}, {}", column.cuda(), shape.group, shape.threads_per_block)
}
