//! The sink that aggregates: rows' indexes, groups, and what each row adds to them.

use super::{Writer, is_narrow};
use crate::QueryError;
use crate::gpu::words::Word;
use crate::plan::{Aggregate, GroupKey, Groups, Predicate, Sink, Value, WordValue};

/// Groups whose words take no more bytes than this are kept in a thread block's shared memory, in several copies if there is room.
const FEW_GROUP_BYTES: u64 = 8 << 10;
/// So are these, once.
const MANY_GROUP_BYTES: u64 = 32 << 10;

impl Writer<'_> {
    pub(super) fn declare_index(&mut self, stage: usize) {
        if self.has_index || !self.uses.keys.contains(&stage) {
            return;
        }
        self.has_index = true;
        let index = match self.index_width() {
            16 => "Index16".to_owned(),
            width => format!("u{width}"),
        };
        self.line(0, &format!("Indexes<{index}, ITEMS> index;"));
        // Parts are added as they get known.
        self.line(0, "index.clear();");
    }

    /// Bits of the places of all groups' words.
    fn index_width(&self) -> u32 {
        let Sink::Aggregate(aggregate) = &self.out.pipeline.sink else { return 64 };
        let Groups::Dense { slots } = aggregate.groups else { return 64 };
        match slots.saturating_mul(index_scale(aggregate)) {
            0..=0x1_0000 => 16,
            words if is_narrow(words) => 32,
            _ => 64,
        }
    }

    /// Adds the parts of the groups' key that are known after `stage`, and of which all variables are `there`, to the rows' indexes.
    pub(super) fn keys(
        &mut self,
        stage: usize,
        indent: usize,
        there: &dyn Fn(&Value) -> bool,
    ) -> Result<(), QueryError> {
        let Sink::Aggregate(aggregate) = &self.out.pipeline.sink else { return Ok(()) };
        let narrow_index = self.index_width() <= 32;
        let scale = index_scale(aggregate);
        for (number, key) in aggregate.keys.iter().enumerate() {
            let mut is_there = !self.added.contains(&number);
            let mut look = |variable: &Value| is_there &= there(variable);
            key.value.visit(&mut look);
            key.valid.visit(&mut look);
            if self.uses.keys.get(number) != Some(&stage) || !is_there {
                continue;
            }
            self.added.push(number);
            if !self.is_proven(&key.value, key.range) {
                let holds = self.code_within(&key.value, key.range, key.nullable.then_some(&key.valid))?;
                self.line(
                    indent,
                    &format!("rows = proven<ITEMS>(state, rows, [&](u32 i) {{ return {holds}; }});"),
                );
            }
            let code = self.key_code(key, is_narrow(key.codes))?;
            let code = if narrow_index { code } else { format!("u64({code})") };
            let stride = self.out.number(key.stride.saturating_mul(scale), narrow_index);
            self.line(indent, &format!("index.add(rows, [&](u32 i) {{ return {code}; }}, {stride});"));
        }
        Ok(())
    }

    fn key_code(&mut self, key: &GroupKey, narrow: bool) -> Result<String, QueryError> {
        self.code(&key.value, key.range, key.nullable.then_some(&key.valid), narrow)
    }

    pub(super) fn aggregate(&mut self, aggregate: &Aggregate, stage: usize) -> Result<(), QueryError> {
        self.fetch(stage)?;
        self.load(stage, 0);
        self.declare_index(stage);
        self.keys(stage, 0, &|_| true)?;
        match aggregate.groups {
            Groups::One => self.one_group(aggregate),
            Groups::Dense { slots } => self.dense_groups(aggregate, slots),
            Groups::Hash { .. } => {
                let keys = self.out.word(Word::GroupKeys);
                let slots = self.out.word(Word::GroupSlots);
                self.line_before(&format!("HashGroups keys(words[{keys}], words[{slots}], state);"));
                self.declare_global_groups();
                self.line(0, "rows = keys.locate<ITEMS>(rows, index);");
                self.add_rows(aggregate, aggregate.words.len() as u64, 1)
            }
        }
    }

    fn dense_groups(&mut self, aggregate: &Aggregate, slots: u64) -> Result<(), QueryError> {
        let each = aggregate.words.len() as u64;
        let words = slots.saturating_mul(each);
        if let Some(shared) = SharedGroups::of(aggregate) {
            let groups = self.out.word(Word::Groups);
            let SharedGroups { capacity, copies } = shared;
            let most = aggregate.words.iter().zip(0_u32..).filter(|(word, _)| !word.value.adds());
            let most: u64 = most.map(|(_, number)| 1 << number).sum();
            let count = self.out.number(words, true);
            self.line_before(&format!("using Groups = DenseGroups<{capacity}, {copies}, sizeof(Memory)>;"));
            self.line_before("__shared__ Groups::Memory shared;");
            self.line_before(&format!("Groups groups(shared, pointer<u64>(words[{groups}]));"));
            self.line_after(&format!("groups.leave<{each}, {most:#x}ull>({count});"));
            return self.add_rows(aggregate, 1, 8 * copies);
        }
        self.declare_global_groups();
        self.add_rows(aggregate, 1, 1)
    }

    fn declare_global_groups(&mut self) {
        let groups = self.out.word(Word::Groups);
        self.line_before("GlobalGroups<1>::Memory shared;");
        self.line_before(&format!("GlobalGroups<1> groups(shared, pointer<u64>(words[{groups}]));"));
    }

    /// Adds every row to the words of its group. The first is at index * scale, and they are `step` apart.
    fn add_rows(&mut self, aggregate: &Aggregate, scale: u64, step: u64) -> Result<(), QueryError> {
        let scale = if scale == 1 { String::new() } else { format!(" * {scale}") };
        self.line(0, "each<ITEMS>(rows, [&](u32 i) {");
        for (word, place) in aggregate.words.iter().zip((0..).step_by(usize::try_from(step).unwrap_or(1))) {
            let value = self.word_value(&word.value)?;
            let call = match word.value {
                WordValue::Count if is_narrow(self.out.pipeline.rows) => "add_low",
                _ if word.value.adds() => "add",
                _ => "most",
            };
            let guard = self.guard(&word.valid)?;
            self.line(1, &format!("{guard}groups.{call}(index[i]{scale} + {place}, {value});"));
        }
        self.line(0, "});");
        Ok(())
    }

    fn one_group(&mut self, aggregate: &Aggregate) -> Result<(), QueryError> {
        let groups = self.out.word(Word::Groups);
        let mut of_rows = Vec::new();
        for (number, word) in aggregate.words.iter().enumerate() {
            self.line_before(&format!("u64 word{number} = 0;"));
            let (call, adds) = if word.value.adds() { ("add_all", true) } else { ("most_all", false) };
            self.line_after(&format!("{call}(word{number}, pointer<u64>(words[{groups}]) + {number});"));
            if word.value == WordValue::Count && word.valid == Predicate::Always(true) {
                self.line(0, &format!("word{number} += __popc(rows);"));
                continue;
            }
            let (value, guard) = (self.word_value(&word.value)?, self.guard(&word.valid)?);
            of_rows.push(if adds {
                format!("{guard}word{number} += {value};")
            } else {
                format!("{guard}word{number} = greater(word{number}, {value});")
            });
        }
        if !of_rows.is_empty() {
            self.line(0, "each<ITEMS>(rows, [&](u32 i) {");
            for line in of_rows {
                self.line(1, &line);
            }
            self.line(0, "});");
        }
        Ok(())
    }

    fn guard(&mut self, valid: &Predicate) -> Result<String, QueryError> {
        match valid {
            Predicate::Always(true) => Ok(String::new()),
            valid => Ok(format!("if ({}) ", self.out.holds(valid)?)),
        }
    }

    /// What a row brings to a word.
    fn word_value(&mut self, value: &WordValue) -> Result<String, QueryError> {
        Ok(match value {
            WordValue::Count => "1u".to_owned(),
            WordValue::Sum(value) => self.out.addend(value)?,
            WordValue::SumLow(value) => self.out.narrow(value)?,
            WordValue::SumHigh(value) => format!("u64(i64({}) >> 32)", self.out.wide(value)?),
            WordValue::Greatest { value, min } => {
                let below = self.out.number(min.wrapping_sub(1).cast_unsigned(), false);
                format!("{} - {below}", self.out.wide(value)?)
            }
            WordValue::Least { value, max } => {
                let above = self.out.number(max.wrapping_add(1).cast_unsigned(), false);
                format!("{above} - {}", self.out.wide(value)?)
            }
        })
    }
}

/// Groups of a thread block: words that there is room for, and copies of each.
struct SharedGroups {
    capacity: u64,
    copies: u64,
}

impl SharedGroups {
    /// `None` where they are too many.
    fn of(aggregate: &Aggregate) -> Option<Self> {
        let Groups::Dense { slots } = aggregate.groups else { return None };
        let words = slots.saturating_mul(aggregate.words.len() as u64);
        // Few sizes, so that a query with other groups needs no other code.
        let capacity = words.checked_next_power_of_two()?.max(32);
        let fits = capacity <= MANY_GROUP_BYTES / 8 && aggregate.words.len() <= 64;
        fits.then(|| Self { capacity, copies: (FEW_GROUP_BYTES / 8 / capacity).clamp(1, 32) })
    }
}

/// By what the groups' indexes are multiplied: by index, a group's first word has a place of its own, in words or, in shared memory, in bytes.
fn index_scale(aggregate: &Aggregate) -> u64 {
    let each = aggregate.words.len() as u64;
    match (SharedGroups::of(aggregate), aggregate.groups) {
        (Some(shared), _) => each * 8 * shared.copies,
        (None, Groups::Dense { .. }) => each,
        _ => 1,
    }
}
