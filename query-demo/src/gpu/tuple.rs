//! Tuple code: the kernel of a pipeline, as text that knows neither codec nor placement nor launch shape. What differs with these is in the bindings before it.

mod groups;

use std::fmt::Write;

use gpu_decode::program::Words;

use crate::QueryError;
use crate::gpu::expression::{Expressions, Width, fits_window};
use crate::gpu::options::{FEW_THREADS, MANY_THREADS};
use crate::gpu::uses::{Stage, Uses, stages};
use crate::gpu::words::{BitSet, TablePart, Word};
use crate::plan::{
    Build, Field, Groups, Index, Pipeline, Plan, Predicate, Probe, ProbeKind, Range, Sink, Value,
};

/// Of a larger table in which most keys find nothing, the keys' bits are asked first, which are a fraction of its entries and nearer; entries are fetched for what the other steps have left.
const LATE_TABLE_BYTES: u64 = 64 << 10;
/// The bits of tables' keys that a thread block copies to its shared memory, all tables' together.
const NEAR_BYTES: u64 = 40 << 10;

/// The kernel of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TupleCode {
    /// CUDA C++: the structure of the arguments and the kernel `pipeline`.
    pub text: String,
    /// The arguments in order.
    pub words: Vec<Word>,
    /// The sets that they name.
    pub sets: Vec<BitSet>,
    /// The inputs that it decodes.
    pub inputs: Vec<usize>,
    /// Bytes of shared memory that a launch adds to what the kernel declares.
    pub near_bytes: u64,
    /// Threads that a multiprocessor is to hold, unless told otherwise.
    pub most_threads: u32,
}

/// Places of the arguments that every pipeline has; three of each input follow.
const STATE: usize = 0;
const TILES: usize = 1;
const STAGE: usize = 3;
const INPUTS: usize = 4;

/// Makes the kernel of pipeline `index` of `plan`, which [`crate::gpu::check::check`] has accepted.
///
/// # Errors
/// A plan that contradicts itself, or one with more arguments than a kernel can have.
pub fn tuple_code(plan: &Plan, index: usize) -> Result<TupleCode, QueryError> {
    let missing = || QueryError::unsupported(format!("a plan without pipeline {index}"));
    let pipeline = plan.pipelines.get(index).ok_or_else(missing)?;
    let mut words = vec![Word::State, Word::TileList, Word::TileCount, Word::Stage];
    for input in 0..pipeline.inputs.len() {
        words.extend((0..3).map(|word| Word::Column { input, word }));
    }
    let stages = stages(&pipeline.steps);
    let late: Vec<bool> =
        (0..pipeline.probes().count()).map(|probe| is_late(plan, pipeline, probe)).collect();
    let mut writer = Writer {
        out: Expressions { plan, pipeline, words, sets: Vec::new() },
        index,
        uses: Uses::of(pipeline, &stages, &late),
        late,
        near_bytes: 0,
        added: Vec::new(),
        before: String::new(),
        body: String::new(),
        after: String::new(),
        has_index: false,
        is_sum: matches!(&pipeline.sink, Sink::Aggregate(aggregate) if aggregate.groups == Groups::One),
    };
    for (number, stage) in stages.iter().enumerate() {
        writer.stage(number, stage)?;
    }
    match &pipeline.sink {
        Sink::Build(build) => writer.build(build, stages.len())?,
        Sink::Aggregate(aggregate) => writer.aggregate(aggregate, stages.len())?,
    }
    writer.finish()
}

struct Writer<'p> {
    out: Expressions<'p>,
    index: usize,
    uses: Uses,
    /// The probes whose entries are fetched late.
    late: Vec<bool>,
    near_bytes: u64,
    /// The parts of the groups' key that are in the rows' indexes.
    added: Vec<usize>,
    /// Before the loop over tiles, in it, and behind it.
    before: String,
    body: String,
    after: String,
    /// Whether `index` is declared.
    has_index: bool,
    /// Whether all rows are one group.
    is_sum: bool,
}

impl Writer<'_> {
    fn finish(self) -> Result<TupleCode, QueryError> {
        let count = self.out.words.len();
        if count > Words::CAPACITY {
            return Err(QueryError::unsupported(format!(
                "a pipeline with {count} arguments, where {} are possible",
                Words::CAPACITY
            )));
        }
        let used = self.uses.inputs.iter().enumerate();
        let inputs: Vec<usize> =
            used.filter(|(_, stages)| !stages.is_empty()).map(|(input, _)| input).collect();
        let (mut first, mut now, mut next) = (String::new(), String::new(), String::new());
        for &input in &inputs {
            let place = INPUTS + 3 * input;
            // Writing to a String cannot fail.
            let _ =
                writeln!(first, "  Input{input}::At next{input} = tiles.at<Input{input}>(words + {place});");
            let _ = writeln!(now, "    const Input{input}::At at{input} = next{input};");
            let _ = writeln!(next, "    next{input} = tiles.at<Input{input}>(words + {place});");
        }
        let keeps_entries = self.uses.probes.iter().any(|stages| !stages.is_empty());
        let is_wide =
            |input: &usize| self.out.pipeline.inputs.get(*input).is_some_and(|input| input.value_width > 32);
        let is_light = self.is_sum && !keeps_entries && !inputs.iter().any(is_wide);
        let most_threads = if is_light { MANY_THREADS } else { FEW_THREADS };
        let Self { before, body, after, .. } = &self;
        let copied = if self.near_bytes > 0 { "  __syncthreads();\n" } else { "" };
        let table = printable(&self.out.pipeline.table);
        let text = format!(
            "// Scan of {table}.\n\
             struct Arguments {{\n  u64 words[{count}];\n}};\n\n\
             extern \"C\" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) pipeline(const __grid_constant__ Arguments arguments) {{\n\
             \x20 using namespace cb2t::query;\n\
             \x20 __shared__ Memory memory;\n\
             \x20 const u64* words = arguments.words;\n\
             \x20 const Group group = Group::of_this_thread();\n\
             \x20 u8* scratch = memory.scratch(threadIdx.x / Group::size);\n\
             \x20 Places& places = memory.places(threadIdx.x / Group::size, words[{STAGE}]);\n\
             \x20 State* state = pointer<State>(words[{STATE}]);\n\
             {before}\
             {copied}\
             \x20 Tiles<Group, THREADS> tiles(words + {TILES}, words + {INPUTS});\n\
             {first}\
             \x20 while (tiles.left()) {{\n\
             \x20   const u32 tile = tiles.tile;\n\
             \x20   u32 rows = tiles.rows<ITEMS>(group);\n\
             {now}\
             \x20   tiles.next();\n\
             {next}\
             {body}\
             \x20 }}\n\
             {after}\
             }}\n"
        );
        Ok(TupleCode {
            text,
            words: self.out.words,
            sets: self.out.sets,
            inputs,
            near_bytes: self.near_bytes,
            most_threads,
        })
    }

    /// A line of the loop's body.
    fn line(&mut self, indent: usize, line: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.body, "{:width$}{line}", "", width = 4 + 2 * indent);
    }

    /// A line before the loop.
    fn line_before(&mut self, line: &str) {
        let _ = writeln!(self.before, "  {line}");
    }

    /// A line behind the loop.
    fn line_after(&mut self, line: &str) {
        let _ = writeln!(self.after, "  {line}");
    }

    /// Loads the inputs that `stage` looks at.
    fn load(&mut self, stage: usize, indent: usize) {
        for input in 0..self.uses.inputs.len() {
            if self.uses.inputs.get(input).is_some_and(|stages| stages.contains(&stage)) {
                self.load_input(input, stage, indent);
            }
        }
    }

    fn load_input(&mut self, input: usize, stage: usize, indent: usize) {
        let is_first = self.uses.inputs.get(input).and_then(|stages| stages.first()) == Some(&stage);
        let call = if is_first { "load" } else { "again" };
        let name =
            self.out.pipeline.inputs.get(input).map(|input| printable(&input.name)).unwrap_or_default();
        let place = INPUTS + 3 * input;
        self.line(indent, &format!("Input{input} input{input};  // {name}"));
        self.line(
            indent,
            &format!(
                "input{input}.{call}(group, words + {place}, tile, at{input}, scratch, places.input{input});"
            ),
        );
    }

    fn stage(&mut self, number: usize, stage: &Stage<'_>) -> Result<(), QueryError> {
        self.fetch(number)?;
        if let Stage::Probe(probe, of) = stage
            && self.fetches(*probe)
        {
            self.declare_entries(*probe, of);
        }
        self.declare_index(number);
        self.line(0, "{");
        self.load(number, 1);
        match stage {
            Stage::Filter(predicate) => {
                let rows = self.rows_where(predicate)?;
                self.line(1, &format!("rows = {rows};"));
            }
            Stage::Probe(probe, of) => {
                self.probe(number == 0, *probe, of)?;
            }
        }
        self.keys(number, 1, &|_| true)?;
        self.line(0, "}");
        self.line(0, "if (!any(group, rows)) continue;");
        Ok(())
    }

    /// The rows left for which `predicate` holds.
    fn rows_where(&mut self, predicate: &Predicate) -> Result<String, QueryError> {
        let holds = self.out.holds(predicate)?;
        Ok(if reads_memory(predicate) {
            format!("where_left<ITEMS>(rows, [&](u32 i) {{ return {holds}; }})")
        } else {
            format!("rows & where<ITEMS>([&](u32 i) {{ return {holds}; }})")
        })
    }

    fn table(&self, probe: &Probe) -> Result<&Build, QueryError> {
        match self.out.plan.pipelines.get(probe.build).map(|pipeline| &pipeline.sink) {
            Some(Sink::Build(build)) => Ok(build),
            _ => Err(QueryError::unsupported(format!(
                "a probe of pipeline {}, which builds nothing",
                probe.build
            ))),
        }
    }

    /// Fetches, for the rows that are left, the entries of late probes that `stage` is the first to look at.
    fn fetch(&mut self, stage: usize) -> Result<(), QueryError> {
        let pipeline = self.out.pipeline;
        for (number, probe) in pipeline.probes().enumerate() {
            let first = self.uses.probes.get(number).and_then(|stages| stages.first());
            if !self.is_late(number) || first != Some(&stage) {
                continue;
            }
            let narrow = fits_window(self.out.range(&probe.key), self.table(probe)?.domain);
            let key = self.out.value(&probe.key, narrow)?;
            self.declare_entries(number, probe);
            self.line(0, "{");
            let mut inputs = Vec::new();
            probe.key.visit(&mut |variable| inputs.extend(input_of(variable)));
            inputs.sort_unstable();
            inputs.dedup();
            inputs.into_iter().for_each(|input| self.load_input(input, stage, 1));
            self.line(
                1,
                &format!(
                    "rows &= table{number}.find<ITEMS, false>(rows, [&](u32 i) {{ return {key}; }}, entry{number});"
                ),
            );
            self.line(0, "}");
            // Parts of the key that need no more than this make room for what the next probe finds.
            self.declare_index(stage);
            self.keys(
                stage,
                0,
                &|variable| matches!(variable, Value::Field { probe, .. } if *probe == number),
            )?;
        }
        Ok(())
    }

    /// Whether the stage of a probe itself fetches what is found.
    fn fetches(&self, probe: usize) -> bool {
        !self.is_late(probe) && self.uses.probes.get(probe).is_some_and(|stages| !stages.is_empty())
    }

    fn is_late(&self, probe: usize) -> bool {
        self.late.get(probe).copied().unwrap_or(false)
    }

    /// Declares what rows find in the table of `probe`.
    fn declare_entries(&mut self, number: usize, probe: &Probe) {
        let wide = self.table(probe).is_ok_and(|build| build.entry_width == 64);
        self.line(0, &format!("{} entry{number}[ITEMS];", name_of(!wide)));
    }

    fn probe(&mut self, every: bool, number: usize, probe: &Probe) -> Result<(), QueryError> {
        let build = self.table(probe)?;
        let (domain, entry_width, index) = (build.domain, build.entry_width, build.index);
        let narrow = fits_window(self.out.range(&probe.key), domain);
        let part = |part| Word::Table { pipeline: probe.build, part };
        let min = Word::Value(domain.min.cast_unsigned());
        let key_name = name_of(narrow);
        let table = match (index, entry_width) {
            // Beside it are its bits.
            (Index::Direct, 1) => None,
            (Index::Direct, _) => Some(format!("DirectTable<{key_name}, u{entry_width}>")),
            (Index::Hash { .. }, 1) => Some(format!("HashTable<{key_name}, NoEntry>")),
            (Index::Hash { .. }, _) => Some(format!("HashTable<{key_name}, u{entry_width}>")),
        };
        if let Some(table) = &table {
            let place = self.out.words(&[part(TablePart::Entries), part(TablePart::State), min]);
            if let Index::Hash { .. } = index {
                self.out.words(&[part(TablePart::Keys), part(TablePart::Slots)]);
            }
            self.line_before(&format!("const {table} table{number}(words + {place});"));
        }
        let by_bits = table.is_none() || self.is_late(number);
        if by_bits {
            let bits = if table.is_none() { TablePart::Entries } else { TablePart::Seen };
            let place = self.out.words(&[part(bits), part(TablePart::State), min]);
            let bytes = domain.span().saturating_add(2).div_ceil(32).saturating_mul(4);
            if self.near_bytes.saturating_add(bytes) <= NEAR_BYTES {
                let near = self.near_bytes / 4;
                self.line_before(&format!(
                    "const NearBitTable<{key_name}> keys{number}(words + {place}, added_shared() + {near});"
                ));
                self.near_bytes += bytes;
            } else {
                self.line_before(&format!("const BitTable<{key_name}> keys{number}(words + {place});"));
            }
        }
        let rows = match &probe.valid {
            Predicate::Always(true) => "rows".to_owned(),
            valid => self.rows_where(valid)?,
        };
        let key = self.out.value(&probe.key, narrow)?;
        let (call, entries) =
            if self.fetches(number) { ("find", format!(", entry{number}")) } else { ("has", String::new()) };
        let asked = if by_bits { "keys" } else { "table" };
        self.line(1, &format!("const u32 found = {asked}{number}.{call}<ITEMS, {every}>({rows}, [&](u32 i) {{ return {key}; }}{entries});"));
        let sign = if probe.kind == ProbeKind::Anti { "~" } else { "" };
        self.line(1, &format!("rows &= {sign}found;"));
        Ok(())
    }

    /// value - min, of a nullable value one more, or 0 where it is null.
    fn code(
        &mut self,
        value: &Value,
        range: Range,
        valid: Option<&Predicate>,
        narrow: bool,
    ) -> Result<String, QueryError> {
        let min = range.min.wrapping_sub(valid.is_some().into());
        let code = self.out.minus(value, min, narrow)?;
        match valid {
            None => Ok(code),
            Some(valid) => {
                let zero = if narrow { "0u" } else { "0ull" };
                Ok(format!("({} ? {code} : {zero})", self.out.holds(valid)?))
            }
        }
    }

    /// Whether the value of a row is within `range`, or null.
    fn code_within(
        &mut self,
        value: &Value,
        range: Range,
        valid: Option<&Predicate>,
    ) -> Result<String, QueryError> {
        let narrow =
            Width::of(self.out.range(value)) != Width::Wide && fits_window(self.out.range(value), range);
        let of_value = self.out.value(value, narrow)?;
        let min = self.out.number(range.min.cast_unsigned(), narrow);
        let span = self.out.number(range.span(), narrow);
        let within = format!("{of_value} - {min} <= {span}");
        match valid {
            None => Ok(within),
            Some(valid) => Ok(format!("(!{} || {within})", self.out.holds(valid)?)),
        }
    }

    /// Whether `value` lies in `range` whatever the file's bytes are: what a build has packed, it has compared.
    fn is_proven(&self, value: &Value, range: Range) -> bool {
        let within = |inner: Range| range.min <= inner.min && inner.max <= range.max;
        match value {
            Value::Literal(number) => range.has(*number),
            Value::Field { probe, field } => {
                let build = self.out.plan.probed(self.out.pipeline, *probe);
                build.and_then(|build| build.fields.get(*field)).is_some_and(|field| within(field.range))
            }
            _ => false,
        }
    }

    fn build(&mut self, build: &Build, stage: usize) -> Result<(), QueryError> {
        self.fetch(stage)?;
        self.load(stage, 0);
        let part = |part| Word::Table { pipeline: self.index, part };
        let (entry_width, unique) = (build.entry_width, build.unique);
        let (kind, words) = match (build.index, entry_width) {
            (Index::Direct, 1) => (format!("BitBuild<{unique}>"), vec![part(TablePart::Entries)]),
            (Index::Direct, _) => {
                let words = vec![part(TablePart::Entries), part(TablePart::Seen)];
                (format!("DirectBuild<u{entry_width}, {unique}>"), words)
            }
            (Index::Hash { .. }, _) => {
                let words = vec![part(TablePart::Entries), part(TablePart::Keys), part(TablePart::Slots)];
                (format!("HashBuild<u{}, {unique}>", entry_width.max(8)), words)
            }
        };
        let place = self.out.words(&words);
        self.line_before(&format!("{kind} build(words + {place}, state);"));
        self.line_before("Inserted inserted;");
        self.line_after("inserted.leave(state);");
        let holds = self.code_within(&build.key, build.domain, None)?;
        self.line(0, &format!("rows = proven<ITEMS>(state, rows, [&](u32 i) {{ return {holds}; }});"));
        for field in &build.fields {
            if !self.is_proven(&field.value, field.range) {
                let valid = field.nullable.then_some(&field.valid);
                let holds = self.code_within(&field.value, field.range, valid)?;
                self.line(
                    0,
                    &format!("rows = proven<ITEMS>(state, rows, [&](u32 i) {{ return {holds}; }});"),
                );
            }
        }
        let code = self.code(&build.key, build.domain, None, build.domain.span() < u64::from(u32::MAX))?;
        let entry = if entry_width == 1 {
            String::new()
        } else {
            format!(", [&](u32 i) {{ return {}; }}", self.entry(&build.fields, entry_width)?)
        };
        self.line(
            0,
            &format!("build.insert<ITEMS>(rows, [&](u32 i) {{ return u64({code}); }}{entry}, inserted);"),
        );
        Ok(())
    }

    /// The fields' codes side by side.
    fn entry(&mut self, fields: &[Field], entry_width: u8) -> Result<String, QueryError> {
        let narrow = entry_width <= 32;
        let mut codes = Vec::new();
        for field in fields {
            let code =
                self.code(&field.value, field.range, field.nullable.then_some(&field.valid), narrow)?;
            codes.push(if field.shift == 0 { code } else { format!("({code} << {})", field.shift) });
        }
        Ok(if codes.is_empty() { "0u".to_owned() } else { codes.join(" | ") })
    }
}

/// Whether what a probe finds is fetched only when it is looked at.
fn is_late(plan: &Plan, pipeline: &Pipeline, probe: usize) -> bool {
    let of = pipeline.probes().nth(probe);
    let (Some(of), Some(build)) = (of, plan.probed(pipeline, probe)) else { return false };
    let kept = plan.pipelines.get(of.build).and_then(|builds| builds.kept.last()).copied();
    let bytes = build.domain.span().saturating_add(1).saturating_mul(build.entry_width.into()) / 8;
    let mut by_inputs = true;
    of.key.visit(&mut |variable| by_inputs &= input_of(variable).is_some());
    let is_table = build.index == Index::Direct && build.entry_width > 1 && of.kind == ProbeKind::Inner;
    is_table && by_inputs && kept.is_some_and(|kept| kept <= 500_000) && bytes >= LATE_TABLE_BYTES
}

fn input_of(variable: &Value) -> Option<usize> {
    match variable {
        Value::Input(input) => Some(*input),
        _ => None,
    }
}

fn name_of(narrow: bool) -> &'static str {
    if narrow { "u32" } else { "u64" }
}

fn is_narrow(count: u64) -> bool {
    count <= u64::from(u32::MAX)
}

/// Whether the predicate looks into a set, which costs a load where it need not.
fn reads_memory(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::InSet { .. } => true,
        Predicate::And(parts) | Predicate::Or(parts) => parts.iter().any(reads_memory),
        Predicate::Not(inner) => reads_memory(inner),
        _ => false,
    }
}

/// A name for a comment: what ends a line or continues one must not get there.
fn printable(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '.' })
        .collect()
}
