//! A query's part on one device: uploaded, compiled, laid out in memory.

mod run;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gpu_decode::decode::Decoder;
use gpu_decode::program::{Kernel, Origin, Resources};
use gpu_decode::source::{ColumnType, Work};
use gpu_decode::{Device, DeviceMemory, GpuError, PinnedMemory, Program, Recording};
use rayon::prelude::*;

use crate::QueryError;
use crate::gpu::bindings::{compact_program, program, stage_bytes};
use crate::gpu::columns::tile_list;
use crate::gpu::device::{GpuProfile, ProgramProfile};
use crate::gpu::job::{Buffer, FIRST_COPY_BYTES, Job, PipelineJob, planned_slots};
use crate::gpu::options::{Options, Placement, Shape};
use crate::gpu::store::{Part, QueryColumn, Store};
use crate::gpu::tuple::{TupleCode, tuple_code};
use crate::plan::Plan;
use crate::scan::{Tables, table};

pub use run::{Launched, Times};

/// A query on one device.
#[derive(Debug)]
pub struct PreparedPart {
    device: Device,
    pipelines: Vec<PreparedPipeline>,
    compact: Option<(String, Kernel)>,
    slots: Vec<u64>,
    job: Job,
    memory: BTreeMap<Buffer, DeviceMemory>,
    first_copy: PinnedMemory,
    /// Of the first run after memory was laid out.
    times: Option<Times>,
    recording: Option<Recording>,
    /// Queues for builds that do not need each other.
    forks: Vec<Device>,
}

#[derive(Debug)]
struct PreparedPipeline {
    code: TupleCode,
    shape: Shape,
    columns: Vec<Arc<QueryColumn>>,
    tile_count: u32,
    tile_list: Option<Vec<u32>>,
    source: String,
    stage_bytes: u64,
    compiled: Option<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    kernel: Kernel,
    shape: Shape,
    origin: Origin,
    ms: f64,
    resources: Resources,
}

impl PreparedPart {
    /// Uploads the columns, and makes the kernels' source. `share` are the row groups of the table that is aggregated.
    ///
    /// # Errors
    /// As [`crate::gpu::Prepared::new`].
    pub fn upload(
        device: &Device,
        store: &Store,
        plan: &Plan,
        tables: &Tables,
        options: &Options,
        share: Range<usize>,
    ) -> Result<Self, QueryError> {
        let recode = options.recode()?;
        let mut pipelines = Vec::new();
        for (index, pipeline) in plan.pipelines.iter().enumerate() {
            let name = pipeline.table.as_str();
            let table = table(tables, name)?;
            let row_groups =
                if index + 1 == plan.pipelines.len() { share.clone() } else { 0..table.row_groups().len() };
            let (first_row_group, row_group_end) = (row_groups.start, row_groups.end);
            let part = Part { device, name, table, first_row_group, row_group_end, recode };
            let columns = store.columns(part, pipeline)?;
            let code = tuple_code(plan, index)?;
            let types: Vec<&ColumnType> = columns.iter().map(|column| column.column.column_type()).collect();
            let tile_size = types.first().map_or(1024, |column| column.tile_size);
            let shape = Shape::new(options, tile_size, code.most_threads)?;
            let tile_count = columns.first().map_or(0, |column| column.tile_count);
            let ranges: Vec<_> = columns.iter().map(|column| column.ranges.as_deref()).collect();
            let tile_list =
                if options.keep_all_tiles { None } else { tile_list(pipeline, tile_count, &ranges) };
            let source = program(&code, &types, options.placement, shape);
            let stage_bytes =
                if options.placement == Placement::GlobalStage { stage_bytes(&code, &types) } else { 0 };
            pipelines.push(PreparedPipeline {
                code,
                shape,
                tile_count,
                tile_list,
                source,
                stage_bytes,
                compiled: None,
                columns,
            });
        }
        Ok(Self {
            first_copy: PinnedMemory::allocate(device, usize::try_from(FIRST_COPY_BYTES).unwrap_or(0))?,
            device: device.clone(),
            pipelines,
            compact: None,
            slots: planned_slots(plan),
            job: Job::default(),
            memory: BTreeMap::new(),
            times: None,
            recording: None,
            forks: Vec::new(),
        })
    }

    /// Compiles all programs, those that are not known yet in parallel, and lays out the memory.
    ///
    /// # Errors
    /// No NVRTC, kernels that do not fit the device, or too little device memory.
    pub fn compile(&mut self, plan: &Plan, options: &Options) -> Result<(), QueryError> {
        let (device, placement) = (&self.device, options.placement);
        let compact = compact_program();
        let mut sources: Vec<&str> = self.pipelines.iter().map(|pipeline| pipeline.source.as_str()).collect();
        sources.push(&compact);
        sources.sort_unstable();
        sources.dedup();
        let programs: BTreeMap<&str, Program> = sources
            .into_par_iter()
            .map(|source| Ok((source, device.program(source, &options.compiler)?)))
            .collect::<Result<_, GpuError>>()
            .map_err(|error| too_much_shared_memory(error, &self.pipelines))?;
        let missing =
            || GpuError::Driver { what: "finding a program", message: "it was not compiled".into() };
        let kernel = programs.get(compact.as_str()).ok_or_else(missing)?.kernel(device, "compact")?;
        let mut compiled = Vec::new();
        for pipeline in &self.pipelines {
            let program = programs.get(pipeline.source.as_str()).ok_or_else(missing)?;
            let added = u32::try_from(pipeline.code.near_bytes).unwrap_or(u32::MAX);
            let kernel = program.kernel(device, "pipeline")?.with_added_shared_memory(added)?;
            let mut shape = pipeline.shape;
            if shape.fits {
                shape.threads_per_block = kernel.most_threads()?;
            }
            let resources = kernel.resources(shape.threads_per_block)?;
            if resources.blocks_per_multiprocessor == 0 {
                return Err(QueryError::Options {
                    reason: format!(
                        "a thread block of {} threads needs more registers ({} a thread) or shared memory ({} bytes) than a multiprocessor has: use fewer threads_per_block",
                        shape.threads_per_block, resources.registers, resources.shared_bytes
                    ),
                });
            }
            compiled.push(Compiled {
                kernel,
                shape,
                origin: program.origin(),
                ms: program.milliseconds(),
                resources,
            });
            if placement == Placement::PreDecode {
                for &input in &pipeline.code.inputs {
                    if let Some(column) = pipeline.columns.get(input) {
                        Decoder::with_defaults(&column.column).whole_tiles(Work::Decode)?;
                    }
                }
            }
        }
        self.compact = Some((compact, kernel));
        for (pipeline, compiled) in self.pipelines.iter_mut().zip(compiled) {
            pipeline.shape = compiled.shape;
            pipeline.compiled = Some(compiled);
        }
        self.lay_out(plan, placement)
    }

    fn lay_out(&mut self, plan: &Plan, placement: Placement) -> Result<(), QueryError> {
        let multiprocessors = self.device.info().multiprocessor_count;
        let jobs: Vec<PipelineJob> = self
            .pipelines
            .iter()
            .map(|pipeline| PipelineJob {
                code: pipeline.code.clone(),
                shape: pipeline.shape,
                tile_count: pipeline.tile_count,
                tile_list: pipeline.tile_list.clone(),
                resident_blocks: multiprocessors
                    * pipeline
                        .compiled
                        .as_ref()
                        .map_or(1, |compiled| compiled.resources.blocks_per_multiprocessor),
                stage_bytes: pipeline.stage_bytes,
                decoded_widths: if placement == Placement::PreDecode {
                    pipeline.columns.iter().map(|column| column.column.column_type().value_width).collect()
                } else {
                    Vec::new()
                },
            })
            .collect();
        let job = Job::new(plan, &jobs, &self.slots)?;
        (self.times, self.recording) = (None, None);
        // What was there is freed first.
        self.memory.clear();
        for (&buffer, &bytes) in &job.bytes {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.memory.insert(buffer, DeviceMemory::allocate(&self.device, bytes)?);
        }
        let mut data = DeviceMemory::allocate(&self.device, job.data.len())?;
        data.write(0, &job.data)?;
        self.memory.insert(Buffer::Data, data);
        self.job = job;
        Ok(())
    }

    /// What of the query is on the device, added to `profile`.
    pub fn describe(&self, profile: &mut GpuProfile) {
        for (index, pipeline) in self.pipelines.iter().enumerate() {
            let tiles = u64::from(pipeline.tile_count);
            let left = pipeline.tile_list.as_ref().map_or(tiles, |list| list.len() as u64);
            profile.tiles += tiles;
            profile.tiles_skipped += tiles - left;
            for (input, column) in pipeline.columns.iter().enumerate() {
                profile.column_bytes += column.column.device_bytes();
                if pipeline.code.inputs.contains(&input) {
                    let bytes =
                        u128::from(column.column.read_bytes()) * u128::from(left) / u128::from(tiles.max(1));
                    profile.tile_bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
                }
            }
            if let Some(compiled) = &pipeline.compiled {
                let Compiled { origin, ms, resources, .. } = *compiled;
                let shape = pipeline.shape;
                profile.programs.push(ProgramProfile { pipeline: index, shape, origin, ms, resources });
            }
        }
        profile.table_bytes += self.memory.values().map(|memory| memory.len() as u64).sum::<u64>();
    }

    /// The programs' texts.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        let compact = self.compact.iter().map(|(source, _)| source.as_str());
        self.pipelines.iter().map(|pipeline| pipeline.source.as_str()).chain(compact)
    }
}

/// The compiler's message about shared memory as advice.
fn too_much_shared_memory(error: GpuError, pipelines: &[PreparedPipeline]) -> QueryError {
    let GpuError::Compile { log, .. } = &error else { return error.into() };
    // As in: uses too much shared data (0x10c00 bytes, 0xc000 max)
    let Some((_, numbers)) = log.split_once("too much shared data (") else { return error.into() };
    let mut numbers = numbers.split(|letter: char| !letter.is_ascii_alphanumeric()).filter_map(|number| {
        number.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
    });
    let (Some(needed), Some(room)) = (numbers.next(), numbers.next()) else { return error.into() };
    let threads = pipelines.iter().map(|pipeline| pipeline.shape.threads_per_block).max().unwrap_or(32);
    let fit = (u64::from(threads) * room / needed.max(1) / 32 * 32).max(32);
    QueryError::Options {
        reason: format!(
            "a thread block of {threads} threads needs {needed} bytes of shared memory, and {room} are possible: with a warp a tile, about {fit} threads_per_block fit; \
             with a thread block a tile (items_per_thread = tile size / threads_per_block) each column takes one tile"
        ),
    }
}
