//! Runs of a query on one device: the first one marked step by step, the next ones recorded.

use std::ops::Range;
use std::time::Instant;

use gpu_decode::decode::Decoder;
use gpu_decode::program::{Argument, Words};
use gpu_decode::{Device, GpuError};

use super::PreparedPart;
use crate::QueryError;
use crate::gpu::device::KernelProfile;
use crate::gpu::job::{Buffer, Job, JobKernel, JobStep, JobWord, Outcome};
use crate::gpu::options::Placement;
use crate::plan::{GroupWords, Plan};

/// Times that a query runs with larger hash tables before it is given up: beyond, they have more slots than there are 32-bit numbers.
const MOST_RUNS_AGAIN: u32 = 16;

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
        let device = self.device.clone();
        let mut marks = vec![(String::new(), device.event()?)];
        for (number, step) in job.steps.iter().enumerate() {
            self.ask(step, &device)?;
            // One mark behind all fills, and one behind each of the others.
            let next_fills = matches!(job.steps.get(number + 1), Some(JobStep::Fill { .. }));
            let name = match step {
                JobStep::Decode { .. } => "decode".to_owned(),
                JobStep::Fill { .. } if next_fills => continue,
                JobStep::Fill { .. } => "fill".to_owned(),
                JobStep::Launch { kernel: JobKernel::Pipeline(index), .. } => format!("pipeline {index}"),
                JobStep::Launch { kernel: JobKernel::Compact, .. } => "compact".to_owned(),
            };
            marks.push((name, device.event()?));
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
}

fn is_apart(step: &JobStep) -> bool {
    matches!(step, JobStep::Launch { is_apart: true, .. })
}
