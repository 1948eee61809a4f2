//! `cb2t head`.

use arrow::array::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use arrow_io::formats::{Format, WriteOptions, create};

use crate::args::Head;
use crate::error::{CliError, Outcome};
use crate::input::{Inputs, checked};
use crate::output::{Output, print_text};

pub fn run(args: &Head) -> Result<Outcome, CliError> {
    let paths = [args.input.clone()];
    let inputs = Inputs {
        paths: &paths,
        format: args.format,
        options: &args.options,
        columns: args.columns.clone(),
        rows: Some(0..args.rows),
        schema: None,
    };
    let name = inputs.name();
    let opened = inputs.open()?;
    let schema = opened.reader.schema();
    let batches: Vec<RecordBatch> =
        opened.reader.map(|batch| checked(batch, &name)).collect::<Result<_, _>>()?;
    if args.json {
        let output = Output::create("-".as_ref(), false)?;
        let options = WriteOptions { non_finite_as_null: true, ..WriteOptions::default() };
        let mut sink = create(output.writer(), Format::JsonLines, schema, &options)?;
        for batch in &batches {
            sink.write(batch)?;
        }
        sink.finish()?;
        return Ok(Outcome::Done);
    }
    let batches = if batches.is_empty() { vec![RecordBatch::new_empty(schema)] } else { batches };
    let table = pretty_format_batches(&batches).map_err(|source| CliError::Batch { file: name, source })?;
    print_text(&format!("{table}\n"))?;
    Ok(Outcome::Done)
}
