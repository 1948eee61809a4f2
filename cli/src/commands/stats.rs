//! `cb2t stats`.

use cb2t::NodeInfo;
use serde_json::json;

use crate::args::Stats;
use crate::error::{CliError, Outcome};
use crate::input::{column_indexes, input_name, open_table};
use crate::output::{print_json, print_text};
use crate::render::{grouped, json_scalar, scalar, table, type_name};

pub fn run(args: &Stats) -> Result<Outcome, CliError> {
    let file = input_name(&args.input);
    let opened = open_table(&args.input)?;
    let columns = column_indexes(&opened, args.columns.as_deref()).map_err(CliError::table(&file))?;
    let columns = columns.unwrap_or_else(|| (0..opened.schema().fields().len()).collect());
    let mut nodes: Vec<NodeInfo> = Vec::new();
    for column in columns {
        nodes.extend(opened.statistics(column).map_err(CliError::table(&file))?);
    }
    if args.json {
        let columns = nodes.iter().map(|node| {
            json!({
                "column": node.path, "type": node.data_type.to_string(), "rows": node.slot_count, "nulls": node.null_count,
                "nans": node.nan_count, "distinct": node.dictionary.map(|dictionary| dictionary.entry_count),
                "min": json_scalar(node.min.as_ref()), "max": json_scalar(node.max.as_ref()),
            })
        });
        print_json(
            &json!({ "file": file, "rows": opened.row_count(), "columns": columns.collect::<Vec<_>>() }),
        )?;
        return Ok(Outcome::Done);
    }
    let row = |node: &NodeInfo| {
        vec![
            node.path.clone(),
            type_name(&node.data_type),
            grouped(node.slot_count),
            grouped(node.null_count),
            grouped(node.nan_count),
            node.dictionary.map_or("-".into(), |dictionary| grouped(dictionary.entry_count)),
            scalar(node.min.as_ref()),
            scalar(node.max.as_ref()),
        ]
    };
    let header = ["column", "type", "rows", "nulls", "nans", "distinct", "min", "max"];
    print_text(&table(&header, nodes.iter().map(row).collect(), &[2, 3, 4, 5]))?;
    Ok(Outcome::Done)
}
