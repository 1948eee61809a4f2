//! Dictionaries for IPC files.
//!
//! A file holds one dictionary per column, which later batches may extend but not replace. Tables often change their
//! dictionary from batch to batch; here the keys are renumbered for one dictionary that only grows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt64Array, make_array,
};
use arrow::compute::{CastOptions, cast_with_options, concat, take};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use crate::compare::has_encoding;

/// The dictionaries of a table, in the order in which its types name them.
#[derive(Default)]
pub(super) struct GrowingDictionaries {
    by_place: Vec<GrowingDictionary>,
}

impl GrowingDictionaries {
    /// The same rows, with dictionaries that begin with those of all earlier batches.
    pub(super) fn unified(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let mut place = 0;
        let mut columns = Vec::with_capacity(batch.num_columns());
        for column in batch.columns() {
            columns.push(if has_encoding(column.data_type()) {
                make_array(self.unified_data(&column.to_data(), &mut place)?)
            } else {
                Arc::clone(column)
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(batch.schema(), columns, &options)
    }

    fn unified_data(&mut self, data: &ArrayData, place: &mut usize) -> Result<ArrayData, ArrowError> {
        if !has_encoding(data.data_type()) {
            return Ok(data.clone());
        }
        if matches!(data.data_type(), DataType::Dictionary(..)) {
            let at = *place;
            *place += 1;
            if self.by_place.len() == at {
                self.by_place.push(GrowingDictionary::default());
            }
            return match self.by_place.get_mut(at) {
                Some(dictionary) => dictionary.unified(data),
                None => Ok(data.clone()),
            };
        }
        let children = data
            .child_data()
            .iter()
            .map(|child| self.unified_data(child, place))
            .collect::<Result<Vec<_>, _>>()?;
        data.clone().into_builder().child_data(children).build()
    }
}

/// A dictionary and the number of each of its values.
#[derive(Default)]
struct GrowingDictionary {
    values: Option<ArrayRef>,
    numbers: HashMap<Box<[u8]>, u64>,
}

impl GrowingDictionary {
    fn unified(&mut self, data: &ArrayData) -> Result<ArrayData, ArrowError> {
        let array = make_array(data.clone());
        let dictionary = array.as_any_dictionary();
        let values = dictionary.values();
        if self.values.as_ref().is_some_and(|known| known.to_data().ptr_eq(&values.to_data())) {
            return Ok(data.clone());
        }
        let sort_field = SortField::new(values.data_type().clone());
        if !RowConverter::supports_fields(std::slice::from_ref(&sort_field)) {
            // Values that cannot be numbered can be written as long as they stay the same.
            return Ok(data.clone());
        }
        let renumbered = self.numbers_of(values, sort_field)?;
        let keys = take(&renumbered, dictionary.keys(), None)?;
        self.with_keys(&keys, data.data_type())
    }

    /// The number of each value, after the new ones were added.
    fn numbers_of(&mut self, values: &ArrayRef, sort_field: SortField) -> Result<UInt64Array, ArrowError> {
        let converter = RowConverter::new(vec![sort_field])?;
        let rows = converter.convert_columns(std::slice::from_ref(values))?;
        let mut next = self.values.as_ref().map_or(0, |known| known.len() as u64);
        let mut added = Vec::new();
        let mut numbers = Vec::with_capacity(values.len());
        for (index, row) in rows.iter().enumerate() {
            let number = *self.numbers.entry(row.data().into()).or_insert_with(|| {
                added.push(index as u64);
                next += 1;
                next - 1
            });
            numbers.push(number);
        }
        if !added.is_empty() {
            let added = take(values, &UInt64Array::from(added), None)?;
            self.values = Some(match &self.values {
                Some(known) => concat(&[known.as_ref(), added.as_ref()])?,
                None => added,
            });
        }
        Ok(numbers.into())
    }

    fn with_keys(&self, keys: &ArrayRef, data_type: &DataType) -> Result<ArrayData, ArrowError> {
        let (DataType::Dictionary(key_type, value_type), values) = (data_type, &self.values) else {
            return Err(ArrowError::InvalidArgumentError(format!("{data_type} is no dictionary type")));
        };
        let values = values.clone().unwrap_or_else(|| arrow::array::new_empty_array(value_type));
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let keys = cast_with_options(keys, key_type, &options).map_err(|_| {
            ArrowError::InvalidArgumentError(format!(
                "a dictionary has {} values over all batches, more than {key_type} keys can number; write arrow-stream, \
                 whose batches may each have their own dictionary, or widen the keys",
                values.len()
            ))
        })?;
        let keys = keys.to_data();
        keys.into_builder().data_type(data_type.clone()).add_child_data(values.to_data()).build()
    }
}
