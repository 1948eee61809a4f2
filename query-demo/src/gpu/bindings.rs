//! Bindings: what a pipeline's tuple code finds under the names that it uses. Column types, placement and launch shape are here, and nowhere in tuple code.

use std::fmt::Write;

use gpu_decode::source::{ColumnType, Part, join};

use crate::gpu::options::{Placement, Shape};
use crate::gpu::tuple::TupleCode;

/// Hand-written device code that tuple code is made of.
pub const QUERY: [Part<'_>; 3] = [
    Part { name: "query.cuh", text: include_str!("../../cuda/query.cuh") },
    Part { name: "tables.cuh", text: include_str!("../../cuda/tables.cuh") },
    Part { name: "groups.cuh", text: include_str!("../../cuda/groups.cuh") },
];

/// The bindings of a pipeline over `columns`, the types of all its inputs, of which `code` uses some.
#[must_use]
pub fn bindings(code: &TupleCode, columns: &[&ColumnType], placement: Placement, shape: Shape) -> String {
    let Shape { threads_per_block, fits, group, items_per_thread, most_threads, min_blocks, pack_indexes } =
        shape;
    let mut text = format!(
        "constexpr u32 ITEMS = {items_per_thread};\n\
         using Group = cb2t::Group<{group}>;\n\
         using Index16 = u{};\n",
        if pack_indexes { 16 } else { 32 }
    );
    let (mut places, mut scratch) = (String::new(), String::new());
    for &input in &code.inputs {
        let Some(column) = columns.get(input) else { continue };
        let (class, of) = match placement {
            Placement::Register | Placement::Uncompressed => ("InRegisters", column.cuda()),
            Placement::Shared | Placement::GlobalStage => ("InMemory", column.cuda()),
            Placement::PreDecode => ("Decoded", column.value().to_owned()),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "using Input{input} = cb2t::query::{class}<{of}, Group, ITEMS>;");
        let _ = write!(places, " Input{input}::Place input{input};");
        if placement != Placement::PreDecode {
            let _ = write!(scratch, ", {}", column.cuda());
        }
    }
    let memory = if placement == Placement::GlobalStage { "StagedPlaces" } else { "SharedPlaces" };
    let threads = if fits {
        format!("cb2t::query::fitting_threads<Group, {threads_per_block}, sizeof(OfGroups<1>::OfGroup)>()")
    } else {
        threads_per_block.to_string()
    };
    let blocks = min_blocks
        .map_or_else(|| format!("cb2t::larger({most_threads} / THREADS, 1)"), |blocks| blocks.to_string());
    let _ = write!(
        text,
        "struct Places {{{places} }};\n\
         template <u32 GROUPS>\n\
         using OfGroups = cb2t::query::{memory}<Places, cb2t::query::scratch_bytes<Group, ITEMS{scratch}>(), GROUPS>;\n\
         constexpr u32 THREADS = {threads};\n\
         constexpr u32 MIN_BLOCKS = {blocks};\n\
         using Memory = OfGroups<THREADS / Group::size>;\n"
    );
    text
}

/// Bytes of [`Placement::GlobalStage`] that a group of threads needs.
#[must_use]
pub fn stage_bytes(code: &TupleCode, columns: &[&ColumnType]) -> u64 {
    let bytes = |&input: &usize| {
        columns.get(input).map_or(0, |column| u64::from(column.tile_size) * u64::from(column.value_width / 8))
    };
    // An empty structure takes a byte; longer ones end at a multiple of their widest value.
    code.inputs.iter().map(bytes).sum::<u64>().next_multiple_of(8).max(8)
}

/// The whole program of a pipeline, with the kernel `pipeline`.
#[must_use]
pub fn program(code: &TupleCode, columns: &[&ColumnType], placement: Placement, shape: Shape) -> String {
    let bindings = bindings(code, columns, placement, shape);
    let used: Vec<&ColumnType> = if placement == Placement::PreDecode {
        Vec::new()
    } else {
        code.inputs.iter().filter_map(|&input| columns.get(input).copied()).collect()
    };
    join(
        &used,
        &with_query(&[Part { name: "bindings", text: &bindings }, Part { name: "tuples", text: &code.text }]),
    )
}

/// The program that collects groups, with the kernel `compact`. Every query uses the same.
#[must_use]
pub fn compact_program() -> String {
    let text = "struct Arguments {\n  u64 words[7];\n};\n\
                extern \"C\" __global__ void __launch_bounds__(256) compact(const __grid_constant__ Arguments arguments) {\n  \
                cb2t::query::compact(arguments.words);\n}\n";
    join(&[], &with_query(&[Part { name: "compact.cu", text }]))
}

fn with_query<'a>(parts: &[Part<'a>]) -> Vec<Part<'a>> {
    [&QUERY, parts].concat()
}
