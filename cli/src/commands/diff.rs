//! `cb2t diff`.

use std::path::Path;

use arrow_io::compare::{CompareOptions, compare};
use arrow_io::formats::Format;
use serde_json::json;

use crate::args::{Diff, InputOptions};
use crate::error::{CliError, Outcome};
use crate::input::{Opened, input_name, open_file};
use crate::output::{print_json, print_text};
use crate::progress::Watched;

pub fn run(args: &Diff) -> Result<Outcome, CliError> {
    let mut left = Watched::new("comparing", open(&args.left, &args.input)?);
    let mut right = open(&args.right, &args.input)?;
    let options = CompareOptions {
        ignore_metadata: args.ignore_metadata,
        ignore_types: args.ignore_types,
        first_differences: args.show,
    };
    let found = compare(&mut left, &mut right.reader, &options)
        .map_err(CliError::compare(&input_name(&args.left), &input_name(&args.right)))?;
    drop(left);
    if args.json {
        let columns = found.columns.iter().map(|column| {
            let first = column.first.iter().map(|value| json!({ "row": value.row, "left": value.left, "right": value.right }));
            json!({
                "column": column.name, "differing_rows": column.differing_rows, "not_compared": column.not_compared,
                "first": first.collect::<Vec<_>>(),
            })
        });
        print_json(&json!({
            "equal": found.is_equal(), "left_rows": found.left_rows, "right_rows": found.right_rows,
            "schema": found.schema.iter().map(ToString::to_string).collect::<Vec<_>>(), "columns": columns.collect::<Vec<_>>(),
        }))?;
    } else {
        print_text(&found.to_string())?;
    }
    Ok(if found.is_equal() { Outcome::Done } else { Outcome::Differs })
}

/// Opens one side. A given schema is for text: the other formats have their own.
fn open(path: &Path, options: &InputOptions) -> Result<Opened, CliError> {
    let text = Format::from_path(path).is_ok_and(Format::is_text);
    let schema = if text { options.schema.clone() } else { None };
    open_file(path, None, &InputOptions { schema, ..options.clone() })
}
