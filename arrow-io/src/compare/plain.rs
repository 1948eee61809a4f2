//! Arrays without their encodings.
//!
//! Arrow can hold the same values in many physical forms: plain, dictionary, run-end encoded, view; with 32 or 64 bit
//! offsets; as a list, a list view or a map. [`plain`] brings an array to one form per kind of value, so that arrays of
//! equal values have equal types and equal data, and [`plain_type`] names that form.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericListArray, GenericListViewArray, LargeListArray,
    OffsetSizeTrait, RunArray, StructArray, UInt64Array, UnionArray, downcast_run_array, new_empty_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{ArrowNativeType, DataType, Field, Fields, RunEndIndexType, UnionFields, UnionMode};
use arrow::error::ArrowError;

#[cfg(feature = "formats")]
use super::nested::children;

/// The type that [`plain`] gives to arrays of `data_type`.
///
/// Text becomes `LargeUtf8`, binary `LargeBinary`, each list-like type (maps too) `LargeList`, a union dense; a
/// dictionary or run-end encoded type becomes that of its values. Children are nullable and carry no metadata; a list's
/// child is called `item`.
pub(crate) fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::LargeUtf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::LargeBinary,
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::ListView(child)
        | DataType::LargeListView(child)
        | DataType::FixedSizeList(child, _)
        | DataType::Map(child, _) => {
            DataType::LargeList(Arc::new(Field::new_list_field(plain_type(child.data_type()), true)))
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| plain_field(field)).collect()),
        DataType::Union(fields, _) => DataType::Union(plain_union_fields(fields), UnionMode::Dense),
        other => other.clone(),
    }
}

/// Whether arrays of `data_type` can hold a dictionary or run-end encoding at any depth.
#[cfg(feature = "formats")]
pub(crate) fn has_encoding(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(..) | DataType::RunEndEncoded(..))
        || children(data_type).iter().any(|child| has_encoding(child.data_type()))
}

/// The values of `array` in the form of [`plain_type`]; the length is unchanged.
///
/// # Errors
/// What the arrow kernels report, for example an offset that does not fit.
pub(crate) fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            take(&plain(dictionary.values())?, dictionary.keys(), None)
        }
        DataType::RunEndEncoded(..) => plain_runs(array),
        DataType::Utf8 | DataType::Utf8View => cast(array, &DataType::LargeUtf8),
        DataType::Binary | DataType::BinaryView => cast(array, &DataType::LargeBinary),
        DataType::List(_) => plain_list(array.as_list::<i32>()),
        DataType::LargeList(_) => plain_list(array.as_list::<i64>()),
        DataType::Map(..) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            large_list(widened(map.offsets())?, &entries, map.nulls())
        }
        DataType::FixedSizeList(..) => plain_fixed_size_list(array.as_fixed_size_list()),
        DataType::ListView(_) => plain_list_view(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => plain_list_view(array.as_list_view::<i64>()),
        DataType::Struct(_) => plain_struct(array.as_struct()),
        DataType::Union(..) => plain_union(array.as_union()),
        _ => Ok(Arc::clone(array)),
    }
}

fn plain_field(field: &Field) -> Field {
    Field::new(field.name(), plain_type(field.data_type()), true)
}

fn plain_union_fields(fields: &UnionFields) -> UnionFields {
    fields.iter().map(|(type_id, field)| (type_id, Arc::new(plain_field(field)))).collect()
}

fn plain_runs(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    downcast_run_array! {
        array => take(&plain(array.values())?, &run_of_each_row(array), None),
        other => Err(ArrowError::InvalidArgumentError(format!("{other} is no run-end encoded type"))),
    }
}

/// For each row, the index of its run.
fn run_of_each_row<R: RunEndIndexType>(array: &RunArray<R>) -> UInt64Array {
    let ends = array.run_ends().values();
    let mut run = array.get_start_physical_index();
    let mut runs = Vec::with_capacity(array.len());
    for row in array.offset()..array.offset() + array.len() {
        while ends[run].as_usize() <= row {
            run += 1;
        }
        runs.push(run as u64);
    }
    runs.into()
}

fn plain_list<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> Result<ArrayRef, ArrowError> {
    large_list(widened(list.offsets())?, list.values(), list.nulls())
}

fn plain_fixed_size_list(list: &FixedSizeListArray) -> Result<ArrayRef, ArrowError> {
    let size = i64::from(list.value_length());
    let row_count = offset_of(list.len())?;
    large_list((0..=row_count).map(|row| row * size).collect(), list.values(), list.nulls())
}

fn plain_list_view<O: OffsetSizeTrait>(list: &GenericListViewArray<O>) -> Result<ArrayRef, ArrowError> {
    let mut offsets = vec![0_i64];
    let mut children = Vec::new();
    for (row, (offset, size)) in list.offsets().iter().zip(list.sizes()).enumerate() {
        if list.is_valid(row) {
            let start = offset.as_usize();
            children.extend((start..start + size.as_usize()).map(|child| child as u64));
        }
        offsets.push(offset_of(children.len())?);
    }
    let values = take(list.values(), &UInt64Array::from(children), None)?;
    large_list(offsets, &values, list.nulls())
}

/// A `LargeList` of the rows that `offsets` cut out of `values`; only that part of `values` is made plain.
fn large_list(
    offsets: Vec<i64>,
    values: &ArrayRef,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let first = offsets.first().copied().unwrap_or(0);
    let last = offsets.last().copied().unwrap_or(0);
    let used = values.slice(first.as_usize(), (last - first).as_usize());
    let items = plain(&used)?;
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let offsets = OffsetBuffer::new(offsets.into_iter().map(|offset| offset - first).collect());
    Ok(Arc::new(LargeListArray::try_new(field, offsets, items, nulls.cloned())?))
}

fn widened<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> Result<Vec<i64>, ArrowError> {
    offsets.iter().map(|offset| offset_of(offset.as_usize())).collect()
}

fn offset_of(index: usize) -> Result<i64, ArrowError> {
    i64::try_from(index).map_err(|_| ArrowError::OffsetOverflowError(index))
}

fn plain_struct(array: &StructArray) -> Result<ArrayRef, ArrowError> {
    let columns = array.columns().iter().map(plain).collect::<Result<Vec<_>, _>>()?;
    let fields: Fields = array.fields().iter().map(|field| plain_field(field)).collect();
    Ok(Arc::new(StructArray::try_new_with_length(fields, columns, array.nulls().cloned(), array.len())?))
}

/// A dense union in which each child holds exactly the rows that select it, in order.
fn plain_union(array: &UnionArray) -> Result<ArrayRef, ArrowError> {
    let DataType::Union(fields, _) = array.data_type() else {
        return Ok(new_empty_array(&plain_type(array.data_type())));
    };
    let mut offsets = vec![0_i32; array.len()];
    let mut children = Vec::with_capacity(fields.len());
    for (type_id, _) in fields.iter() {
        let mut selected = Vec::new();
        for (row, _) in array.type_ids().iter().enumerate().filter(|(_, id)| **id == type_id) {
            offsets[row] = i32::try_from(selected.len()).map_err(|_| ArrowError::OffsetOverflowError(row))?;
            selected.push(array.value_offset(row) as u64);
        }
        children.push(take(&plain(array.child(type_id))?, &UInt64Array::from(selected), None)?);
    }
    let type_ids: ScalarBuffer<i8> = array.type_ids().clone();
    Ok(Arc::new(UnionArray::try_new(plain_union_fields(fields), type_ids, Some(offsets.into()), children)?))
}
