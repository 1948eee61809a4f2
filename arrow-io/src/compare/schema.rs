//! What differs between two schemas.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use arrow::datatypes::{DataType, Field, Schema};

use super::CompareOptions;
use super::nested::children;

/// One difference between two schemas. Columns inside columns are named by a dotted path.
#[derive(Debug, Clone, PartialEq)]
pub enum SchemaDifference {
    /// A column that only the left table has.
    OnlyLeft {
        /// Its name.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// A column that only the right table has.
    OnlyRight {
        /// Its name.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// The columns that both tables have come in another order.
    Order {
        /// The common columns as the left table orders them.
        left: Vec<String>,
        /// The common columns as the right table orders them.
        right: Vec<String>,
    },
    /// A column's type.
    Type {
        /// The column's path.
        column: String,
        /// Its type on the left.
        left: DataType,
        /// Its type on the right.
        right: DataType,
    },
    /// The name of a child (a list's item, a map's key) where only its place counts.
    ChildName {
        /// The path on the left.
        column: String,
        /// The child's name on the left.
        left: String,
        /// The child's name on the right.
        right: String,
    },
    /// Whether a column may hold nulls.
    Nullability {
        /// The column's path.
        column: String,
        /// Whether it is nullable on the left.
        left: bool,
        /// Whether it is nullable on the right.
        right: bool,
    },
    /// A metadata entry of a column.
    FieldMetadata {
        /// The column's path.
        column: String,
        /// The entry's key.
        key: String,
        /// Its value on the left, `None` if absent.
        left: Option<String>,
        /// Its value on the right, `None` if absent.
        right: Option<String>,
    },
    /// A metadata entry of the table.
    SchemaMetadata {
        /// The entry's key.
        key: String,
        /// Its value on the left, `None` if absent.
        left: Option<String>,
        /// Its value on the right, `None` if absent.
        right: Option<String>,
    },
}

impl fmt::Display for SchemaDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyLeft { column, data_type } => {
                write!(f, "column {column:?} ({data_type}) is only on the left")
            }
            Self::OnlyRight { column, data_type } => {
                write!(f, "column {column:?} ({data_type}) is only on the right")
            }
            Self::Order { left, right } => {
                write!(f, "column order: left [{}], right [{}]", left.join(", "), right.join(", "))
            }
            Self::Type { column, left, right } => write!(f, "type of {column:?}: left {left}, right {right}"),
            Self::ChildName { column, left, right } => {
                write!(f, "child name at {column:?}: left {left:?}, right {right:?}")
            }
            Self::Nullability { column, left, right } => {
                write!(f, "nullability of {column:?}: left {}, right {}", nullable(*left), nullable(*right))
            }
            Self::FieldMetadata { column, key, left, right } => {
                write!(f, "metadata {key:?} of {column:?}: left {}, right {}", entry(left), entry(right))
            }
            Self::SchemaMetadata { key, left, right } => {
                write!(f, "table metadata {key:?}: left {}, right {}", entry(left), entry(right))
            }
        }
    }
}

fn nullable(nullable: bool) -> &'static str {
    if nullable { "nullable" } else { "not null" }
}

fn entry(value: &Option<String>) -> String {
    value.as_ref().map_or_else(|| "absent".to_owned(), |value| format!("{value:?}"))
}

/// A column that both tables have, with its index in each.
pub(super) struct ColumnPair {
    pub(super) name: String,
    pub(super) left: usize,
    pub(super) right: usize,
}

/// The columns that both tables have, in the left table's order. Where a name occurs several times, the n-th
/// occurrences belong together.
pub(super) fn pair_columns(left: &Schema, right: &Schema) -> Vec<ColumnPair> {
    let mut right_by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, field) in right.fields().iter().enumerate().rev() {
        right_by_name.entry(field.name()).or_default().push(index);
    }
    let mut pairs = Vec::new();
    for (index, field) in left.fields().iter().enumerate() {
        if let Some(right) = right_by_name.get_mut(field.name().as_str()).and_then(Vec::pop) {
            pairs.push(ColumnPair { name: field.name().clone(), left: index, right });
        }
    }
    pairs
}

/// All differences between the schemas that `options` ask for.
pub(super) fn schema_differences(
    left: &Schema,
    right: &Schema,
    pairs: &[ColumnPair],
    options: &CompareOptions,
) -> Vec<SchemaDifference> {
    let mut found = missing_columns(left, right, pairs);
    found.extend(order_difference(pairs));
    for pair in pairs {
        field_differences(&pair.name, left.field(pair.left), right.field(pair.right), options, &mut found);
    }
    if !options.ignore_metadata {
        for (key, left, right) in metadata_differences(left.metadata(), right.metadata()) {
            found.push(SchemaDifference::SchemaMetadata { key, left, right });
        }
    }
    found
}

fn missing_columns(left: &Schema, right: &Schema, pairs: &[ColumnPair]) -> Vec<SchemaDifference> {
    let in_left: BTreeSet<usize> = pairs.iter().map(|pair| pair.left).collect();
    let in_right: BTreeSet<usize> = pairs.iter().map(|pair| pair.right).collect();
    let only_left = left.fields().iter().enumerate().filter(|(index, _)| !in_left.contains(index));
    let only_right = right.fields().iter().enumerate().filter(|(index, _)| !in_right.contains(index));
    only_left
        .map(|(_, field)| SchemaDifference::OnlyLeft {
            column: field.name().clone(),
            data_type: field.data_type().clone(),
        })
        .chain(only_right.map(|(_, field)| SchemaDifference::OnlyRight {
            column: field.name().clone(),
            data_type: field.data_type().clone(),
        }))
        .collect()
}

fn order_difference(pairs: &[ColumnPair]) -> Option<SchemaDifference> {
    if pairs.is_sorted_by_key(|pair| pair.right) {
        return None;
    }
    let mut by_right: Vec<&ColumnPair> = pairs.iter().collect();
    by_right.sort_by_key(|pair| pair.right);
    Some(SchemaDifference::Order {
        left: pairs.iter().map(|pair| pair.name.clone()).collect(),
        right: by_right.into_iter().map(|pair| pair.name.clone()).collect(),
    })
}

fn field_differences(
    column: &str,
    left: &Field,
    right: &Field,
    options: &CompareOptions,
    found: &mut Vec<SchemaDifference>,
) {
    if !options.ignore_types && left.is_nullable() != right.is_nullable() {
        found.push(SchemaDifference::Nullability {
            column: column.to_owned(),
            left: left.is_nullable(),
            right: right.is_nullable(),
        });
    }
    if !options.ignore_metadata {
        for (key, left, right) in metadata_differences(left.metadata(), right.metadata()) {
            found.push(SchemaDifference::FieldMetadata { column: column.to_owned(), key, left, right });
        }
    }
    type_differences(column, left.data_type(), right.data_type(), options, found);
}

/// Descends while both types are built the same way, and reports the types at the first place where they are not.
fn type_differences(
    column: &str,
    left: &DataType,
    right: &DataType,
    options: &CompareOptions,
    found: &mut Vec<SchemaDifference>,
) {
    if left == right {
        return;
    }
    if !built_alike(left, right) {
        if !options.ignore_types {
            found.push(SchemaDifference::Type {
                column: column.to_owned(),
                left: left.clone(),
                right: right.clone(),
            });
        }
        return;
    }
    for (left, right) in children(left).iter().zip(children(right).iter()) {
        let path = format!("{column}.{}", left.name());
        if left.name() != right.name() && !options.ignore_types {
            found.push(SchemaDifference::ChildName {
                column: path.clone(),
                left: left.name().clone(),
                right: right.name().clone(),
            });
        }
        field_differences(&path, left, right, options, found);
    }
}

/// Whether two nested types differ at most in their children.
fn built_alike(left: &DataType, right: &DataType) -> bool {
    match (left, right) {
        (DataType::List(_), DataType::List(_))
        | (DataType::LargeList(_), DataType::LargeList(_))
        | (DataType::ListView(_), DataType::ListView(_))
        | (DataType::LargeListView(_), DataType::LargeListView(_))
        | (DataType::RunEndEncoded(..), DataType::RunEndEncoded(..)) => true,
        (DataType::FixedSizeList(_, left), DataType::FixedSizeList(_, right)) => left == right,
        (DataType::Map(_, left), DataType::Map(_, right)) => left == right,
        (DataType::Struct(left), DataType::Struct(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| left.name() == right.name())
        }
        (DataType::Union(left, left_mode), DataType::Union(right, right_mode)) => {
            left_mode == right_mode
                && left.len() == right.len()
                && left
                    .iter()
                    .zip(right.iter())
                    .all(|(left, right)| left.0 == right.0 && left.1.name() == right.1.name())
        }
        _ => false,
    }
}

type MetadataDifference = (String, Option<String>, Option<String>);

/// Keys whose values differ, sorted, with the value on each side.
fn metadata_differences(
    left: &HashMap<String, String>,
    right: &HashMap<String, String>,
) -> Vec<MetadataDifference> {
    let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    keys.into_iter()
        .filter(|key| left.get(*key) != right.get(*key))
        .map(|key| (key.clone(), left.get(key).cloned(), right.get(key).cloned()))
        .collect()
}
