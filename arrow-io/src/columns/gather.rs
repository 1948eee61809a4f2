//! Slots of arrays gathered into new ones, of any type.

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, MutableArrayData, make_array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute;
use arrow::datatypes::{DataType, UInt64Type};
use arrow::error::ArrowError;

/// The values at `indexes`, as many as these. Arrow's own `take` forgets how long an array without bytes is (structs without fields, lists of no slots, and what
/// is made of them), and refuses lists whose items are null where no field says so, as unions can be.
///
/// # Errors
/// Arrow cannot copy slots of the type.
pub(crate) fn take_slots(values: &ArrayRef, indexes: &dyn Array) -> Result<ArrayRef, ArrowError> {
    // In a union its children are too short then, which is an error.
    if let Ok(taken) = compute::take(values, indexes, None)
        && taken.len() == indexes.len()
    {
        return Ok(taken);
    }
    if values.is_empty() {
        return Ok(new_null_array(values.data_type(), indexes.len()));
    }
    let data = values.to_data();
    let mut taken = MutableArrayData::new(vec![&data], false, indexes.len());
    for index in compute::cast(indexes, &DataType::UInt64)?.as_primitive::<UInt64Type>() {
        // Any slot will do where there shall be a null.
        let index = usize::try_from(index.unwrap_or(0)).unwrap_or(usize::MAX).min(values.len() - 1);
        taken.try_extend(0, index, index + 1)?;
    }
    let taken = taken.freeze();
    let Some(nulls) = indexes.nulls() else { return Ok(make_array(taken)) };
    let nulls = NullBuffer::union(taken.nulls(), Some(nulls));
    taken.into_builder().nulls(nulls).build().map(make_array)
}

/// The arrays, of one type, one after the other. Arrow's own `concat` refuses lists whose items are null where no field says so, as unions can be.
///
/// # Errors
/// Arrow cannot copy slots of the type.
pub(crate) fn joined_slots(arrays: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let borrowed: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    let length = arrays.iter().map(|array| array.len()).sum();
    if let Ok(joined) = compute::concat(&borrowed)
        && joined.len() == length
    {
        return Ok(joined);
    }
    let data: Vec<ArrayData> = arrays.iter().map(|array| array.to_data()).collect();
    let mut joined = MutableArrayData::new(data.iter().collect(), false, length);
    for (index, array) in arrays.iter().enumerate() {
        joined.try_extend(index, 0, array.len())?;
    }
    Ok(make_array(joined.freeze()))
}
