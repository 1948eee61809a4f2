//! `cb2t query`.

use std::path::Path;

use arrow::array::RecordBatch;
use arrow_io::formats::{Format, WriteOptions, create};
use arrow_io::table::Table;
use query_demo::{Engine, QueryResult, Session};

use crate::args::Query;
use crate::error::{CliError, Outcome};
use crate::output::{Output, print_text};
use crate::render::grid;

pub fn run(args: &Query) -> Result<Outcome, CliError> {
    let session = open(&args.tables)?;
    if args.explain || args.explain_source {
        return explain(args, &session);
    }
    let result = session.query(&args.sql, &args.engine.options()?).map_err(CliError::query)?;
    say_engine(&result);
    print(args, &result.batch)?;
    if args.profile {
        profile(args, &result)?;
    }
    Ok(Outcome::Done)
}

/// A session over `[NAME=]FILE` arguments.
fn open(tables: &[String]) -> Result<Session, CliError> {
    let mut session = Session::new().map_err(CliError::query)?;
    for argument in tables {
        // A file whose own name has a = is meant as it is.
        let (name, file) = match argument.split_once('=') {
            Some((name, file)) if !Path::new(argument).exists() => (name.to_owned(), file),
            _ => {
                let stem = Path::new(argument).file_stem().unwrap_or_default();
                (stem.to_string_lossy().into_owned(), argument.as_str())
            }
        };
        let table = Table::open(file.as_ref(), &cb2t::REGISTRY).map_err(CliError::table(file))?;
        session.add(&name, table).map_err(CliError::query)?;
    }
    Ok(session)
}

/// Which device it was is never left open; why it was not the pipelines, neither.
fn say_engine(result: &QueryResult) {
    match &result.engine {
        Engine::Cpu { instead_of_cuda: None } => {
            eprintln!("device: cpu, {} threads", rayon::current_num_threads())
        }
        Engine::Cpu { instead_of_cuda: Some(reason) } => eprintln!("device: cpu, as CUDA failed: {reason}"),
        Engine::Cuda(devices) => {
            let names: Vec<String> = devices.iter().map(|device| format!("cuda:{device}")).collect();
            eprintln!("device: {}", names.join(", "));
        }
        Engine::DataFusion { reason } => {
            eprintln!("device: cpu, on DataFusion: the compiled pipelines cannot express {reason}");
        }
    }
}

fn explain(args: &Query, session: &Session) -> Result<Outcome, CliError> {
    let text =
        session.explain(&args.sql, &args.engine.options()?, args.explain_source).map_err(CliError::query)?;
    print_text(&text)?;
    Ok(Outcome::Done)
}

fn print(args: &Query, batch: &RecordBatch) -> Result<(), CliError> {
    let format = match (&args.output, args.json, args.csv) {
        (Some(path), false, false) => Format::from_path(path)?,
        (_, true, _) => Format::JsonLines,
        (_, _, true) => Format::Csv,
        (None, false, false) => {
            let text = grid(&batch.schema(), std::slice::from_ref(batch));
            return print_text(
                &text.map_err(|source| CliError::Batch { file: "the result".to_owned(), source })?,
            );
        }
    };
    let standard = Path::new("-").to_owned();
    let output = Output::create(args.output.as_ref().unwrap_or(&standard), args.force)?;
    let name = output.name().to_owned();
    let options = WriteOptions { non_finite_as_null: true, ..WriteOptions::default() };
    let mut sink =
        create(output.writer(), format, batch.schema(), &options).map_err(CliError::sink(&name))?;
    sink.write(batch).map_err(CliError::sink(&name))?;
    sink.finish().map_err(CliError::sink(&name))?;
    output.commit()
}

/// On standard error: standard output is the result.
fn profile(args: &Query, result: &QueryResult) -> Result<(), CliError> {
    let text =
        |error: serde_json::Error| CliError::Io { file: "the profile".to_owned(), source: error.into() };
    let profile = serde_json::json!({ "engine": result.engine, "profile": result.profile });
    if args.json {
        eprintln!("{}", serde_json::to_string(&profile).map_err(text)?);
    } else {
        eprintln!("{}", serde_json::to_string_pretty(&profile).map_err(text)?);
    }
    Ok(())
}
