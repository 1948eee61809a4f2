//! `cb2t inspect`.

use std::collections::BTreeMap;

use cb2t::{NodeInfo, ReadOptions, Table, WriteReport};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::explain::{buffer_reports, explained};
use super::pack::choices;
use crate::args::Inspect;
use crate::error::{CliError, Outcome};
use crate::input::{column_indexes, input_name, open_table};
use crate::output::{print_json, print_text};
use crate::render::{bytes, counted, grouped, json_scalar, ratio, scalar, table, type_name};

pub fn run(args: &Inspect) -> Result<Outcome, CliError> {
    let file = input_name(&args.input);
    let opened = open_table(&args.input)?;
    let columns = column_indexes(&opened, args.columns.as_deref()).map_err(CliError::table(&file))?;
    let columns = columns.unwrap_or_else(|| (0..opened.schema().fields().len()).collect());
    if args.why {
        return why(args, &file, &opened, &columns);
    }
    let nodes: Vec<Vec<NodeInfo>> = columns
        .par_iter()
        .map(|&column| opened.inspect(column))
        .collect::<Result<_, _>>()
        .map_err(CliError::table(&file))?;
    let nodes: Vec<NodeInfo> = nodes.into_iter().flatten().collect();
    if args.json {
        print_json(&as_json(&file, &opened, &nodes, args.blocks))?;
    } else {
        let mut text = headline(&file, &opened, &nodes, args.columns.is_none());
        text.push_str(&if args.blocks { block_table(&nodes) } else { node_table(&nodes) });
        print_text(&text)?;
    }
    Ok(Outcome::Done)
}

/// Tries all codecs on the blocks as they are stored.
fn why(args: &Inspect, file: &str, opened: &Table, columns: &[usize]) -> Result<Outcome, CliError> {
    let (choice, _) = choices(&[], args.optimize)?;
    let memory_bytes = ReadOptions::default().memory_bytes;
    let reports: Vec<WriteReport> = columns
        .par_iter()
        .map(|&column| opened.trials(column, choice, memory_bytes))
        .collect::<Result<_, _>>()
        .map_err(CliError::table(file))?;
    let mut report = WriteReport::default();
    for found in reports {
        report.buffers.extend(found.buffers);
    }
    if args.json {
        print_json(&json!({ "file": file, "buffers": buffer_reports(&report) }))?;
    } else {
        print_text(&explained(&report))?;
    }
    Ok(Outcome::Done)
}

fn headline(file: &str, opened: &Table, nodes: &[NodeInfo], all_columns: bool) -> String {
    let arrow_bytes: u64 = nodes.iter().map(|node| node.arrow_bytes).sum();
    let file_bytes = opened.container().file_bytes();
    let stored_bytes: u64 = nodes.iter().map(NodeInfo::stored_bytes).sum();
    let memory = if all_columns {
        format!("in memory {} ({})", bytes(arrow_bytes), ratio(arrow_bytes, file_bytes))
    } else {
        let ratio = ratio(arrow_bytes, stored_bytes);
        format!("the columns below {}, in memory {} ({ratio})", bytes(stored_bytes), bytes(arrow_bytes))
    };
    format!(
        "{file}: {}, {}, {}, {}; {memory}; by {}\n\n",
        counted(opened.row_count(), "row"),
        counted(opened.schema().fields().len() as u64, "column"),
        counted(opened.row_groups().len() as u64, "row group"),
        bytes(file_bytes),
        opened.container().created_by(),
    )
}

/// The codecs of a node's blocks, buffer by buffer: "values rfor 12, flbp 3; validity constant".
fn codecs(node: &NodeInfo) -> String {
    let mut roles: Vec<(&str, BTreeMap<&str, usize>)> = Vec::new();
    for buffer in node.buffers.iter().filter(|buffer| buffer.row_group.is_some()) {
        let index = roles.iter().position(|(role, _)| *role == buffer.role).unwrap_or_else(|| {
            roles.push((buffer.role, BTreeMap::new()));
            roles.len() - 1
        });
        for block in &buffer.blocks {
            if let Some((_, counts)) = roles.get_mut(index) {
                *counts.entry(block.codec).or_default() += 1;
            }
        }
    }
    let role_text = |(role, counts): &(&str, BTreeMap<&str, usize>)| {
        let all = counts.len() == 1;
        let count = |(codec, count): (&&str, &usize)| {
            if all { (*codec).to_owned() } else { format!("{codec} {count}") }
        };
        let codecs: Vec<String> = counts.iter().map(count).collect();
        format!("{role} {}", if codecs.is_empty() { "-".to_owned() } else { codecs.join(" ") })
    };
    let dictionary =
        node.dictionary.map(|dictionary| format!("dictionary of {}", grouped(dictionary.entry_count)));
    let parts: Vec<String> = roles.iter().map(role_text).chain(dictionary).collect();
    if parts.is_empty() { "-".into() } else { parts.join(", ") }
}

fn node_table(nodes: &[NodeInfo]) -> String {
    let row = |node: &NodeInfo| {
        let stored = node.stored_bytes();
        let bits = if node.slot_count == 0 || node.buffers.is_empty() {
            "-".into()
        } else {
            format!("{:.2}", stored as f64 * 8.0 / node.slot_count as f64)
        };
        vec![
            node.path.clone(),
            type_name(&node.data_type),
            grouped(node.slot_count),
            grouped(node.null_count),
            codecs(node),
            bits,
            grouped(stored),
            ratio(node.arrow_bytes, stored),
            scalar(node.min.as_ref()),
            scalar(node.max.as_ref()),
        ]
    };
    let header = ["column", "type", "rows", "nulls", "codecs", "bits/value", "bytes", "ratio", "min", "max"];
    table(&header, nodes.iter().map(row).collect(), &[2, 3, 5, 6, 7])
}

fn block_table(nodes: &[NodeInfo]) -> String {
    let mut rows = Vec::new();
    for node in nodes {
        for buffer in &node.buffers {
            for (index, block) in buffer.blocks.iter().enumerate() {
                rows.push(vec![
                    node.path.clone(),
                    buffer.row_group.map_or("dictionary".into(), |group| group.to_string()),
                    role(buffer.role, buffer.limb),
                    index.to_string(),
                    block.codec.to_owned(),
                    buffer.value_width.to_string(),
                    grouped(block.value_count.into()),
                    grouped(block.tile_count.into()),
                    grouped(block.offset),
                    grouped(block.block_bytes),
                    format!("{:.2}", block.block_bytes as f64 * 8.0 / f64::from(block.value_count)),
                ]);
            }
        }
    }
    let header = [
        "column",
        "row group",
        "buffer",
        "block",
        "codec",
        "width",
        "values",
        "tiles",
        "offset",
        "bytes",
        "bits/value",
    ];
    table(&header, rows, &[1, 3, 5, 6, 7, 8, 9, 10])
}

fn role(role: &str, limb: u8) -> String {
    if limb == 0 { role.to_owned() } else { format!("{role} limb {limb}") }
}

fn as_json(file: &str, opened: &Table, nodes: &[NodeInfo], blocks: bool) -> Value {
    json!({
        "file": file,
        "rows": opened.row_count(),
        "row_groups": opened.row_groups(),
        "file_bytes": opened.container().file_bytes(),
        "created_by": opened.container().created_by(),
        "columns": nodes.iter().map(|node| node_json(node, blocks)).collect::<Vec<_>>(),
    })
}

fn node_json(node: &NodeInfo, blocks: bool) -> Value {
    let buffers = node.buffers.iter().map(|buffer| {
        let mut codecs: BTreeMap<&str, u64> = BTreeMap::new();
        for block in &buffer.blocks {
            *codecs.entry(block.codec).or_default() += 1;
        }
        let mut value = json!({
            "row_group": buffer.row_group, "buffer": buffer.role, "limb": buffer.limb, "value_width": buffer.value_width,
            "values": buffer.value_count, "bytes": buffer.blocks.iter().map(|block| block.block_bytes).sum::<u64>(), "codecs": codecs,
        });
        if blocks && let Some(object) = value.as_object_mut() {
            let all = buffer.blocks.iter().map(|block| json!({
                "codec": block.codec, "offset": block.offset, "bytes": block.block_bytes, "values": block.value_count,
                "tiles": block.tile_count, "tile_size": block.tile_size,
            }));
            object.insert("blocks".into(), all.collect());
        }
        value
    });
    json!({
        "column": node.path, "type": node.data_type.to_string(), "nullable": node.nullable, "rows": node.slot_count,
        "nulls": node.null_count, "nans": node.nan_count, "arrow_bytes": node.arrow_bytes, "bytes": node.stored_bytes(),
        "min": json_scalar(node.min.as_ref()), "max": json_scalar(node.max.as_ref()),
        "dictionary": node.dictionary.map(|dictionary| json!({ "entries": dictionary.entry_count, "ordered": dictionary.ordered })),
        "buffers": buffers.collect::<Vec<_>>(),
    })
}
