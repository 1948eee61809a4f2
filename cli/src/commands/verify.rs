//! `cb2t verify`.

mod device;

use arrow_io::FormatSpecError;
use cb2t::{ContainerError, Table, TableError, Verified};
use codec_core::BufferError;
use serde_json::json;

use super::devices::cuda;
use crate::args::Verify;
use crate::error::{CliError, Outcome};
use crate::input::{input_name, open_table};
use crate::output::{print_json, print_text};
use crate::progress::steps;
use crate::render::{bytes, counted};

/// What became of one file.
enum Verdict {
    Sound(Verified),
    /// Sound, and the device decodes what the CPU decodes.
    SoundOnDevice(Verified, device::Compared),
    /// The device decodes something else.
    Differs(String),
    /// It is a file of ours, but not as it was written.
    Damaged(TableError),
    /// It cannot be read, or never was a file of ours, or is one of a version that this program does not know.
    Unreadable(CliError),
}

pub fn run(args: &Verify) -> Result<Outcome, CliError> {
    let (mut damaged, mut unreadable) = (false, false);
    let cuda = if args.device == "cpu" { None } else { Some(cuda(&args.device)?) };
    for path in &args.inputs {
        let file = input_name(path);
        let verdict = match open_table(path) {
            Ok(table) => match (verdict(&file, verified(&table)), &cuda) {
                (Verdict::Sound(found), Some(cuda)) => match device::compare(&table, cuda, &file)? {
                    Ok(compared) => Verdict::SoundOnDevice(found, compared),
                    Err(difference) => Verdict::Differs(difference),
                },
                (verdict, _) => verdict,
            },
            Err(CliError::Table { source, .. }) => verdict(&file, Err(*source)),
            Err(error) => Verdict::Unreadable(error),
        };
        damaged |= matches!(verdict, Verdict::Damaged(_) | Verdict::Differs(_));
        unreadable |= matches!(verdict, Verdict::Unreadable(_));
        report(&file, &verdict, args.json)?;
    }
    Ok(match (damaged, unreadable) {
        (true, _) => Outcome::Differs,
        (false, true) => Outcome::Unreadable,
        (false, false) => Outcome::Done,
    })
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

fn verdict(file: &str, result: Result<Verified, TableError>) -> Verdict {
    match result {
        Ok(found) => Verdict::Sound(found),
        Err(error) if is_foreign(&error) || is_unread(&error) => {
            Verdict::Unreadable(CliError::table(file)(error))
        }
        Err(error) => Verdict::Damaged(error),
    }
}

/// Whether this never was a cb2t file, or one of a version that this program does not know.
fn is_foreign(error: &TableError) -> bool {
    matches!(
        error,
        TableError::Container(ContainerError::Format(
            FormatSpecError::Magic { what: "file header" }
                | FormatSpecError::Version { what: "file header", .. }
        ))
    )
}

/// Whether the disk failed, not the data. What lies beyond the end of the file is damage.
fn is_unread(error: &TableError) -> bool {
    let container = match error {
        TableError::Container(source) | TableError::Section { source, .. } => source,
        TableError::Buffer { source, .. } => match source.as_ref() {
            BufferError::Read { source, .. } => source,
            _ => return false,
        },
        _ => return false,
    };
    matches!(container, ContainerError::Read { source, .. } if source.kind() != std::io::ErrorKind::UnexpectedEof)
}

fn report(file: &str, verdict: &Verdict, as_json: bool) -> Result<(), CliError> {
    let (found, compared) = match verdict {
        Verdict::Sound(found) => (found, None),
        Verdict::SoundOnDevice(found, compared) => (found, Some(compared)),
        Verdict::Damaged(error) => return report_failure(file, &format!("{file}: {error}"), as_json),
        Verdict::Differs(difference) => {
            return report_failure(file, &format!("{file}: {difference}"), as_json);
        }
        Verdict::Unreadable(error) => return report_failure(file, &error.to_string(), as_json),
    };
    if as_json {
        let compared = compared.map(|compared| {
            json!({ "values": compared.values, "blocks": compared.blocks, "blocks_left_out": compared.left_out })
        });
        return print_json(&json!({
            "file": file, "sound": true, "rows": found.row_count, "blocks": found.block_count,
            "tiles": found.tile_count, "bytes": found.file_bytes, "device": compared,
        }));
    }
    let on_device = compared.map_or(String::new(), |compared| {
        let left_out = counted(compared.left_out, "block");
        let values = counted(compared.values, "value");
        format!("; the device decodes {values} alike ({left_out} without device code left out)")
    });
    print_text(&format!(
        "{file}: sound: {}, {}, {}, {}{on_device}\n",
        counted(found.row_count, "row"),
        counted(found.block_count, "block"),
        counted(found.tile_count, "tile"),
        bytes(found.file_bytes),
    ))
}

fn report_failure(file: &str, failure: &str, as_json: bool) -> Result<(), CliError> {
    if as_json {
        return print_json(&json!({ "file": file, "sound": false, "error": failure }));
    }
    eprintln!("cb2t: {failure}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    fn read(kind: ErrorKind) -> TableError {
        TableError::Container(ContainerError::Read { offset: 0, length: 1, source: Error::from(kind) })
    }

    #[test]
    fn a_failing_disk_is_not_damage_and_a_missing_end_is() {
        assert!(matches!(verdict("f", Err(read(ErrorKind::PermissionDenied))), Verdict::Unreadable(_)));
        assert!(matches!(verdict("f", Err(read(ErrorKind::UnexpectedEof))), Verdict::Damaged(_)));
    }
}
