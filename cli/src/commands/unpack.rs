//! `cb2t unpack`.

use std::time::Instant;

use arrow_io::formats::{Format, WriteOptions, create, is_gzip_path};
use cb2t::ReadOptions;

use super::verify::verified;
use crate::args::Unpack;
use crate::error::{CliError, Outcome};
use crate::input::{Opened, checked, clamped, column_indexes, input_name, is_standard, open_table};
use crate::output::{Output, print_json};
use crate::progress::BatchProgress;
use crate::render::counted;

pub fn run(args: &Unpack) -> Result<Outcome, CliError> {
    let started = Instant::now();
    let format = match args.format {
        Some(format) => format,
        None if is_standard(&args.output) => {
            return Err(CliError::Usage(
                "standard output has no extension: name the format by --format".into(),
            ));
        }
        None => Format::from_path(&args.output).map_err(|error| {
            CliError::Usage(error.to_string().replace("name it:", "name it with --format:"))
        })?,
    };
    if format == Format::Cb2t {
        return Err(CliError::Usage(
            "unpack writes other formats; to select from a .cb2t file into another, use pack".into(),
        ));
    }
    let file = input_name(&args.input);
    let output = Output::create(&args.output, args.force)?;
    let table = open_table(&args.input)?;
    if args.verify {
        verified(&table).map_err(CliError::table(&file))?;
    }
    let columns = column_indexes(&table, args.columns.as_deref()).map_err(CliError::table(&file))?;
    let rows = clamped(args.rows.clone(), table.row_count());
    let row_count = rows.end - rows.start;
    let options =
        ReadOptions { columns, rows: Some(rows), memory_bytes: args.memory, ..ReadOptions::default() };
    let reader = Box::new(table.into_batches(&options).map_err(CliError::table(&file))?);
    let mut opened = Opened { reader, row_count: Some(row_count), progress: None };
    let write_options = WriteOptions { gzip: is_gzip_path(&args.output), ..WriteOptions::default() };
    let mut sink = create(output.writer(), format, opened.reader.schema(), &write_options)
        .map_err(CliError::sink(output.name()))?;
    {
        let progress = BatchProgress::new("unpacking", &opened);
        for batch in &mut opened.reader {
            let batch = checked(batch, &file)?;
            sink.write(&batch).map_err(CliError::sink(output.name()))?;
            progress.add(batch.num_rows() as u64);
        }
    }
    sink.finish().map_err(CliError::sink(output.name()))?;
    output.commit()?;
    let seconds = started.elapsed().as_secs_f64();
    let report = serde_json::json!({
        "input": file, "output": args.output.display().to_string(), "format": format.to_string(), "rows": row_count, "seconds": seconds,
    });
    match (args.json, is_standard(&args.output)) {
        (true, false) => print_json(&report)?,
        (true, true) => eprintln!("{report}"),
        (false, true) => {}
        (false, false) => {
            eprintln!(
                "unpacked {} into {} ({format}), {seconds:.2} s",
                counted(row_count, "row"),
                args.output.display()
            );
        }
    }
    Ok(Outcome::Done)
}
