//! `cb2t head`.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_io::formats::{Format, WriteOptions, create};

use crate::args::Head;
use crate::error::{CliError, Outcome};
use crate::input::{DEFAULT_MEMORY, Inputs, checked};
use crate::output::{Output, print_text};
use crate::render::grid;

pub fn run(args: &Head) -> Result<Outcome, CliError> {
    let paths = [args.input.clone()];
    let inputs = Inputs {
        paths: &paths,
        format: args.format,
        options: &args.options,
        columns: args.columns.clone(),
        rows: Some(0..args.rows),
        schema: None,
        memory: DEFAULT_MEMORY,
    };
    let name = inputs.name();
    let opened = inputs.open()?;
    let schema = opened.reader.schema();
    let batches = opened.reader.map(|batch| checked(batch, &name));
    if args.json {
        return as_json(&schema, batches);
    }
    let batches: Vec<RecordBatch> = batches.collect::<Result<_, _>>()?;
    print_text(&grid(&schema, &batches).map_err(|source| CliError::Batch { file: name, source })?)?;
    Ok(Outcome::Done)
}

fn as_json(
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, CliError>>,
) -> Result<Outcome, CliError> {
    let output = Output::create("-".as_ref(), false)?;
    let options = WriteOptions { non_finite_as_null: true, ..WriteOptions::default() };
    let mut sink = create(output.writer(), Format::JsonLines, schema.clone(), &options)
        .map_err(CliError::sink(output.name()))?;
    for batch in batches {
        sink.write(&batch?).map_err(CliError::sink(output.name()))?;
    }
    sink.finish().map_err(CliError::sink(output.name()))?;
    Ok(Outcome::Done)
}
