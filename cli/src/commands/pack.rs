//! `cb2t pack`.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Instant;

use arrow_io::compare::{CompareOptions, compare};
use arrow_io::table::WriteReport;
use cb2t::{
    Choice, Dictionaries, DictionaryLimits, DictionarySurvey, EncodeOptions, ReadOptions, TableError,
    TableWriter, WriterOptions,
};
use serde::Serialize;

use super::explain::{BufferSummary, buffer_reports, explained};
use crate::args::{Optimize, Pack};
use crate::error::{CliError, Outcome};
use crate::input::{Inputs, checked, is_standard};
use crate::output::{Output, print_json};
use crate::progress::{BatchProgress, Watched, steps};
use crate::render::{bytes, counted, ratio};

pub fn run(args: &Pack) -> Result<Outcome, CliError> {
    let started = Instant::now();
    if is_standard(&args.output) && args.json {
        return Err(CliError::Usage("--json needs an output file: standard output is taken".into()));
    }
    let inputs = Inputs {
        paths: &args.inputs,
        format: args.format,
        options: &args.input,
        columns: args.columns.clone(),
        rows: args.rows.clone(),
        schema: None,
        memory: args.memory / 4,
    };
    let mut options = writer_options(args)?;
    let file = args.output.display().to_string();
    // An existing output is refused before anything is read.
    let output = Output::create(&args.output, args.force)?;
    if args.verify && output.temporary_path().is_none() {
        return Err(CliError::Usage("--verify needs an output that can be read again: a file".into()));
    }
    let mut opened = inputs.open()?;
    let schema = opened.reader.schema();
    // What cannot be written is refused before anything is read.
    options.check(&schema).map_err(|error| match error {
        TableError::NoColumn { .. } => CliError::Usage(format!("--codec: {error}")),
        error => CliError::table(inputs.name())(error),
    })?;
    options.dictionary_limits = dictionary_limits(args.memory, DictionarySurvey::string_node_count(&schema));
    let again = inputs.again(&schema, args.columns.clone())?;
    if !args.single_pass && inputs.can_be_read_twice() {
        options.dictionaries = survey(&again, &options)?;
    }
    let mut writer = TableWriter::new(output.writer(), schema.clone(), &cb2t::REGISTRY, options)
        .map_err(CliError::table(&file))?;
    let name = inputs.name();
    {
        let progress = BatchProgress::new("packing", &opened);
        for batch in &mut opened.reader {
            let batch = checked(batch, &name)?;
            writer.write(&batch).map_err(CliError::table(&file))?;
            progress.add(batch.num_rows() as u64);
        }
    }
    let (sink, report) = writer.finish().map_err(CliError::table(&file))?;
    drop(sink);
    if args.verify {
        verify(&output, &again, &args.output)?;
    }
    output.commit()?;
    let summary = Summary::new(&file, inputs.file_bytes(), schema.fields().len(), &report, started);
    if args.json {
        print_json(&summary)?;
    } else {
        eprintln!("{}", summary.line());
        if args.explain {
            eprint!("{}", explained(&report));
        }
    }
    Ok(Outcome::Done)
}

/// About what the program takes beside the row group.
const OWN_BYTES: u64 = 16 << 20;

fn writer_options(args: &Pack) -> Result<WriterOptions, CliError> {
    let block_bytes = u32::try_from(args.block_size)
        .ok()
        .filter(|&bytes| bytes <= 1 << 30)
        .ok_or_else(|| CliError::Usage("--block-size must be at most 1G".into()))?;
    if !matches!(args.tile_size, 512 | 1024) {
        return Err(CliError::Usage(format!(
            "--tile-size {}: a tile has 512 or 1024 values",
            args.tile_size
        )));
    }
    let (choice, column_choices) = choices(&args.codecs, args.optimize)?;
    // What is left by the program itself and the batches being read. Collecting a row group takes its bytes up to twice (vectors grow by doubling), and
    // encoding it its encoded bytes.
    let free = args.memory.saturating_sub(OWN_BYTES).max(args.memory / 4);
    let row_group_bytes = (free / 4).clamp(64 << 10, 1 << 30);
    Ok(WriterOptions {
        encode: EncodeOptions { block_bytes, tile_size: args.tile_size, choice, ..EncodeOptions::default() },
        column_choices,
        row_group_rows: args.row_group_rows,
        row_group_bytes,
        ..WriterOptions::default()
    })
}

/// What each of `count` dictionaries may hold, so that all of them stay within a quarter of the memory.
fn dictionary_limits(memory: u64, count: usize) -> DictionaryLimits {
    // Where an entry ends, and its place in the hash table.
    const ENTRY_BYTES: usize = 24;
    let each = usize::try_from(memory / 4).unwrap_or(usize::MAX) / count.max(1);
    let most = DictionaryLimits::default();
    DictionaryLimits { entries: most.entries.min(each / 2 / ENTRY_BYTES), bytes: most.bytes.min(each / 2) }
}

/// `auto`, `NAME` and `COLUMN=NAME` as choices.
pub fn choices(
    codecs: &[String],
    optimize: Optimize,
) -> Result<(Choice, BTreeMap<String, Choice>), CliError> {
    let automatic = match optimize {
        Optimize::Balanced => Choice::Auto,
        Optimize::Size => Choice::Size,
        Optimize::Speed => Choice::Speed,
    };
    let mut all = automatic;
    let mut columns = BTreeMap::new();
    for text in codecs {
        match text.rsplit_once('=') {
            Some((column, name)) => {
                columns.insert(column.to_owned(), choice(name, automatic)?);
            }
            None => all = choice(text, automatic)?,
        }
    }
    Ok((all, columns))
}

fn choice(name: &str, automatic: Choice) -> Result<Choice, CliError> {
    if name == "auto" {
        return Ok(automatic);
    }
    cb2t::REGISTRY.by_name(name).map(Choice::Prefer).ok_or_else(|| {
        let known: Vec<&str> = cb2t::REGISTRY.iter().map(|codec| codec.name()).collect();
        CliError::Usage(format!("--codec {name}: no such codec; there are auto, {}", known.join(", ")))
    })
}

/// A first pass over the columns with strings, for ordered dictionaries.
fn survey(inputs: &Inputs<'_>, options: &WriterOptions) -> Result<Dictionaries, CliError> {
    let whole = inputs.open()?.reader.schema();
    let columns = DictionarySurvey::string_columns(&whole);
    if columns.is_empty() {
        return Ok(Dictionaries::default());
    }
    let names: Vec<String> = columns.iter().map(|&index| whole.field(index).name().clone()).collect();
    // Columns of one name can only be had with all the others.
    let mut seen = HashSet::new();
    let selectable = whole.fields().iter().all(|field| seen.insert(field.name()));
    let (selected, kept) = if selectable {
        (Some(names), (0..columns.len()).collect())
    } else {
        (inputs.columns.clone(), columns.clone())
    };
    let mut opened = Inputs { columns: selected, ..inputs.clone() }.open()?;
    let name = inputs.name();
    let failed = |source| CliError::Batch { file: name.clone(), source };
    let schema = opened.reader.schema().project(&kept).map_err(failed)?;
    let mut survey =
        DictionarySurvey::new(&schema, options.dictionary_limits).map_err(CliError::table(&name))?;
    let progress = BatchProgress::new("surveying", &opened);
    for batch in &mut opened.reader {
        let batch = checked(batch, &name)?.project(&kept).map_err(failed)?;
        survey.add(&batch).map_err(CliError::table(&name))?;
        progress.add(batch.num_rows() as u64);
    }
    Ok(survey.finish(&columns))
}

/// Proves the file that is about to get its name, and compares it with the inputs where they can be read again.
fn verify(output: &Output, inputs: &Inputs<'_>, path: &Path) -> Result<(), CliError> {
    let Some(temporary) = output.temporary_path() else { return Ok(()) };
    let failed = |source| CliError::table(path.display())(source);
    let written = cb2t::open(&temporary).map_err(failed)?;
    let bar = steps("verifying", 0);
    written
        .verify(&|done, total| {
            bar.set_length(total);
            bar.set_position(done);
        })
        .map_err(failed)?;
    bar.finish_and_clear();
    if !inputs.can_be_read_twice() {
        return Ok(());
    }
    let mut original = Watched::new("comparing", inputs.open()?);
    let mut copy = written.read(&ReadOptions::default()).map_err(failed)?;
    let comparison = compare(&mut original, &mut copy, &CompareOptions::default())
        .map_err(CliError::compare(&inputs.name(), &path.display().to_string()))?;
    drop(original);
    if comparison.is_equal() {
        return Ok(());
    }
    let reason = format!("it differs from its input, and was not kept:\n{comparison}");
    Err(CliError::Unsupported { file: path.display().to_string(), reason })
}

#[derive(Serialize)]
struct Summary<'a> {
    output: &'a str,
    rows: u64,
    columns: usize,
    row_groups: u64,
    input_bytes: Option<u64>,
    arrow_bytes: u64,
    file_bytes: u64,
    seconds: f64,
    buffers: Vec<BufferSummary<'a>>,
}

impl<'a> Summary<'a> {
    fn new(
        output: &'a str,
        input_bytes: Option<u64>,
        columns: usize,
        report: &'a WriteReport,
        started: Instant,
    ) -> Self {
        Self {
            output,
            rows: report.row_count,
            columns,
            row_groups: report.row_group_count,
            input_bytes,
            arrow_bytes: report.arrow_bytes,
            file_bytes: report.file_bytes,
            seconds: started.elapsed().as_secs_f64(),
            buffers: buffer_reports(report),
        }
    }

    fn line(&self) -> String {
        let input = self.input_bytes.map_or(String::new(), |input| format!("input {}, ", bytes(input)));
        format!(
            "packed {} of {} into {}: {}{input}in memory {} ({}), {:.2} s",
            counted(self.rows, "row"),
            counted(self.columns as u64, "column"),
            self.output,
            format_args!("{}, ", bytes(self.file_bytes)),
            bytes(self.arrow_bytes),
            ratio(self.arrow_bytes, self.file_bytes),
            self.seconds,
        )
    }
}
