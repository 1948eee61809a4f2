//! Dictionaries and run ends made anew around plain values.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, Int16Array, Int32Array, Int64Array, UInt32Array, make_array, make_comparator,
};
use arrow::compute::{SortOptions, cast, take};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::{Budget, build};
use crate::columns::tree::Node;
use crate::error::TableError;

/// Bytes of a slot's key or run end, and of what finds equal values.
const SLOT_BYTES: u64 = 16;

/// `array`, of a node's plain type, as `data_type`.
pub(super) fn restore(
    node: &Node,
    data_type: &DataType,
    array: ArrayRef,
    budget: &Budget,
) -> Result<ArrayRef, TableError> {
    if !matches!(data_type, DataType::Dictionary(..) | DataType::RunEndEncoded(..)) {
        return Ok(array);
    }
    // The distinct values are copied: at most all of them.
    let slot_bytes = (array.len() as u64).saturating_mul(SLOT_BYTES);
    budget.charge(node, slot_bytes.saturating_add(array.get_array_memory_size() as u64))?;
    let failed = |source| match source {
        ArrowError::DictionaryKeyOverflowError => TableError::TooManyRows { column: node.path.clone() },
        source => TableError::Arrow { column: node.path.clone(), source },
    };
    match data_type {
        DataType::Dictionary(key, values) => {
            let array = restore(node, values, array, budget)?;
            dictionary(key, values, &array).map_err(failed)
        }
        DataType::RunEndEncoded(run_ends, values) => {
            let array = restore(node, values.data_type(), array, budget)?;
            let (ends, values) = runs(&array).map_err(failed)?;
            let ends = run_ends_array(run_ends.data_type(), ends)
                .ok_or_else(|| TableError::TooManyRows { column: node.path.clone() })?;
            let data = ArrayData::builder(data_type.clone()).len(array.len());
            build(node, data.add_child_data(ends.to_data()).add_child_data(values.to_data()))
        }
        _ => Ok(array),
    }
}

/// Arrow's own cast finds equal values for most types; for the others every slot gets a key of its own.
fn dictionary(key: &DataType, values: &DataType, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let data_type = DataType::Dictionary(Box::new(key.clone()), Box::new(values.clone()));
    match cast(array, &data_type) {
        Ok(array) if array.data_type() == &data_type => return Ok(array),
        Err(error @ ArrowError::DictionaryKeyOverflowError) => return Err(error),
        _ => {}
    }
    let keys = Int64Array::from_iter_values((0_i64..).take(array.len()));
    let keys = cast(&keys, key)?;
    if keys.null_count() > 0 {
        return Err(ArrowError::DictionaryKeyOverflowError);
    }
    let data = keys.to_data().into_builder().data_type(data_type).add_child_data(array.to_data()).build()?;
    Ok(make_array(data))
}

/// Where each run of equal values ends, and one value a run.
fn runs(array: &ArrayRef) -> Result<(Vec<usize>, ArrayRef), ArrowError> {
    // A type that Arrow cannot compare gets runs of one slot.
    let comparator = make_comparator(array, array, SortOptions::default()).ok();
    let differs = |index: usize| match &comparator {
        Some(compare) => compare(index - 1, index).is_ne(),
        None => true,
    };
    let mut ends: Vec<usize> = (1..array.len()).filter(|&index| differs(index)).collect();
    if !array.is_empty() {
        ends.push(array.len());
    }
    let firsts = ends.iter().map(|&end| u32::try_from(end - 1).unwrap_or(u32::MAX));
    let values = take(array, &UInt32Array::from_iter_values(firsts), None)?;
    Ok((ends, values))
}

/// Run ends of one of Arrow's three types; `None` where they do not fit.
fn run_ends_array(data_type: &DataType, ends: Vec<usize>) -> Option<ArrayRef> {
    macro_rules! convert {
        ($array:ty, $native:ty) => {{
            let ends: Option<Vec<$native>> =
                ends.into_iter().map(|end| <$native>::try_from(end).ok()).collect();
            Some(Arc::new(<$array>::from(ends?)))
        }};
    }
    match data_type {
        DataType::Int16 => convert!(Int16Array, i16),
        DataType::Int32 => convert!(Int32Array, i32),
        _ => convert!(Int64Array, i64),
    }
}
