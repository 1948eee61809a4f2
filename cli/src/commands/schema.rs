//! `cb2t schema`.

use std::collections::HashMap;
use std::fmt::Write;

use arrow::datatypes::{DataType, Field, Schema as ArrowSchema};

use crate::args::Schema;
use crate::error::{CliError, Outcome};
use crate::input::{DEFAULT_MEMORY, Inputs, open_table};
use crate::output::{print_json, print_text};
use crate::render::{cut, type_name};

const INDENT: &str = "  ";

/// Metadata may be whole documents; all of it is in the JSON.
const METADATA_CHARACTERS: usize = 120;

pub fn run(args: &Schema) -> Result<Outcome, CliError> {
    let paths = [args.input.clone()];
    let inputs = Inputs {
        paths: &paths,
        format: args.format,
        options: &args.options,
        columns: None,
        rows: None,
        schema: None,
        memory: DEFAULT_MEMORY,
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
        describe(field, 0, &mut text);
    }
    if !schema.metadata().is_empty() {
        text.push_str("\nmetadata\n");
        describe_metadata(schema.metadata(), 1, &mut text);
    }
    text
}

/// A line for the field, and below it, further right, its metadata and the fields that its type is made of.
fn describe(field: &Field, depth: usize, text: &mut String) {
    let null = if field.is_nullable() { "" } else { " not null" };
    // Writing to a String does not fail.
    let _ =
        writeln!(text, "{}{}: {}{null}", INDENT.repeat(depth), field.name(), type_name(field.data_type()));
    describe_metadata(field.metadata(), depth + 2, text);
    for child in children(field.data_type()) {
        describe(child, depth + 1, text);
    }
}

/// The fields below a type that `type_name` leaves out.
fn children(data_type: &DataType) -> Vec<&Field> {
    match data_type {
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::ListView(child)
        | DataType::LargeListView(child)
        | DataType::FixedSizeList(child, _)
        | DataType::Map(child, _) => vec![child],
        DataType::Struct(fields) => fields.iter().map(AsRef::as_ref).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.as_ref()).collect(),
        _ => Vec::new(),
    }
}

fn describe_metadata(metadata: &HashMap<String, String>, depth: usize, text: &mut String) {
    let mut entries: Vec<_> = metadata.iter().collect();
    entries.sort();
    for (key, value) in entries {
        let _ = writeln!(text, "{}{key} = {}", INDENT.repeat(depth), cut(value, METADATA_CHARACTERS));
    }
}
