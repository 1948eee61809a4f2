//! A query's part on one device: uploaded, compiled, run.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use gpu_decode::decode::Decoder;
use gpu_decode::program::{Argument, Kernel, Origin, Resources, Words};
use gpu_decode::source::{ColumnType, Work};
use gpu_decode::{Device, DeviceMemory, GpuError, PinnedMemory, Program, Recording};
use rayon::prelude::*;

use crate::QueryError;
use crate::gpu::bindings::{compact_program, program, stage_bytes};
use crate::gpu::columns::tile_list;
use crate::gpu::device::{GpuProfile, KernelProfile, ProgramProfile};
use crate::gpu::job::{
    Buffer, FIRST_COPY_BYTES, Job, JobKernel, JobStep, JobWord, Outcome, PipelineJob, planned_slots,
};
use crate::gpu::options::{Options, Placement, Shape};
use crate::gpu::store::{Part, QueryColumn, Store};
use crate::gpu::tuple::{TupleCode, tuple_code};
use crate::plan::{GroupWords, Plan};
use crate::scan::{Tables, table};

/// Times that a query runs with larger hash tables before it is given up: beyond, they have more slots than there are 32-bit numbers.
const MOST_RUNS_AGAIN: u32 = 16;

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

/// Milliseconds of one run on one device.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// Decoding beforehand.
    pub decode_ms: f64,
    /// Each kernel.
    pub kernels: Vec<KernelProfile>,
    /// All of them.
    pub kernels_ms: f64,
    /// From the first launch until the result was on the host.
    pub total_ms: f64,
    /// Runs with larger hash tables.
    pub runs_again: u32,
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

    /// Runs until no hash table was too small.
    ///
    /// # Errors
    /// As [`crate::gpu::Prepared::run`].
    pub fn run(&mut self, plan: &Plan) -> Result<(GroupWords, Times), QueryError> {
        let mut runs_again = 0;
        loop {
            let (outcome, mut times) = self.run_once(plan)?;
            match outcome {
                Outcome::Groups(groups) => {
                    times.runs_again = runs_again;
                    return Ok((groups, times));
                }
                Outcome::Grow(full) => {
                    runs_again += 1;
                    let capacity = full.iter().filter_map(|&index| self.slots.get(index)).max().copied();
                    if runs_again > MOST_RUNS_AGAIN {
                        return Err(QueryError::TooManyGroups { capacity: capacity.unwrap_or(0) / 2 });
                    }
                    for index in full {
                        if let Some(slots) = self.slots.get_mut(index) {
                            *slots = slots.saturating_mul(4);
                        }
                    }
                    let placement =
                        if self.decodes_beforehand() { Placement::PreDecode } else { Placement::Register };
                    self.lay_out(plan, placement)?;
                }
            }
        }
    }

    fn decodes_beforehand(&self) -> bool {
        self.job.steps.iter().any(|step| matches!(step, JobStep::Decode { .. }))
    }

    /// The first run after memory was laid out asks for one thing after the other, with marks between; the next ones launch a recording of the same.
    fn run_once(&mut self, plan: &Plan) -> Result<(Outcome, Times), QueryError> {
        // Decoding beforehand is timed apart.
        let is_recorded = self.times.is_some() && !self.decodes_beforehand();
        let job = std::mem::take(&mut self.job);
        let run = if is_recorded { self.run_recorded(&job, plan) } else { self.run_marked(&job, plan) };
        self.job = job;
        run
    }

    fn run_marked(&mut self, job: &Job, plan: &Plan) -> Result<(Outcome, Times), QueryError> {
        let start = Instant::now();
        let mut marks = vec![(String::new(), self.device.event()?)];
        for (number, step) in job.steps.iter().enumerate() {
            self.ask(step, &self.device.clone())?;
            // One mark behind all fills, and one behind each of the others.
            let next_fills = matches!(job.steps.get(number + 1), Some(JobStep::Fill { .. }));
            let name = match step {
                JobStep::Decode { .. } => "decode".to_owned(),
                JobStep::Fill { .. } if next_fills => continue,
                JobStep::Fill { .. } => "fill".to_owned(),
                JobStep::Launch { kernel: JobKernel::Pipeline(index), .. } => format!("pipeline {index}"),
                JobStep::Launch { kernel: JobKernel::Compact, .. } => "compact".to_owned(),
            };
            marks.push((name, self.device.event()?));
        }
        let outcome = job.outcome(plan, |range| self.read_results(range))?;
        let mut times = Times { total_ms: start.elapsed().as_secs_f64() * 1e3, ..Times::default() };
        for pair in marks.windows(2) {
            let [(_, from), (name, to)] = pair else { continue };
            let ms = from.milliseconds_until(to)?;
            match name.as_str() {
                "decode" => times.decode_ms += ms,
                _ => {
                    times.kernels_ms += ms;
                    times.kernels.push(KernelProfile { name: name.clone(), ms });
                }
            }
        }
        self.times = Some(times.clone());
        Ok((outcome, times))
    }

    fn run_recorded(&mut self, job: &Job, plan: &Plan) -> Result<(Outcome, Times), QueryError> {
        let mut recording = match self.recording.take() {
            Some(recording) => recording,
            None => {
                while self.forks.len() < job.steps.iter().filter(|step| is_apart(step)).count() {
                    self.forks.push(self.device.fork()?);
                }
                self.device.clone().record(|| self.enqueue(job))?
            }
        };
        let start = Instant::now();
        let first = self.device.event()?;
        // SAFETY: the recorded work is this job's (`launch` says why it stays within its memory), on memory and columns that live as long as this value, and the results that are read next
        // come after all of it. `lay_out` drops the recording before it frees memory.
        unsafe { recording.launch() }?;
        let last = self.device.event()?;
        let outcome = job.outcome(plan, |range| self.read_results(range))?;
        let total_ms = start.elapsed().as_secs_f64() * 1e3;
        self.recording = Some(recording);
        let kernels_ms = first.milliseconds_until(&last)?;
        Ok((outcome, Times { total_ms, kernels_ms, ..self.times.clone().unwrap_or_default() }))
    }

    /// Asks for all steps. Builds that do not need each other run side by side.
    fn enqueue(&mut self, job: &Job) -> Result<(), QueryError> {
        let (device, forks) = (self.device.clone(), self.forks.clone());
        let mut unused = forks.iter();
        let mut waited_for = Vec::new();
        for step in &job.steps {
            if is_apart(step)
                && let Some(fork) = unused.next()
            {
                fork.join(&device)?;
                self.ask(step, fork)?;
                waited_for.push(fork);
                continue;
            }
            if matches!(step, JobStep::Launch { .. }) {
                waited_for.drain(..).try_for_each(|fork| device.join(fork))?;
            }
            self.ask(step, &device)?;
        }
        waited_for.drain(..).try_for_each(|fork| device.join(fork)).map_err(QueryError::from)
    }

    /// Asks `queue` for a step; what is not a kernel is asked of the device itself.
    fn ask(&mut self, step: &JobStep, queue: &Device) -> Result<(), QueryError> {
        match step {
            JobStep::Decode { pipeline, input } => self.decode(*pipeline, *input),
            JobStep::Fill { buffer, range, byte } => {
                let at = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
                if let Some(memory) = self.memory.get_mut(buffer) {
                    memory.fill_range(at(range.start)..at(range.end), *byte)?;
                }
                Ok(())
            }
            JobStep::Launch { kernel, thread_blocks, threads_per_block, words, .. } => {
                self.launch(queue, *kernel, *thread_blocks, *threads_per_block, words)
            }
        }
    }

    fn decode(&mut self, pipeline: usize, input: usize) -> Result<(), QueryError> {
        let column = self.pipelines.get(pipeline).and_then(|pipeline| pipeline.columns.get(input));
        let memory = self.memory.get_mut(&Buffer::Decoded { pipeline, input });
        if let (Some(column), Some(memory)) = (column, memory) {
            Decoder::with_defaults(&column.column).decode(0..column.column.value_count(), memory)?;
        }
        Ok(())
    }

    fn launch(
        &self,
        queue: &Device,
        kernel: JobKernel,
        thread_blocks: u32,
        threads_per_block: u32,
        words: &[JobWord],
    ) -> Result<(), QueryError> {
        let missing =
            || GpuError::Driver { what: "launching a kernel", message: "it was not compiled".into() };
        let kernel = match kernel {
            JobKernel::Compact => self.compact.as_ref().map(|(_, kernel)| kernel),
            JobKernel::Pipeline(index) => {
                let pipeline = self.pipelines.get(index);
                pipeline.and_then(|pipeline| pipeline.compiled.as_ref()).map(|compiled| &compiled.kernel)
            }
        };
        let kernel = kernel.ok_or_else(missing)?;
        let words: Vec<u64> = words.iter().map(|word| self.word(*word)).collect::<Result<_, _>>()?;
        let words = Words::new(&words).ok_or_else(missing)?;
        // SAFETY: the kernel's one parameter is a structure of as many words as `words` has (`tuple_code`, `compact_program`), each of the meaning that `Job::new` has given it. What
        // it reads are the columns that `Store` has proven and uploaded, within their tiles, and tables; what it writes are the parts of this job's memory that `Job` has laid out
        // for it: every index is compared with the size of its part by generated code (`proven`, `Extent`, `Slots`) or by `check`. Columns and memory live as long as this value,
        // whose memory waits for the device before it is freed.
        unsafe { kernel.launch_on(queue, thread_blocks, threads_per_block, &[Argument::Words(&words)]) }?;
        Ok(())
    }

    fn word(&self, word: JobWord) -> Result<u64, QueryError> {
        let missing =
            || GpuError::Driver { what: "launching a kernel", message: "memory was not laid out".into() };
        Ok(match word {
            JobWord::Value(value) => value,
            JobWord::Address(Buffer::Column { pipeline, input, word }, offset) => {
                let column = self.pipelines.get(pipeline).and_then(|pipeline| pipeline.columns.get(input));
                let words = column.ok_or_else(missing)?.column.view().words();
                words.get(word).ok_or_else(missing)? + offset
            }
            JobWord::Address(buffer, offset) => {
                self.memory.get(&buffer).ok_or_else(missing)?.address() + offset
            }
        })
    }

    fn read_results(&mut self, range: Range<u64>) -> Result<Vec<u8>, QueryError> {
        let at = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = at(range.end - range.start);
        let Some(results) = self.memory.get(&Buffer::Results) else { return Ok(Vec::new()) };
        if bytes <= self.first_copy.bytes().len() {
            results.read_pinned(at(range.start), bytes, &mut self.first_copy)?;
            return Ok(self.first_copy.bytes().get(..bytes).unwrap_or_default().to_vec());
        }
        // Checked before it is allocated.
        if at(range.end) > results.len() {
            return Err(QueryError::TooManyGroups { capacity: results.len() as u64 / 16 });
        }
        let mut read = vec![0; bytes];
        results.read(at(range.start), &mut read)?;
        Ok(read)
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

fn is_apart(step: &JobStep) -> bool {
    matches!(step, JobStep::Launch { is_apart: true, .. })
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
