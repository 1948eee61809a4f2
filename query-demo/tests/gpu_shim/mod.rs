//! Runs queries' kernels on the CPU: the same source compiled as C++, the same jobs, under sanitizers.

// Each test binary uses a part.
#![allow(dead_code)]

#[path = "../../../gpu-decode/tests/shim/mod.rs"]
mod shim;

use std::collections::BTreeMap;
use std::fmt::Write;

use codec_core::AnyCodec;
use gpu_decode::source::{ColumnType, DECODE, Part, join};
use query_demo::QueryError;
use query_demo::gpu::bindings::{QUERY, bindings, stage_bytes};
use query_demo::gpu::check::check;
use query_demo::gpu::columns::{ReadColumn, tile_list, tile_size, useful_ranges};
use query_demo::gpu::job::{
    Buffer, FIRST_COPY_BYTES, Job, JobKernel, JobStep, JobWord, Outcome, PipelineJob, planned_slots,
};
use query_demo::gpu::presence::Complete;
use query_demo::gpu::tuple::tuple_code;
use query_demo::gpu::{Options, Placement, Shape};
use query_demo::plan::{GroupWords, Plan};
use query_demo::scan::{Tables, table};
use zerocopy::IntoBytes;

use shim::ShimProgram;

/// Thread blocks that the pretended device holds at a time: few, so that groups take several tiles.
const RESIDENT_BLOCKS: u32 = 3;

/// A column as a device would hold it.
struct HostColumn {
    column_type: ColumnType,
    words: [Vec<u8>; 3],
}

/// A query, ready to be compiled with others into one program.
pub struct ShimQuery {
    plan: Complete,
    pipelines: Vec<PipelineJob>,
    columns: Vec<Vec<HostColumn>>,
    bindings: Vec<String>,
    placement: Placement,
    /// Tiles that were left out.
    pub tiles_skipped: usize,
}

impl ShimQuery {
    pub fn new(plan: &Plan, tables: &Tables, options: &Options) -> Result<Self, QueryError> {
        let complete = Complete::new(plan);
        let plan = &complete.plan;
        check(plan)?;
        let mut query = Self {
            plan: complete.clone(),
            pipelines: Vec::new(),
            columns: Vec::new(),
            bindings: Vec::new(),
            placement: options.placement,
            tiles_skipped: 0,
        };
        for (index, pipeline) in plan.pipelines.iter().enumerate() {
            let table = table(tables, &pipeline.table)?;
            let all = 0..table.row_groups().len();
            let read: Vec<ReadColumn<'_>> = pipeline
                .inputs
                .iter()
                .map(|input| ReadColumn::read(&pipeline.table, table, input, all.clone()))
                .collect::<Result<_, _>>()?;
            let tile_size = tile_size(&read);
            let recode = options.recode()?;
            let (mut columns, mut ranges, mut tile_count) = (Vec::new(), Vec::new(), 0);
            for column in &read {
                let tiles = column.tiles(tile_size, recode, table.registry())?;
                tile_count = tiles.tiles().len() as u32;
                ranges.push(useful_ranges(&tiles));
                let mut bytes = Vec::new();
                for (piece, alignment) in tiles.pieces() {
                    bytes.extend_from_slice(piece);
                    bytes.resize(bytes.len().next_multiple_of(alignment), 0);
                }
                assert_eq!(bytes.len(), tiles.bytes());
                let words =
                    [bytes, tiles.tiles().as_bytes().to_vec(), tiles.shared_offsets().as_bytes().to_vec()];
                columns.push(HostColumn { column_type: tiles.column_type().clone(), words });
            }
            let code = tuple_code(plan, index)?;
            let mut shape = Shape::new(options, tile_size, code.most_threads)?;
            if std::mem::take(&mut shape.fits) {
                // Nothing asks the compiled kernel for its threads.
                shape.threads_per_block = 128;
            }
            let ranges: Vec<_> = ranges.iter().map(Option::as_deref).collect();
            let tile_list = tile_list(pipeline, tile_count, &ranges);
            query.tiles_skipped += tile_list.as_ref().map_or(0, |list| tile_count as usize - list.len());
            let types: Vec<&ColumnType> = columns.iter().map(|column| &column.column_type).collect();
            query.bindings.push(bindings(&code, &types, options.placement, shape));
            let pre_decode = options.placement == Placement::PreDecode;
            query.pipelines.push(PipelineJob {
                shape,
                tile_count,
                tile_list,
                resident_blocks: RESIDENT_BLOCKS,
                stage_bytes: if options.placement == Placement::GlobalStage {
                    stage_bytes(&code, &types)
                } else {
                    0
                },
                decoded_widths: types
                    .iter()
                    .filter(|_| pre_decode)
                    .map(|column| column.value_width)
                    .collect(),
                code,
            });
            query.columns.push(columns);
        }
        Ok(query)
    }

    /// Kernels of its pipelines, then those that decode its columns beforehand.
    fn kernel_count(&self) -> usize {
        self.pipelines.len() + self.columns.iter().flatten().count()
    }

    fn column_number(&self, pipeline: usize, input: usize) -> usize {
        self.pipelines.len() + self.columns[..pipeline].iter().map(Vec::len).sum::<usize>() + input
    }
}

/// Queries compiled into one program.
pub struct ShimQueries {
    program: ShimProgram,
    queries: Vec<ShimQuery>,
}

impl ShimQueries {
    /// `None`, with the reason printed, where there is no C++ compiler.
    pub fn compile(queries: Vec<ShimQuery>) -> Option<Self> {
        let mut columns: Vec<&ColumnType> = Vec::new();
        let (mut text, mut table) = (String::new(), String::from("const Kernel KERNELS[] = {\n"));
        text.push_str("static void compact(const u64* words) { cb2t::query::compact(words); }\n");
        table.push_str("  {compact},\n");
        for (number, query) in queries.iter().enumerate() {
            columns.extend(query.columns.iter().flatten().map(|column| &column.column_type));
            for (index, (pipeline, bindings)) in query.pipelines.iter().zip(&query.bindings).enumerate() {
                let code = pipeline.code.text.replace("extern \"C\" __global__", "static __global__");
                assert_ne!(code, pipeline.code.text);
                writeln!(
                    text,
                    "namespace query{number}_{index} {{\n{bindings}\n{code}\n\
                     static void run(const u64* words) {{ Arguments arguments; std::memcpy(&arguments, words, sizeof arguments); pipeline(arguments); }}\n}}"
                )
                .unwrap();
                writeln!(table, "  {{query{number}_{index}::run}},").unwrap();
            }
            for (index, column) in query.columns.iter().flatten().enumerate() {
                let (name, value) = (column.column_type.cuda(), column.column_type.value());
                let items = column.column_type.tile_size / 32;
                writeln!(
                    text,
                    "static void decode{number}_{index}(const u64* words) {{ \
                     cb2t::decode_whole_tiles<{name}, 32, {items}, 32>(cb2t::query::view(words), 0, static_cast<u32>(words[3]), 1, reinterpret_cast<{value}*>(words[4])); }}"
                )
                .unwrap();
                writeln!(table, "  {{decode{number}_{index}}},").unwrap();
            }
        }
        table.push_str("};\n");
        let source = join(
            &columns,
            &[
                &[DECODE][..],
                &QUERY,
                &[
                    Part { name: "run.h", text: include_str!("run.h") },
                    Part { name: "queries", text: &(text + &table) },
                ],
            ]
            .concat(),
        );
        Some(Self { program: ShimProgram::compile(&source)?, queries })
    }

    pub fn queries(&self) -> &[ShimQuery] {
        &self.queries
    }

    /// Runs query `number`, its threads in this order, with larger hash tables where they are too small. How often that was is the second result.
    pub fn run(&self, number: usize, order: u64) -> Result<(GroupWords, u32), QueryError> {
        let query = &self.queries[number];
        let first_kernel = 1 + self.queries[..number].iter().map(ShimQuery::kernel_count).sum::<usize>();
        let plan = &query.plan.plan;
        let mut slots = planned_slots(plan);
        for again in 0.. {
            let job = Job::new(plan, &query.pipelines, &slots).unwrap();
            let output = self.program.run(&input(query, &job, first_kernel, order));
            let message = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{message}\n{plan}");
            let results = &output.stdout[8..];
            assert_eq!(results.len() as u64, job.buffer_bytes(Buffer::Results));
            let first = &results[..job.first_bytes() as usize];
            let outcome = job.outcome(plan, first, |range| {
                assert_eq!(range.start, FIRST_COPY_BYTES);
                Ok(results[range.start as usize..range.end as usize].to_vec())
            })?;
            match outcome {
                Outcome::Groups(groups) => return Ok((query.plan.shown(groups), again)),
                Outcome::Grow(full) => full.into_iter().for_each(|index| slots[index] *= 4),
            }
        }
        unreachable!()
    }
}

/// Groups by ascending index.
pub fn sorted(groups: &GroupWords) -> GroupWords {
    let each = groups.words.len().checked_div(groups.indexes.len()).unwrap_or(0);
    let of = |group: usize| groups.words[group * each..(group + 1) * each].to_vec();
    let all: BTreeMap<u64, Vec<u64>> =
        groups.indexes.iter().enumerate().map(|(group, &index)| (index, of(group))).collect();
    assert_eq!(all.len(), groups.indexes.len(), "an index occurs twice");
    GroupWords { indexes: all.keys().copied().collect(), words: all.into_values().flatten().collect() }
}

/// The job as run.h reads it.
fn input(query: &ShimQuery, job: &Job, first_kernel: usize, order: u64) -> Vec<u8> {
    let mut buffers: Vec<(Buffer, u64, Option<&[u8]>)> =
        job.bytes.iter().map(|(&buffer, &bytes)| (buffer, bytes, None)).collect();
    buffers.push((Buffer::Data, job.data.len() as u64, Some(&job.data)));
    for (pipeline, columns) in query.columns.iter().enumerate() {
        for (input, column) in columns.iter().enumerate() {
            for (word, bytes) in column.words.iter().enumerate() {
                buffers.push((Buffer::Column { pipeline, input, word }, bytes.len() as u64, Some(bytes)));
            }
        }
    }
    let place = |buffer: Buffer| buffers.iter().position(|(known, ..)| *known == buffer).unwrap() as u64;
    let mut words: Vec<u64> = vec![order, buffers.len() as u64];
    let mut input = words.as_bytes().to_vec();
    for (_, bytes, contents) in &buffers {
        input.extend_from_slice([*bytes, u64::from(contents.is_some())].as_bytes());
        input.extend_from_slice(contents.unwrap_or_default());
    }
    words.clear();
    words.push(job.steps.len() as u64);
    let push_word = |words: &mut Vec<u64>, word: JobWord| match word {
        JobWord::Value(value) => words.extend([0, value]),
        JobWord::Address(buffer, offset) => words.extend([1 + place(buffer), offset]),
    };
    for step in &job.steps {
        match step {
            JobStep::Fill { buffer, range, byte } => {
                words.extend([0, place(*buffer), range.start, range.end, u64::from(*byte)]);
            }
            JobStep::Launch { kernel, thread_blocks, threads_per_block, words: arguments, .. } => {
                let kernel = match kernel {
                    JobKernel::Pipeline(index) => first_kernel + index,
                    JobKernel::Compact => 0,
                };
                words.extend([1, kernel as u64, u64::from(*thread_blocks), u64::from(*threads_per_block)]);
                words.push(arguments.len() as u64);
                arguments.iter().for_each(|&argument| push_word(&mut words, argument));
            }
            &JobStep::Decode { pipeline, input } => {
                let tile_count = u64::from(query.pipelines[pipeline].tile_count);
                let kernel = first_kernel + query.column_number(pipeline, input);
                words.extend([1, kernel as u64, tile_count, 32, 5]);
                for word in 0..3 {
                    push_word(&mut words, JobWord::Address(Buffer::Column { pipeline, input, word }, 0));
                }
                push_word(&mut words, JobWord::Value(tile_count));
                push_word(&mut words, JobWord::Address(Buffer::Decoded { pipeline, input }, 0));
            }
        }
    }
    words.push(place(Buffer::Results));
    input.extend_from_slice(words.as_bytes());
    input
}

/// The codec of that name, which the tests alone may know.
pub fn codec(name: &str) -> &'static dyn AnyCodec {
    codecs::REGISTRY.by_name(name).unwrap()
}
