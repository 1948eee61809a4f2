//! A query's work on one device as plain data: what memory it needs, what is filled, which kernels are launched with which words. Executed by CUDA, or in tests by the CPU.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use zerocopy::IntoBytes;

use crate::QueryError;
use crate::gpu::options::Shape;
use crate::gpu::tuple::TupleCode;
use crate::gpu::words::{TablePart, Word};
use crate::plan::{Build, GroupWords, Groups, Index, Plan, Sink};

/// `cb2t::query::State`: bytes.
const STATE_BYTES: u64 = 16;
/// Flags of a state.
const STATISTICS: u64 = 1;
const DUPLICATE: u64 = 2;
const FULL: u64 = 4;
/// Where parts of a buffer begin.
const ALIGNMENT: u64 = 256;
/// Bytes of the results that are copied first: all of most results.
pub const FIRST_COPY_BYTES: u64 = 64 << 10;

/// Memory that kernels use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buffer {
    /// Filled with zeros before every run.
    Zeros,
    /// Filled with ones before every run.
    Ones,
    /// Not filled.
    Plain,
    /// States, number of groups, groups.
    Results,
    /// Lists and sets that come from the host once.
    Data,
    /// Word 0, 1 or 2 of a column's view: blocks, tile entries, shared offsets.
    Column {
        /// Index of the pipeline.
        pipeline: usize,
        /// Index of its input.
        input: usize,
        /// Which word.
        word: usize,
    },
    /// A column that is decoded beforehand.
    Decoded {
        /// Index of the pipeline.
        pipeline: usize,
        /// Index of its input.
        input: usize,
    },
}

/// A word of a kernel's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobWord {
    /// A number.
    Value(u64),
    /// An address.
    Address(Buffer, u64),
}

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKernel {
    /// Of the pipeline with this index.
    Pipeline(usize),
    /// The one that collects groups.
    Compact,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobStep {
    /// Decode a whole column.
    Decode {
        /// Index of the pipeline.
        pipeline: usize,
        /// Index of its input.
        input: usize,
    },
    /// Set bytes.
    Fill {
        /// Where.
        buffer: Buffer,
        /// Which.
        range: Range<u64>,
        /// To this.
        byte: u8,
    },
    /// Launch a kernel.
    Launch {
        /// Which.
        kernel: JobKernel,
        /// Thread blocks.
        thread_blocks: u32,
        /// Threads a thread block.
        threads_per_block: u32,
        /// Its arguments.
        words: Vec<JobWord>,
        /// Whether it needs nothing that a kernel before it leaves, and only kernels that are not apart need what it leaves.
        is_apart: bool,
    },
}

/// What is known of a pipeline on one device.
#[derive(Debug, Clone)]
pub struct PipelineJob {
    /// Its kernel.
    pub code: TupleCode,
    /// The launch shape.
    pub shape: Shape,
    /// Tiles of its table.
    pub tile_count: u32,
    /// Those that are read, unless it is all of them.
    pub tile_list: Option<Vec<u32>>,
    /// Thread blocks that the device holds at a time.
    pub resident_blocks: u32,
    /// Bytes that a group of threads needs in device memory.
    pub stage_bytes: u64,
    /// Bits a value of each input, for those that are decoded beforehand; else none.
    pub decoded_widths: Vec<u8>,
}

impl PipelineJob {
    /// Whether an input is decoded beforehand.
    fn is_decoded(&self, input: usize) -> bool {
        self.code.inputs.contains(&input) && self.decoded_widths.get(input).is_some()
    }
}

/// A query's work on one device.
#[derive(Debug, Clone, Default)]
pub struct Job {
    /// What to do, in order.
    pub steps: Vec<JobStep>,
    /// Bytes of the buffers that belong to the job.
    pub bytes: BTreeMap<Buffer, u64>,
    /// Contents of [`Buffer::Data`].
    pub data: Vec<u8>,
    /// Where the groups begin in the results.
    records_offset: u64,
    /// Words a group.
    words_per_group: u64,
    /// Whether there is one group, also of no rows.
    one_group: bool,
}

/// What a run came to.
#[derive(Debug)]
pub enum Outcome {
    /// A result.
    Groups(GroupWords),
    /// Hash tables of these pipelines had too few slots.
    Grow(Vec<usize>),
}

impl Job {
    /// The work of `plan`. `slots` are those of each pipeline's hash table, if it has one.
    ///
    /// # Errors
    /// Sizes beyond 64 bits, or a plan without a result.
    pub fn new(plan: &Plan, pipelines: &[PipelineJob], slots: &[u64]) -> Result<Self, QueryError> {
        let mut layout = Layout { plan, slots, job: Self::default(), places: BTreeMap::new() };
        layout.results()?;
        for (index, pipeline) in plan.pipelines.iter().enumerate() {
            match &pipeline.sink {
                Sink::Build(build) => layout.table(index, build)?,
                Sink::Aggregate(_) => layout.groups(index)?,
            }
        }
        for (index, pipeline) in pipelines.iter().enumerate() {
            layout.pipeline(index, pipeline)?;
        }
        layout.compact()?;
        layout.fills();
        Ok(layout.job)
    }

    /// Bytes of a buffer of the job's own.
    #[must_use]
    pub fn buffer_bytes(&self, buffer: Buffer) -> u64 {
        self.bytes.get(&buffer).copied().unwrap_or(0)
    }

    /// Bytes of [`Buffer::Results`] that are copied before it is known how many there are.
    #[must_use]
    pub fn first_bytes(&self) -> u64 {
        FIRST_COPY_BYTES.min(self.buffer_bytes(Buffer::Results))
    }

    /// Looks at what the run has left. `first` are the [`Job::first_bytes`] of [`Buffer::Results`]; `read` gives those of a range behind, where not all groups are among the first.
    ///
    /// # Errors
    /// Whatever a kernel has reported, or that of `read`.
    pub fn outcome(
        &self,
        plan: &Plan,
        first: &[u8],
        read: impl FnOnce(Range<u64>) -> Result<Vec<u8>, QueryError>,
    ) -> Result<Outcome, QueryError> {
        let mut full = Vec::new();
        for (index, pipeline) in plan.pipelines.iter().enumerate() {
            let flags = word_at(first, index as u64 * STATE_BYTES);
            if flags & STATISTICS != 0 {
                return Err(QueryError::Statistics { table: pipeline.table.clone() });
            }
            if flags & DUPLICATE != 0 {
                let column = match &pipeline.sink {
                    Sink::Build(build) => build.key_name.clone(),
                    Sink::Aggregate(_) => String::new(),
                };
                return Err(QueryError::DuplicateKey { table: pipeline.table.clone(), column });
            }
            if flags & FULL != 0 {
                full.push(index);
            }
        }
        if !full.is_empty() {
            return Ok(Outcome::Grow(full));
        }
        let count = if self.one_group { 1 } else { word_at(first, count_offset(plan)) };
        let record_bytes = (1 + self.words_per_group) * 8;
        let end = self.records_offset.saturating_add(count.saturating_mul(record_bytes));
        let all = if end > first.len() as u64 {
            Cow::Owned([first, &read(first.len() as u64..end)?].concat())
        } else {
            Cow::Borrowed(first)
        };
        let at = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
        let records = all.get(at(self.records_offset)..at(end)).unwrap_or_default();
        let mut groups = GroupWords::default();
        for record in records.chunks_exact(at(record_bytes)) {
            let mut words = record.chunks_exact(8).map(|word| word_at(word, 0));
            groups.indexes.extend(words.next());
            groups.words.extend(words);
        }
        Ok(Outcome::Groups(groups))
    }
}

fn word_at(bytes: &[u8], offset: u64) -> u64 {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let word = bytes.get(start..).and_then(|rest| rest.first_chunk::<8>());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

fn count_offset(plan: &Plan) -> u64 {
    plan.pipelines.len() as u64 * STATE_BYTES
}

/// What has a place in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Table(usize, TablePart),
    Groups,
    GroupKeys,
}

struct Layout<'p> {
    plan: &'p Plan,
    slots: &'p [u64],
    job: Job,
    places: BTreeMap<Item, (Buffer, u64)>,
}

impl Layout<'_> {
    /// Room for `count` items of `bits` bits.
    fn reserve(&mut self, buffer: Buffer, count: u64, bits: u64) -> Result<(Buffer, u64), QueryError> {
        let too_large = || QueryError::unsupported(format!("a table of {count} entries of {bits} bits"));
        // Bits are read in words of 32.
        let bytes =
            count.checked_mul(bits).map(|bits| bits.div_ceil(32)).and_then(|words| words.checked_mul(4));
        let end = self.job.bytes.entry(buffer).or_insert(0);
        let start = *end;
        *end = bytes
            .and_then(|bytes| start.checked_add(bytes))
            .and_then(|end| end.checked_next_multiple_of(ALIGNMENT))
            .ok_or_else(too_large)?;
        Ok((buffer, start))
    }

    fn slots(&self, pipeline: usize) -> u64 {
        self.slots.get(pipeline).copied().unwrap_or(0)
    }

    fn table(&mut self, index: usize, build: &Build) -> Result<(), QueryError> {
        let width = u64::from(build.entry_width);
        let mut items = Vec::new();
        match build.index {
            Index::Direct => {
                // One more, which stays empty: codes past the greatest stand for it.
                let count = build.domain.span().saturating_add(2);
                let buffer = if width == 1 { Buffer::Zeros } else { Buffer::Ones };
                items.push((TablePart::Entries, buffer, count, width));
                if width > 1 {
                    items.push((TablePart::Seen, Buffer::Zeros, count, 1));
                }
            }
            Index::Hash { .. } => {
                items.push((TablePart::Keys, Buffer::Zeros, self.slots(index), 64));
                if width > 1 {
                    items.push((TablePart::Entries, Buffer::Plain, self.slots(index), width));
                }
            }
        }
        for (part, buffer, count, bits) in items {
            let place = self.reserve(buffer, count, bits)?;
            self.places.insert(Item::Table(index, part), place);
        }
        Ok(())
    }

    fn results(&mut self) -> Result<(), QueryError> {
        let missing = || QueryError::unsupported("a plan that does not end in an aggregation");
        let Some(Sink::Aggregate(aggregate)) = self.plan.pipelines.last().map(|pipeline| &pipeline.sink)
        else {
            return Err(missing());
        };
        let last = self.plan.pipelines.len().saturating_sub(1);
        let groups = match aggregate.groups {
            Groups::One => 1,
            Groups::Dense { slots } => slots,
            Groups::Hash { .. } => self.slots(last),
        };
        self.job.words_per_group = aggregate.words.len() as u64;
        self.job.one_group = aggregate.groups == Groups::One;
        self.job.records_offset = (count_offset(self.plan) + 8).next_multiple_of(64);
        self.reserve(Buffer::Results, self.job.records_offset, 8)?;
        let words = (1 + self.job.words_per_group).saturating_mul(groups);
        // The records follow the states without a gap.
        self.job.bytes.insert(Buffer::Results, self.job.records_offset);
        self.reserve(Buffer::Results, words, 64)?;
        Ok(())
    }

    fn groups(&mut self, index: usize) -> Result<(), QueryError> {
        let Some(Sink::Aggregate(aggregate)) = self.plan.pipelines.get(index).map(|pipeline| &pipeline.sink)
        else {
            return Ok(());
        };
        let each = aggregate.words.len() as u64;
        let groups = match aggregate.groups {
            // The one record, past its index.
            Groups::One => (Buffer::Results, self.job.records_offset + 8),
            Groups::Dense { slots } => self.reserve(Buffer::Zeros, slots.saturating_mul(each), 64)?,
            Groups::Hash { .. } => {
                let slots = self.slots(index);
                let keys = self.reserve(Buffer::Zeros, slots, 64)?;
                self.places.insert(Item::GroupKeys, keys);
                self.reserve(Buffer::Zeros, slots.saturating_mul(each), 64)?
            }
        };
        self.places.insert(Item::Groups, groups);
        Ok(())
    }

    fn pipeline(&mut self, index: usize, pipeline: &PipelineJob) -> Result<(), QueryError> {
        for &input in &pipeline.code.inputs {
            if let Some(&width) = pipeline.decoded_widths.get(input) {
                let tile_size = pipeline.shape.group * pipeline.shape.items_per_thread;
                let bytes = u64::from(pipeline.tile_count) * u64::from(tile_size) * u64::from(width / 8);
                self.job.bytes.insert(Buffer::Decoded { pipeline: index, input }, bytes);
                self.job.steps.push(JobStep::Decode { pipeline: index, input });
            }
        }
        let tile_count = match &pipeline.tile_list {
            Some(list) => u32::try_from(list.len()).unwrap_or(u32::MAX),
            None => pipeline.tile_count,
        };
        let groups_per_block = pipeline.shape.groups_per_block().max(1);
        let thread_blocks = tile_count.div_ceil(groups_per_block).min(pipeline.resident_blocks.max(1));
        let groups = u64::from(thread_blocks) * u64::from(groups_per_block);
        let stage = self.reserve(Buffer::Plain, groups.saturating_mul(pipeline.stage_bytes), 8)?;
        let list = pipeline.tile_list.as_ref().map(|list| self.data(list.as_bytes()));
        let sets: Vec<JobWord> =
            pipeline.code.sets.iter().map(|set| self.data(set.words.as_bytes())).collect();
        let words = pipeline.code.words.iter().map(|word| match *word {
            Word::Value(value) => JobWord::Value(value),
            Word::State => state(index),
            Word::TileList => list.unwrap_or(JobWord::Value(0)),
            Word::TileCount => JobWord::Value(tile_count.into()),
            Word::Stage => JobWord::Address(stage.0, stage.1),
            Word::Column { input, word: 0 } if pipeline.is_decoded(input) => {
                JobWord::Address(Buffer::Decoded { pipeline: index, input }, 0)
            }
            Word::Column { input, word } => {
                JobWord::Address(Buffer::Column { pipeline: index, input, word }, 0)
            }
            Word::Table { pipeline, part: TablePart::State } => state(pipeline),
            Word::Table { pipeline, part: TablePart::Slots } => JobWord::Value(self.slots(pipeline)),
            Word::Table { pipeline, part } => self.place(Item::Table(pipeline, part)),
            Word::SetBits(set) => sets.get(set).copied().unwrap_or(JobWord::Value(0)),
            Word::Groups => self.place(Item::Groups),
            Word::GroupKeys => self.place(Item::GroupKeys),
            Word::GroupSlots => JobWord::Value(self.slots(index)),
        });
        let words = words.collect();
        if tile_count > 0 {
            let of_plan = self.plan.pipelines.get(index);
            self.job.steps.push(JobStep::Launch {
                kernel: JobKernel::Pipeline(index),
                thread_blocks,
                threads_per_block: pipeline.shape.threads_per_block,
                words,
                is_apart: of_plan
                    .is_some_and(|of| matches!(of.sink, Sink::Build(_)) && of.probes().next().is_none()),
            });
        }
        Ok(())
    }

    /// 0 for what is not there.
    fn place(&self, item: Item) -> JobWord {
        self.places.get(&item).map_or(JobWord::Value(0), |&(buffer, offset)| JobWord::Address(buffer, offset))
    }

    fn data(&mut self, bytes: &[u8]) -> JobWord {
        let start = self.job.data.len();
        self.job.data.extend_from_slice(bytes);
        self.job.data.resize(self.job.data.len().next_multiple_of(64), 0);
        JobWord::Address(Buffer::Data, start as u64)
    }

    fn compact(&mut self) -> Result<(), QueryError> {
        const THREADS: u32 = 256;
        let last = self.plan.pipelines.len().saturating_sub(1);
        let Some(Sink::Aggregate(aggregate)) = self.plan.pipelines.get(last).map(|pipeline| &pipeline.sink)
        else {
            return Ok(());
        };
        let slots = match aggregate.groups {
            Groups::One => return Ok(()),
            Groups::Dense { slots } => slots,
            Groups::Hash { .. } => self.slots(last),
        };
        let thread_blocks = u32::try_from(slots.div_ceil(THREADS.into())).unwrap_or(u32::MAX).min(4096);
        self.job.steps.push(JobStep::Launch {
            kernel: JobKernel::Compact,
            thread_blocks,
            threads_per_block: THREADS,
            words: vec![
                self.place(Item::GroupKeys),
                self.place(Item::Groups),
                JobWord::Value(slots),
                JobWord::Value(aggregate.words.len() as u64),
                JobWord::Value(aggregate.presence.unwrap_or(0) as u64),
                JobWord::Address(Buffer::Results, count_offset(self.plan)),
                JobWord::Address(Buffer::Results, self.job.records_offset),
            ],
            is_apart: false,
        });
        Ok(())
    }

    /// What is filled comes first.
    fn fills(&mut self) {
        let one_record = if self.job.one_group { (1 + self.job.words_per_group) * 8 } else { 0 };
        let fills = [
            (Buffer::Results, self.job.records_offset + one_record, 0),
            (Buffer::Zeros, self.job.buffer_bytes(Buffer::Zeros), 0),
            (Buffer::Ones, self.job.buffer_bytes(Buffer::Ones), 0xFF),
        ];
        let fills = fills.into_iter().filter(|(_, bytes, _)| *bytes > 0);
        let fills = fills.map(|(buffer, bytes, byte)| JobStep::Fill { buffer, range: 0..bytes, byte });
        self.job.steps.splice(0..0, fills);
    }
}

fn state(pipeline: usize) -> JobWord {
    JobWord::Address(Buffer::Results, pipeline as u64 * STATE_BYTES)
}

/// Slots of each pipeline's hash table, as the plan has them; 0 of those that have none.
#[must_use]
pub fn planned_slots(plan: &Plan) -> Vec<u64> {
    let slots = plan.pipelines.iter().map(|pipeline| match &pipeline.sink {
        Sink::Build(Build { index: Index::Hash { slots }, .. }) => *slots,
        Sink::Aggregate(aggregate) => match aggregate.groups {
            Groups::Hash { slots } => slots,
            _ => 0,
        },
        Sink::Build(_) => 0,
    });
    slots.collect()
}
