//! A first pass over an input that can be read twice: the ordered dictionaries of its strings.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use rayon::prelude::*;

use crate::columns::build::{Coding, Content, NodeBuilder};
use crate::columns::dictionary::{DictionaryLimits, StringDictionary};
use crate::columns::tree::{Node, Shape};
use crate::error::TableError;

/// Ordered dictionaries, by column index and node index.
#[derive(Debug, Clone, Default)]
pub struct Dictionaries(BTreeMap<(usize, u32), Arc<StringDictionary>>);

impl Dictionaries {
    /// The dictionary of node `node` of column `column`.
    #[must_use]
    pub fn get(&self, column: usize, node: u32) -> Option<&Arc<StringDictionary>> {
        self.0.get(&(column, node))
    }
}

/// Collects the distinct strings of all batches of a table.
#[derive(Debug)]
pub struct DictionarySurvey {
    columns: Vec<SurveyedColumn>,
}

#[derive(Debug)]
struct SurveyedColumn {
    node: Node,
    builder: NodeBuilder,
    totals: BTreeMap<u32, Totals>,
}

/// What a string node holds in all batches.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    value_count: u64,
    value_bytes: u64,
}

impl DictionarySurvey {
    /// A survey of tables of `schema`.
    ///
    /// # Errors
    /// A type that cannot be stored.
    pub fn new(schema: &Schema, limits: DictionaryLimits) -> Result<Self, TableError> {
        let coding = |_: &Node| Coding::Growing { dictionary: Box::default(), limits, committed: false };
        let columns = Node::columns(schema)?
            .into_iter()
            .map(|node| SurveyedColumn {
                builder: NodeBuilder::new(&node, &mut { coding }),
                node,
                totals: BTreeMap::new(),
            })
            .collect();
        Ok(Self { columns })
    }

    /// Indexes of the columns that have strings somewhere: the others need not be read.
    #[must_use]
    pub fn string_columns(schema: &Schema) -> Vec<usize> {
        string_counts(schema).filter(|(_, count)| *count > 0).map(|(index, _)| index).collect()
    }

    /// How many dictionaries a table of `schema` may have: one for each place in its types that holds strings.
    #[must_use]
    pub fn string_node_count(schema: &Schema) -> usize {
        string_counts(schema).map(|(_, count)| count).sum()
    }

    /// Looks at one batch.
    ///
    /// # Errors
    /// As the writer's.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        self.columns.par_iter_mut().zip(batch.columns().par_iter()).try_for_each(|(column, array)| {
            column.builder.append(&column.node, array)?;
            count(&column.node, &column.builder, &mut column.totals);
            column.builder.clear(&column.node);
            Ok(())
        })
    }

    /// The dictionaries that pay, ascending. `columns` are the surveyed columns' indexes in the table.
    #[must_use]
    pub fn finish(self, columns: &[usize]) -> Dictionaries {
        let mut dictionaries = BTreeMap::new();
        // Column by column, since a dictionary is there twice until its unordered form goes.
        for (column, &index) in self.columns.into_iter().zip(columns) {
            collect(&column.node, &column.builder, &column.totals, index, &mut dictionaries);
        }
        Dictionaries(dictionaries)
    }
}

/// The columns by index, each with the number of its nodes that hold strings.
fn string_counts(schema: &Schema) -> impl Iterator<Item = (usize, usize)> {
    let count = |node: Node| node.preorder().iter().filter(|node| node.shape == Shape::Bytes).count();
    schema.fields().iter().map(move |field| Node::column(field).map_or(0, count)).enumerate()
}

fn count(node: &Node, builder: &NodeBuilder, totals: &mut BTreeMap<u32, Totals>) {
    if let Content::Codes(codes) = &builder.content
        && let Some(dictionary) = builder.coding.dictionary()
    {
        let total = totals.entry(node.index).or_default();
        total.value_count += codes.len() as u64;
        total.value_bytes += codes.iter().map(|&code| dictionary.entry(code).len() as u64).sum::<u64>();
    }
    for (child, builder) in node.children.iter().zip(&builder.children) {
        count(child, builder, totals);
    }
}

fn collect(
    node: &Node,
    builder: &NodeBuilder,
    totals: &BTreeMap<u32, Totals>,
    column: usize,
    dictionaries: &mut BTreeMap<(usize, u32), Arc<StringDictionary>>,
) {
    let total = totals.get(&node.index).copied().unwrap_or_default();
    if let Some(dictionary) = builder.coding.dictionary()
        && dictionary.pays(total.value_count, total.value_bytes)
    {
        dictionaries.insert((column, node.index), dictionary.sorted());
    }
    for (child, builder) in node.children.iter().zip(&builder.children) {
        collect(child, builder, totals, column, dictionaries);
    }
}
