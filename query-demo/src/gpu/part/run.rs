//! Runs of a query on one device: the first one marked step by step, the next ones recorded.

use std::ops::Range;

use gpu_decode::decode::Decoder;
use gpu_decode::program::{Argument, Words};
use gpu_decode::{Device, DeviceEvent, GpuError};

use super::PreparedPart;
use crate::QueryError;
use crate::gpu::device::KernelProfile;
use crate::gpu::job::{Buffer, Job, JobKernel, JobStep, JobWord, Outcome};
use crate::gpu::options::Placement;
use crate::plan::{GroupWords, Plan};

/// Times that a query runs with larger hash tables before it is given up: beyond, they have more slots than there are 32-bit numbers.
const MOST_RUNS_AGAIN: u32 = 16;

/// The name of steps that decode beforehand.
const DECODE: &str = "decode";

/// Milliseconds of one run on one device.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// Decoding beforehand.
    pub decode_ms: f64,
    /// Each kernel.
    pub kernels: Vec<KernelProfile>,
    /// All of them; in recorded runs with the copy of the results' beginning.
    pub kernels_ms: f64,
    /// Runs with larger hash tables.
    pub runs_again: u32,
}

/// A run that the device was asked for and whose result has not been read.
#[derive(Debug)]
pub struct Launched {
    start: DeviceEvent,
    /// The ends of steps, named; of a recorded run the end of all.
    ends: Vec<(String, DeviceEvent)>,
}

impl PreparedPart {
    /// Asks the device for a run, without waiting for it. The first run after memory was laid out is asked for step by step, with marks between; the next ones are recordings of the same.
    ///
    /// # Errors
    /// Of the device.
    pub fn launch(&mut self) -> Result<Launched, QueryError> {
        let job = std::mem::take(&mut self.job);
        let launched =
            if self.is_recorded(&job) { self.launch_recorded(&job) } else { self.launch_marked(&job) };
        self.job = job;
        launched
    }

    /// Waits for a run and reads its result. None if hash tables were too small: they are larger now, and the query has to run again. `runs_again` is how often it has done so.
    ///
    /// # Errors
    /// As [`crate::gpu::Prepared::run`].
    pub fn collect(
        &mut self,
        plan: &Plan,
        launched: &Launched,
        runs_again: u32,
    ) -> Result<Option<(GroupWords, Times)>, QueryError> {
        self.device.synchronize()?;
        let first = self.first_copy.bytes().get(..at(self.job.first_bytes())).unwrap_or_default();
        let groups = match self.job.outcome(plan, first, |range| self.read_results(range))? {
            Outcome::Groups(groups) => groups,
            Outcome::Grow(full) => {
                self.grow(plan, &full, runs_again)?;
                return Ok(None);
            }
        };
        let times = match &self.times {
            Some(first_run) if self.is_recorded(&self.job) => first_run.clone(),
            _ => Times::of_steps(launched)?,
        };
        let kernels_ms = match launched.ends.last() {
            Some((_, end)) => launched.start.milliseconds_until(end)? - times.decode_ms,
            None => 0.0,
        };
        self.times = Some(times.clone());
        Ok(Some((groups, Times { kernels_ms, runs_again, ..times })))
    }

    /// Gives the hash tables of the pipelines `full` four times the slots.
    fn grow(&mut self, plan: &Plan, full: &[usize], runs_again: u32) -> Result<(), QueryError> {
        if runs_again == MOST_RUNS_AGAIN {
            let capacity = full.iter().filter_map(|&index| self.slots.get(index)).max().copied();
            return Err(QueryError::TooManyGroups { capacity: capacity.unwrap_or(0) / 2 });
        }
        for &index in full {
            if let Some(slots) = self.slots.get_mut(index) {
                *slots = slots.saturating_mul(4);
            }
        }
        let placement =
            if decodes_beforehand(&self.job) { Placement::PreDecode } else { Placement::Register };
        self.lay_out(plan, placement)
    }

    /// Decoding beforehand is timed apart, so such runs are not recorded.
    fn is_recorded(&self, job: &Job) -> bool {
        self.times.is_some() && !decodes_beforehand(job)
    }

    fn launch_marked(&mut self, job: &Job) -> Result<Launched, QueryError> {
        let device = self.device.clone();
        let (start, mut ends) = (device.event()?, Vec::new());
        for (number, step) in job.steps.iter().enumerate() {
            self.ask(step, &device)?;
            // One mark behind all fills, and one behind each of the others.
            let next_fills = matches!(job.steps.get(number + 1), Some(JobStep::Fill { .. }));
            let name = match step {
                JobStep::Decode { .. } => DECODE.to_owned(),
                JobStep::Fill { .. } if next_fills => continue,
                JobStep::Fill { .. } => "fill".to_owned(),
                JobStep::Launch { kernel: JobKernel::Pipeline(index), .. } => format!("pipeline {index}"),
                JobStep::Launch { kernel: JobKernel::Compact, .. } => "compact".to_owned(),
            };
            ends.push((name, device.event()?));
        }
        self.copy_first(job)?;
        Ok(Launched { start, ends })
    }

    fn launch_recorded(&mut self, job: &Job) -> Result<Launched, QueryError> {
        let mut recording = match self.recording.take() {
            Some(recording) => recording,
            None => {
                while self.forks.len() < job.steps.iter().filter(|step| is_apart(step)).count() {
                    self.forks.push(self.device.fork()?);
                }
                self.device.clone().record(|| self.enqueue(job))?
            }
        };
        let start = self.device.event()?;
        // SAFETY: the recorded work is this job's (`launch_kernel` says why it stays within its memory), on memory and columns that live as long as this value, and results are read after
        // all of it. `lay_out` drops the recording before it frees memory.
        unsafe { recording.launch() }?;
        self.recording = Some(recording);
        Ok(Launched { start, ends: vec![("all".to_owned(), self.device.event()?)] })
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
        waited_for.drain(..).try_for_each(|fork| device.join(fork))?;
        self.copy_first(job)
    }

    /// Asks for a copy of the results' beginning, in which most queries have all groups.
    fn copy_first(&mut self, job: &Job) -> Result<(), QueryError> {
        if let Some(results) = self.memory.get(&Buffer::Results) {
            // SAFETY: `collect` looks at the copy when the device has been synchronized. A copy that nobody collected is overwritten by the next one on the same stream. Fields are
            // dropped in order: the job's memory, which waits for the device, before this one.
            unsafe { results.copy_to_pinned(&mut self.first_copy, at(job.first_bytes())) }?;
        }
        Ok(())
    }

    /// Asks `queue` for a step; what is not a kernel is asked of the device itself.
    fn ask(&mut self, step: &JobStep, queue: &Device) -> Result<(), QueryError> {
        match step {
            JobStep::Decode { pipeline, input } => self.decode(*pipeline, *input),
            JobStep::Fill { buffer, range, byte } => {
                if let Some(memory) = self.memory.get_mut(buffer) {
                    memory.fill_range(at(range.start)..at(range.end), *byte)?;
                }
                Ok(())
            }
            JobStep::Launch { kernel, thread_blocks, threads_per_block, words, .. } => {
                self.launch_kernel(queue, *kernel, *thread_blocks, *threads_per_block, words)
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

    fn launch_kernel(
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

    fn read_results(&self, range: Range<u64>) -> Result<Vec<u8>, QueryError> {
        let Some(results) = self.memory.get(&Buffer::Results) else { return Ok(Vec::new()) };
        // Checked before it is allocated.
        if range.end > results.len() as u64 {
            return Err(QueryError::TooManyGroups { capacity: results.len() as u64 / 16 });
        }
        let mut read = vec![0; at(range.end.saturating_sub(range.start))];
        results.read(at(range.start), &mut read)?;
        Ok(read)
    }
}

impl Times {
    fn of_steps(launched: &Launched) -> Result<Self, QueryError> {
        let mut times = Self::default();
        let mut start = &launched.start;
        for (name, end) in &launched.ends {
            let ms = start.milliseconds_until(end)?;
            match name.as_str() {
                DECODE => times.decode_ms += ms,
                _ => times.kernels.push(KernelProfile { name: name.clone(), ms }),
            }
            start = end;
        }
        Ok(times)
    }
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn decodes_beforehand(job: &Job) -> bool {
    job.steps.iter().any(|step| matches!(step, JobStep::Decode { .. }))
}

fn is_apart(step: &JobStep) -> bool {
    matches!(step, JobStep::Launch { is_apart: true, .. })
}
