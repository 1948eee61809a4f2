//! Columns as the IPC writer needs them.
//!
//! `arrow-ipc` 59 writes two kinds of slices wrongly or wastefully: of a union inside a list it writes the values before
//! the slice instead of those in it, and of a view column it writes all the bytes that the whole column refers to. Both go
//! away when the rows are copied first.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt64Array, make_array,
};
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use crate::compare::children;

/// View columns are copied when their buffers hold this many times the bytes that the rows need.
const WASTE_FACTOR: usize = 2;

/// The batch with the columns copied that need it.
pub(super) fn compacted(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(compacted_column).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}

fn compacted_column(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !needs_copy(column.data_type()) {
        return Ok(Arc::clone(column));
    }
    if matches!(column.data_type(), DataType::Utf8View | DataType::BinaryView) {
        return Ok(without_waste(column));
    }
    let rows: UInt64Array = (0..column.len() as u64).collect();
    compacted_data(&take(column, &rows, None)?.to_data()).map(make_array)
}

/// Whether the type is or contains a union or a view. The values of a dictionary do not count: they are written whole.
fn needs_copy(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::BinaryView | DataType::Union(..))
        || children(data_type).iter().any(|child| needs_copy(child.data_type()))
}

fn compacted_data(data: &ArrayData) -> Result<ArrayData, ArrowError> {
    if matches!(data.data_type(), DataType::Utf8View | DataType::BinaryView) {
        return Ok(without_waste(&make_array(data.clone())).to_data());
    }
    if !needs_copy(data.data_type()) {
        return Ok(data.clone());
    }
    let children = data.child_data().iter().map(compacted_data).collect::<Result<Vec<_>, _>>()?;
    data.clone().into_builder().child_data(children).build()
}

fn without_waste(column: &ArrayRef) -> ArrayRef {
    let held = |buffers: &[arrow::buffer::Buffer]| buffers.iter().map(|buffer| buffer.len()).sum::<usize>();
    if let Some(view) = column.as_string_view_opt()
        && held(view.data_buffers()) / WASTE_FACTOR > view.total_buffer_bytes_used()
    {
        return Arc::new(view.gc());
    }
    if let Some(view) = column.as_binary_view_opt()
        && held(view.data_buffers()) / WASTE_FACTOR > view.total_buffer_bytes_used()
    {
        return Arc::new(view.gc());
    }
    Arc::clone(column)
}
