//! Types inside types.

use arrow::datatypes::{DataType, FieldRef};

/// The fields inside a nested type, in order; none for other types. Dictionaries have no fields.
pub(crate) fn children(data_type: &DataType) -> Vec<FieldRef> {
    match data_type {
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::ListView(child)
        | DataType::LargeListView(child)
        | DataType::FixedSizeList(child, _)
        | DataType::Map(child, _) => vec![child.clone()],
        DataType::RunEndEncoded(run_ends, values) => vec![run_ends.clone(), values.clone()],
        DataType::Struct(fields) => fields.iter().cloned().collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.clone()).collect(),
        _ => Vec::new(),
    }
}

/// The type with `map` applied to the types of its fields, except run ends; unions are left as they are.
#[cfg(feature = "formats")]
pub(crate) fn with_children(data_type: &DataType, map: fn(&DataType) -> DataType) -> DataType {
    let mapped = |field: &FieldRef| -> FieldRef {
        field.as_ref().clone().with_data_type(map(field.data_type())).into()
    };
    match data_type {
        DataType::List(child) => DataType::List(mapped(child)),
        DataType::LargeList(child) => DataType::LargeList(mapped(child)),
        DataType::ListView(child) => DataType::ListView(mapped(child)),
        DataType::LargeListView(child) => DataType::LargeListView(mapped(child)),
        DataType::FixedSizeList(child, size) => DataType::FixedSizeList(mapped(child), *size),
        DataType::Map(child, is_sorted) => DataType::Map(mapped(child), *is_sorted),
        DataType::RunEndEncoded(run_ends, values) => {
            DataType::RunEndEncoded(run_ends.clone(), mapped(values))
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(mapped).collect()),
        other => other.clone(),
    }
}
