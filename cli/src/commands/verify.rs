//! `cb2t verify`.

use cb2t::{ContainerError, Table, TableError, Verified};

use crate::args::Verify;
use crate::error::{CliError, Outcome};
use crate::input::open_table;
use crate::output::{print_json, print_text};
use crate::progress::steps;
use crate::render::{bytes, grouped};

pub fn run(args: &Verify) -> Result<Outcome, CliError> {
    let mut outcome = Outcome::Done;
    for path in &args.inputs {
        let file = path.display().to_string();
        let result = match open_table(path) {
            Ok(table) => verified(&table),
            Err(CliError::Table { source, .. }) if !is_foreign(&source) => Err(*source),
            Err(error) => return Err(error),
        };
        match &result {
            Ok(_) => {}
            // The disk failed, not the data.
            Err(TableError::Container(ContainerError::Read { .. })) => {}
            Err(_) => outcome = Outcome::Differs,
        }
        report(&file, result, args.json)?;
    }
    Ok(outcome)
}

/// Proves a whole table, with a progress bar.
pub fn verified(table: &Table) -> Result<Verified, TableError> {
    let bar = steps("verifying", 0);
    let verified = table.verify(&|done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    verified
}

/// Whether this never was a cb2t file, or one of a version that this program does not know: bad input, not damage.
fn is_foreign(error: &TableError) -> bool {
    use arrow_io::FormatSpecError;
    matches!(
        error,
        TableError::Container(ContainerError::Format(
            FormatSpecError::Magic { what: "file header" } | FormatSpecError::Version { .. }
        ))
    )
}

fn report(file: &str, result: Result<Verified, TableError>, json: bool) -> Result<(), CliError> {
    match (result, json) {
        (Ok(found), true) => print_json(&serde_json::json!({
            "file": file, "sound": true, "rows": found.row_count, "blocks": found.block_count, "tiles": found.tile_count,
            "bytes": found.file_bytes,
        })),
        (Err(error), true) => {
            print_json(&serde_json::json!({ "file": file, "sound": false, "error": error.to_string() }))
        }
        (Ok(found), false) => print_text(&format!(
            "{file}: sound: {} rows, {} blocks, {} tiles, {}\n",
            grouped(found.row_count),
            grouped(found.block_count),
            grouped(found.tile_count),
            bytes(found.file_bytes),
        )),
        (Err(error), false) => {
            eprintln!("cb2t: {file}: {error}");
            Ok(())
        }
    }
}
