//! `cb2t schema`.

use std::fmt::Write;

use arrow::datatypes::{Field, Schema as ArrowSchema};

use crate::args::Schema;
use crate::error::{CliError, Outcome};
use crate::input::{Inputs, open_table};
use crate::output::{print_json, print_text};

pub fn run(args: &Schema) -> Result<Outcome, CliError> {
    let paths = [args.input.clone()];
    let inputs = Inputs {
        paths: &paths,
        format: args.format,
        options: &args.options,
        columns: None,
        rows: None,
        schema: None,
    };
    // Of a .cb2t file only the footer is read.
    let schema = if inputs.is_table() {
        open_table(&args.input)?.schema().clone()
    } else {
        inputs.open()?.reader.schema()
    };
    if args.json {
        print_json(&*schema)?;
    } else {
        print_text(&rendered(&schema))?;
    }
    Ok(Outcome::Done)
}

fn rendered(schema: &ArrowSchema) -> String {
    let mut text = String::new();
    for field in schema.fields() {
        describe(field, &mut text);
    }
    if !schema.metadata().is_empty() {
        text.push_str("\nmetadata\n");
        describe_metadata(schema.metadata(), &mut text);
    }
    text
}

fn describe(field: &Field, text: &mut String) {
    let null = if field.is_nullable() { "" } else { " not null" };
    // Writing to a String does not fail.
    let _ = writeln!(text, "{}: {}{null}", field.name(), field.data_type());
    describe_metadata(field.metadata(), text);
}

fn describe_metadata(metadata: &std::collections::HashMap<String, String>, text: &mut String) {
    let mut entries: Vec<_> = metadata.iter().collect();
    entries.sort();
    for (key, value) in entries {
        let _ = writeln!(text, "    {key} = {value}");
    }
}
