//! `cb2t diff`.

use arrow_io::compare::{CompareOptions, compare};
use serde_json::json;

use crate::args::Diff;
use crate::error::{CliError, Outcome};
use crate::input::open_file;
use crate::output::{print_json, print_text};

pub fn run(args: &Diff) -> Result<Outcome, CliError> {
    let mut left = open_file(&args.left, None, &args.input)?;
    let mut right = open_file(&args.right, None, &args.input)?;
    let options = CompareOptions {
        ignore_metadata: args.ignore_metadata,
        ignore_types: args.ignore_types,
        first_differences: args.show,
    };
    let found = compare(&mut left.reader, &mut right.reader, &options)?;
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
