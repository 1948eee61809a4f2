//! `cb2t gen`.

use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::time::Instant;

use arrow::array::RecordBatchReader;
use arrow::datatypes::SchemaRef;
use arrow_io::formats::{Format, WriteOptions, create};
use cb2t::{TableWriter, WriterOptions};
use datagen::{ssb, tpch};
use serde_json::json;

use super::pack::choices;
use crate::args::{Benchmark, Gen};
use crate::error::{CliError, Outcome};
use crate::input::{Opened, checked};
use crate::output::{Output, print_json};
use crate::progress::BatchProgress;
use crate::render::{bytes, counted};

/// Rows of a generated batch.
const BATCH_ROWS: usize = 65_536;

/// Begins a table's batches, made by that many threads.
type Begin = Box<dyn FnOnce(usize) -> Result<Box<dyn RecordBatchReader + Send>, CliError>>;

/// One table to generate.
struct Table {
    name: &'static str,
    schema: SchemaRef,
    row_count: u64,
    bytes_estimate: u64,
    batches: Begin,
}

pub fn run(args: &Gen) -> Result<Outcome, CliError> {
    if args.format.is_text() {
        return Err(CliError::Usage(format!(
            "--format {}: tables are generated as cb2t, parquet or arrow",
            args.format
        )));
    }
    let tables = match args.benchmark {
        Benchmark::Ssb => ssb_tables(args)?,
        Benchmark::Tpch => tpch_tables(args)?,
    };
    let (_, column_choices) = choices(&args.codecs, args.optimize)?;
    let known = |name: &str| tables.iter().any(|table| table.schema.column_with_name(name).is_some());
    if let Some(name) = column_choices.keys().find(|name| !known(name)) {
        return Err(CliError::Usage(format!("--codec {name}=...: no table has a column {name}")));
    }
    let folder_failed = |source| CliError::Io { file: args.output.display().to_string(), source };
    fs::create_dir_all(&args.output).map_err(folder_failed)?;
    let needed: u64 = tables.iter().map(|table| table.bytes_estimate).sum();
    check_space(&args.output, needed)?;
    for table in tables {
        generate(args, table)?;
    }
    Ok(Outcome::Done)
}

fn ssb_tables(args: &Gen) -> Result<Vec<Table>, CliError> {
    let generator = ssb::Generator::new(args.scale, args.dialect);
    let selected = selected(args, &ssb::Table::ALL)?;
    Ok(selected
        .into_iter()
        .map(|table| Table {
            name: table.name(),
            schema: generator.schema(table),
            row_count: generator.row_count(table),
            bytes_estimate: generator.bytes_estimate(table),
            batches: Box::new(move |threads| {
                Ok(Box::new(generator.stream(table, threads, BATCH_ROWS).map_err(failed)?))
            }),
        })
        .collect())
}

fn tpch_tables(args: &Gen) -> Result<Vec<Table>, CliError> {
    let generator = tpch::Generator::new(args.scale).map_err(failed)?;
    let selected = selected(args, &tpch::Table::ALL)?;
    Ok(selected
        .into_iter()
        .map(|table| Table {
            name: table.name(),
            schema: generator.schema(table),
            row_count: generator.row_count(table),
            bytes_estimate: generator.bytes_estimate(table),
            batches: Box::new(move |threads| {
                Ok(Box::new(generator.stream(table, threads, BATCH_ROWS).map_err(failed)?))
            }),
        })
        .collect())
}

fn failed(error: datagen::Error) -> CliError {
    CliError::Usage(error.to_string())
}

fn selected<T: Copy + FromStr<Err: std::fmt::Display>>(args: &Gen, all: &[T]) -> Result<Vec<T>, CliError> {
    let Some(names) = &args.tables else { return Ok(all.to_vec()) };
    names
        .iter()
        .map(|name| name.parse().map_err(|error: T::Err| CliError::Usage(format!("--tables: {error}"))))
        .collect()
}

/// Refuses what the disk has no room for, before an hour is spent on it.
fn check_space(folder: &Path, needed: u64) -> Result<(), CliError> {
    let Ok(free) = fs4::available_space(folder) else { return Ok(()) };
    if needed <= free {
        return Ok(());
    }
    let reason = format!(
        "about {} are needed and {} are free: choose another folder or a smaller scale",
        bytes(needed),
        bytes(free)
    );
    Err(CliError::Unsupported { file: folder.display().to_string(), reason })
}

fn generate(args: &Gen, table: Table) -> Result<(), CliError> {
    let started = Instant::now();
    let extension = match args.format {
        Format::ArrowFile => "arrow",
        Format::ArrowStream => "arrows",
        Format::Parquet => "parquet",
        _ => "cb2t",
    };
    let path = args.output.join(format!("{}.{extension}", table.name));
    let file = path.display().to_string();
    let output = Output::create(&path, args.force)?;
    let reader = (table.batches)(rayon::current_num_threads())?;
    let schema = reader.schema();
    let mut opened = Opened { reader, row_count: Some(table.row_count), progress: None };
    let progress = BatchProgress::new(table.name, &opened);
    if args.format == Format::Cb2t {
        let (choice, column_choices) = choices(&args.codecs, args.optimize)?;
        let mut options = WriterOptions::default();
        options.encode.choice = choice;
        // Which columns are named depends on the table: each takes its own.
        options.column_choices =
            column_choices.into_iter().filter(|(name, _)| schema.column_with_name(name).is_some()).collect();
        let mut writer = TableWriter::new(output.writer(), schema, &cb2t::REGISTRY, options)
            .map_err(CliError::table(&file))?;
        for batch in &mut opened.reader {
            let batch = checked(batch, table.name)?;
            writer.write(&batch).map_err(CliError::table(&file))?;
            progress.add(batch.num_rows() as u64);
        }
        writer.finish().map_err(CliError::table(&file))?;
    } else {
        let mut sink = create(output.writer(), args.format, schema, &WriteOptions::default())
            .map_err(CliError::sink(&file))?;
        for batch in &mut opened.reader {
            let batch = checked(batch, table.name)?;
            sink.write(&batch).map_err(CliError::sink(&file))?;
            progress.add(batch.num_rows() as u64);
        }
        sink.finish().map_err(CliError::sink(&file))?;
    }
    drop(progress);
    output.commit()?;
    let file_bytes = fs::metadata(&path).map(|metadata| metadata.len()).unwrap_or_default();
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        return print_json(&json!({
            "table": table.name, "file": file, "rows": table.row_count, "file_bytes": file_bytes, "seconds": seconds,
        }));
    }
    eprintln!("{file}: {}, {}, {seconds:.2} s", counted(table.row_count, "row"), bytes(file_bytes));
    Ok(())
}
