//! A query as pipelines: plain data that knows no codec and no device.
//!
//! A [`Plan`] is a list of [`Pipeline`]s. Each scans one table: it filters rows, probes tables that earlier pipelines built, and ends in a sink, which builds a table or aggregates.
//! The last pipeline aggregates. Everything in a pipeline is a 64-bit integer: integers, dates and times as they are, decimals unscaled, strings as their codes in the column's
//! dictionary, booleans 0 and 1. Three-valued logic is gone: a nullable value has a predicate beside it that says whether it is there.
//!
//! Every value has a [`Range`], from the files' statistics: the planner has proven that nothing overflows 64 bits.

mod explain;
mod range;

use std::fmt;

pub use self::range::{Bounds, Range, combined};

/// What a query runs: builds first, each before the pipelines that probe what it built; the aggregation last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The pipelines.
    pub pipelines: Vec<Pipeline>,
}

/// One scan of a table, from its columns to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// Name of the table scanned.
    pub table: String,
    /// Its rows.
    pub rows: u64,
    /// The buffers that are decoded, each at most once a tile and only when a step needs it. At least one.
    pub inputs: Vec<Input>,
    /// What happens to each row, in order.
    pub steps: Vec<Step>,
    /// About how many of a million rows are left after each step, as far as statistics tell. Speed depends on it, results do not.
    pub kept: Vec<u32>,
    /// Sets that predicates test membership of.
    pub sets: Vec<Set>,
    /// Where the rows that are left go.
    pub sink: Sink,
}

/// A buffer of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Index of the column in the table.
    pub column: usize,
    /// Its name.
    pub name: String,
    /// Which of the column's buffers.
    pub buffer: Buffer,
    /// Bits of a stored value: 8, 16, 32 or 64.
    pub value_width: u8,
    /// Whether stored values are in two's complement.
    pub signed: bool,
    /// The range of the values, from the file's statistics; values under nulls lie in it, too.
    pub range: Range,
}

/// Which buffer of a column an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buffer {
    /// The values; of wide ones the lowest 64 bits.
    Values,
    /// 1 where the value is not null, else 0.
    Validity,
}

/// One thing that happens to the rows of a tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Rows for which the predicate does not hold are dropped.
    Filter(Predicate),
    /// Rows are looked up in a table that an earlier pipeline built.
    Probe(Probe),
}

/// A look into a join's table. The n-th probe among a pipeline's steps is probe n.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Index in [`Plan::pipelines`] of the pipeline that builds the table.
    pub build: usize,
    /// The key.
    pub key: Value,
    /// Where the key is not null. A null finds nothing.
    pub valid: Predicate,
    /// What finding means.
    pub kind: ProbeKind,
}

/// What a probe does with rows that find an entry, and with those that do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeKind {
    /// Rows that find an entry stay, and have its fields. Keys are unique.
    Inner,
    /// Rows that find an entry stay. Keys may repeat.
    Semi,
    /// Rows that find no entry stay. Keys may repeat.
    Anti,
}

/// An integer of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Of this index in [`Pipeline::inputs`].
    Input(usize),
    /// Field `field` of the entry that probe `probe` found.
    Field {
        /// Which probe of the pipeline.
        probe: usize,
        /// Which of the table's fields.
        field: usize,
    },
    /// A constant.
    Literal(i64),
    /// Sum.
    Add(Box<Value>, Box<Value>),
    /// Difference.
    Subtract(Box<Value>, Box<Value>),
    /// Product.
    Multiply(Box<Value>, Box<Value>),
    /// The first value where the predicate holds, else the second.
    If(Box<Predicate>, Box<Value>, Box<Value>),
}

/// A truth of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicate {
    /// Of every row, or of none.
    Always(bool),
    /// low <= value <= high.
    Between {
        /// The value.
        value: Value,
        /// Least value that passes.
        low: i64,
        /// Greatest value that passes.
        high: i64,
    },
    /// left < right.
    Less(Value, Value),
    /// left = right.
    Equal(Value, Value),
    /// The value is in set `set` of the pipeline.
    InSet {
        /// The value.
        value: Value,
        /// Index in [`Pipeline::sets`].
        set: usize,
    },
    /// Field `field` of the entry that probe `probe` found is not null.
    FieldValid {
        /// Which probe of the pipeline.
        probe: usize,
        /// Which of the table's fields.
        field: usize,
    },
    /// All of them; true of none.
    And(Vec<Predicate>),
    /// Any of them; false of none.
    Or(Vec<Predicate>),
    /// The opposite.
    Not(Box<Predicate>),
}

/// A set of integers: bit v - base. Values outside are not in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Set {
    /// The value of bit 0.
    pub base: i64,
    /// Bits, the lowest of the first word first.
    pub words: Vec<u32>,
}

impl fmt::Debug for Set {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        write!(formatter, "{members} values from {} on", self.base)
    }
}

impl Set {
    /// Whether `value` is in it.
    #[must_use]
    pub fn has(&self, value: i64) -> bool {
        let bit = value.wrapping_sub(self.base).cast_unsigned();
        let word = usize::try_from(bit / 32).ok().and_then(|index| self.words.get(index));
        value >= self.base && word.is_some_and(|word| word >> (bit % 32) & 1 == 1)
    }
}

/// Where a pipeline's rows go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// Into a table that later pipelines probe.
    Build(Build),
    /// Into groups.
    Aggregate(Aggregate),
}

/// A table of keys, each with the fields of its row packed into one integer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// The key; rows whose key is null were filtered out.
    pub key: Value,
    /// As SQL, for messages.
    pub key_name: String,
    /// The range of the key.
    pub domain: Range,
    /// How keys find their entry.
    pub index: Index,
    /// Whether a second row with the same key is an error.
    pub unique: bool,
    /// What an entry keeps.
    pub fields: Vec<Field>,
    /// Bits of a packed entry: 1 (existence only, no fields), 8, 16, 32 or 64. All ones stand for no entry, and no packed entry is all ones.
    pub entry_width: u8,
}

/// How a key finds its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// Entry number key - domain.min, of as many as the domain has values.
    Direct,
    /// Linear probing over so many slots, a power of two.
    Hash {
        /// Number of slots.
        slots: u64,
    },
}

/// A field of an entry. Its code is value - range.min, of a nullable field one more, and 0 for null; the codes stand side by side in the packed entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The value.
    pub value: Value,
    /// Where it is not null.
    pub valid: Predicate,
    /// Whether it can be null.
    pub nullable: bool,
    /// Its range.
    pub range: Range,
    /// Where its code begins in the packed entry.
    pub shift: u8,
    /// Bits of its code.
    pub bits: u8,
}

/// Groups and what is computed for each: words of 64 bits that begin as zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    /// The key, most significant part first; none for one group of all rows.
    pub keys: Vec<GroupKey>,
    /// The words of a group.
    pub words: Vec<Word>,
    /// How groups are found.
    pub groups: Groups,
    /// A word that is not zero exactly in the groups that have rows; of hashed groups it is not needed.
    pub presence: Option<usize>,
}

impl Aggregate {
    /// The groups of several scans of parts of the same rows as those of one scan, by ascending index.
    #[must_use]
    pub fn merge(&self, parts: Vec<GroupWords>) -> GroupWords {
        let word_count = self.words.len();
        let mut places: Vec<(u64, u32, u32)> = Vec::new();
        for (part, groups) in (0..).zip(&parts) {
            places.extend(groups.indexes.iter().zip(0..).map(|(&index, number)| (index, part, number)));
        }
        places.sort_unstable_by_key(|&(index, ..)| index);
        let mut merged = GroupWords::default();
        for (index, part, number) in places {
            let start = number as usize * word_count;
            let words = parts.get(part as usize).and_then(|part| part.words.get(start..start + word_count));
            let words = words.unwrap_or_default();
            if merged.indexes.last() != Some(&index) {
                merged.indexes.push(index);
                merged.words.extend_from_slice(words);
                continue;
            }
            let start = merged.words.len() - word_count;
            let targets = merged.words.get_mut(start..).unwrap_or_default();
            for ((target, word), how) in targets.iter_mut().zip(words).zip(&self.words) {
                *target = how.value.combine(*target, *word);
            }
        }
        merged
    }
}

/// A part of a group's key. Its code is value - range.min, of a nullable part one more, and 0 for null. A group's index is the sum of code * stride.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupKey {
    /// The value.
    pub value: Value,
    /// Where it is not null.
    pub valid: Predicate,
    /// Whether it can be null.
    pub nullable: bool,
    /// Its range.
    pub range: Range,
    /// Number of codes.
    pub codes: u64,
    /// Product of the later parts' codes.
    pub stride: u64,
}

impl GroupKey {
    /// The value of this part of the key in the group `index`, none where it is null.
    #[must_use]
    pub fn value_of(&self, index: u64) -> Option<i64> {
        let code = index / self.stride.max(1) % self.codes.max(1);
        Some(self.range.min.wrapping_add_unsigned(code.checked_sub(self.nullable.into())?))
    }
}

/// How groups are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    /// There is one, also of no rows.
    One,
    /// By index, of so many.
    Dense {
        /// Number of indexes.
        slots: u64,
    },
    /// By linear probing over so many slots, a power of two, of which at most half may be used.
    Hash {
        /// Number of slots.
        slots: u64,
    },
}

/// What happens to a word for every row of the group for which `valid` holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// What is combined.
    pub value: WordValue,
    /// Which rows count.
    pub valid: Predicate,
}

/// What a row brings to a word, and how it is combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordValue {
    /// 1, added.
    Count,
    /// The value, added; proven not to overflow.
    Sum(Value),
    /// Its lowest 32 bits, zero-extended, added.
    SumLow(Value),
    /// Its highest 32 bits, sign-extended, added.
    SumHigh(Value),
    /// value - min + 1; the greatest stays.
    Greatest {
        /// The value.
        value: Value,
        /// Its smallest possible value.
        min: i64,
    },
    /// max - value + 1; the greatest stays.
    Least {
        /// The value.
        value: Value,
        /// Its largest possible value.
        max: i64,
    },
}

impl WordValue {
    /// How two partial words become one.
    #[must_use]
    pub fn combine(&self, left: u64, right: u64) -> u64 {
        match self {
            Self::Count | Self::Sum(_) | Self::SumLow(_) | Self::SumHigh(_) => left.wrapping_add(right),
            Self::Greatest { .. } | Self::Least { .. } => left.max(right),
        }
    }

    /// Whether rows are added, rather than the greatest kept.
    #[must_use]
    pub fn adds(&self) -> bool {
        !matches!(self, Self::Greatest { .. } | Self::Least { .. })
    }

    /// The value, of all but counts.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        match self {
            Self::Count => None,
            Self::Sum(value) | Self::SumLow(value) | Self::SumHigh(value) => Some(value),
            Self::Greatest { value, .. } | Self::Least { value, .. } => Some(value),
        }
    }
}

/// What an aggregation gives: for each group that has rows (or for the one group of all rows) its index and its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupWords {
    /// Indexes, in any order, each once.
    pub indexes: Vec<u64>,
    /// The words of each group, one group after the other.
    pub words: Vec<u64>,
}

impl GroupWords {
    /// The groups of these numbers, which have `each` words.
    #[must_use]
    pub fn take(&self, numbers: &[u32], each: usize) -> Self {
        let mut taken = Self::default();
        for &number in numbers {
            let start = number as usize * each;
            taken.indexes.extend(self.indexes.get(number as usize));
            taken.words.extend_from_slice(self.words.get(start..start + each).unwrap_or_default());
        }
        taken
    }
}

impl WordValue {
    fn value_mut(&mut self) -> Option<&mut Value> {
        match self {
            Self::Count => None,
            Self::Sum(value) | Self::SumLow(value) | Self::SumHigh(value) => Some(value),
            Self::Greatest { value, .. } | Self::Least { value, .. } => Some(value),
        }
    }
}

impl Plan {
    /// The table that probe `probe` of pipeline `pipeline` looks into.
    #[must_use]
    pub fn probed(&self, pipeline: &Pipeline, probe: usize) -> Option<&Build> {
        let build = pipeline.probes().nth(probe)?.build;
        match &self.pipelines.get(build)?.sink {
            Sink::Build(build) => Some(build),
            Sink::Aggregate(_) => None,
        }
    }
}

impl Pipeline {
    /// The probes among the steps.
    pub fn probes(&self) -> impl Iterator<Item = &Probe> {
        self.steps.iter().filter_map(|step| match step {
            Step::Probe(probe) => Some(probe),
            Step::Filter(_) => None,
        })
    }

    /// Calls `visit` for every input and field that the pipeline uses.
    pub fn visit(&self, visit: &mut impl FnMut(&Value)) {
        for step in &self.steps {
            match step {
                Step::Filter(predicate) => predicate.visit(visit),
                Step::Probe(probe) => {
                    probe.key.visit(visit);
                    probe.valid.visit(visit);
                }
            }
        }
        match &self.sink {
            Sink::Build(build) => {
                build.key.visit(visit);
                for field in &build.fields {
                    field.value.visit(visit);
                    field.valid.visit(visit);
                }
            }
            Sink::Aggregate(aggregate) => {
                for key in &aggregate.keys {
                    key.value.visit(visit);
                    key.valid.visit(visit);
                }
                for word in &aggregate.words {
                    word.valid.visit(visit);
                    if let Some(value) = word.value.value() {
                        value.visit(visit);
                    }
                }
            }
        }
    }

    /// Gives every use of input i the number that `places` gives it.
    pub fn renumber(&mut self, places: &impl Fn(usize) -> usize) {
        for step in &mut self.steps {
            match step {
                Step::Filter(predicate) => predicate.renumber(places),
                Step::Probe(probe) => {
                    probe.key.renumber(places);
                    probe.valid.renumber(places);
                }
            }
        }
        match &mut self.sink {
            Sink::Build(build) => {
                build.key.renumber(places);
                for field in &mut build.fields {
                    field.value.renumber(places);
                    field.valid.renumber(places);
                }
            }
            Sink::Aggregate(aggregate) => {
                for key in &mut aggregate.keys {
                    key.value.renumber(places);
                    key.valid.renumber(places);
                }
                for word in &mut aggregate.words {
                    word.valid.renumber(places);
                    if let Some(value) = word.value.value_mut() {
                        value.renumber(places);
                    }
                }
            }
        }
    }

    /// Ranges outside of which a row of the scanned table is dropped: (input, low, high). Tiles whose statistics lie outside need not be read.
    pub fn row_tests(&self) -> Vec<(usize, i64, i64)> {
        let mut tests = Vec::new();
        for step in &self.steps {
            if let Step::Filter(predicate) = step {
                predicate.row_tests(&mut tests);
            }
        }
        tests
    }
}

impl Predicate {
    fn row_tests(&self, tests: &mut Vec<(usize, i64, i64)>) {
        match self {
            Self::Between { value: Value::Input(input), low, high } => tests.push((*input, *low, *high)),
            Self::And(all) => all.iter().for_each(|part| part.row_tests(tests)),
            _ => {}
        }
    }

    fn renumber(&mut self, places: &impl Fn(usize) -> usize) {
        match self {
            Self::Always(_) | Self::FieldValid { .. } => {}
            Self::Between { value, .. } | Self::InSet { value, .. } => value.renumber(places),
            Self::Less(left, right) | Self::Equal(left, right) => {
                left.renumber(places);
                right.renumber(places);
            }
            Self::And(parts) | Self::Or(parts) => parts.iter_mut().for_each(|part| part.renumber(places)),
            Self::Not(inner) => inner.renumber(places),
        }
    }

    /// The variables (inputs and fields) that deciding it takes.
    pub fn visit(&self, visit: &mut impl FnMut(&Value)) {
        match self {
            Self::Always(_) => {}
            Self::Between { value, .. } | Self::InSet { value, .. } => value.visit(visit),
            Self::Less(left, right) | Self::Equal(left, right) => {
                left.visit(visit);
                right.visit(visit);
            }
            Self::FieldValid { probe, field } => visit(&Value::Field { probe: *probe, field: *field }),
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.visit(visit)),
            Self::Not(inner) => inner.visit(visit),
        }
    }
}

impl Value {
    fn renumber(&mut self, places: &impl Fn(usize) -> usize) {
        match self {
            Self::Input(input) => *input = places(*input),
            Self::Field { .. } | Self::Literal(_) => {}
            Self::Add(left, right) | Self::Subtract(left, right) | Self::Multiply(left, right) => {
                left.renumber(places);
                right.renumber(places);
            }
            Self::If(condition, yes, no) => {
                condition.renumber(places);
                yes.renumber(places);
                no.renumber(places);
            }
        }
    }

    /// Calls `visit` for every input and field in it.
    pub fn visit(&self, visit: &mut impl FnMut(&Self)) {
        match self {
            Self::Input(_) | Self::Field { .. } => visit(self),
            Self::Literal(_) => {}
            Self::Add(left, right) | Self::Subtract(left, right) | Self::Multiply(left, right) => {
                left.visit(visit);
                right.visit(visit);
            }
            Self::If(condition, yes, no) => {
                condition.visit(visit);
                yes.visit(visit);
                no.visit(visit);
            }
        }
    }
}
