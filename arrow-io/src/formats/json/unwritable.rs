//! Values that JSON lines cannot hold: NaN and the infinities, which the JSON writer would turn into null, and times beyond
//! the calendar, which it would turn into an error text.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, downcast_temporal_array, make_array,
};
use arrow::datatypes::{ArrowNativeType, DataType, Float16Type, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// A value that cannot be written.
pub(super) struct Found {
    pub(super) row: usize,
    pub(super) path: String,
    pub(super) problem: String,
}

/// The first value in `column` that cannot be written, if any.
pub(super) fn find_unwritable(column: &ArrayRef, path: &str, non_finite_as_null: bool) -> Option<Found> {
    let search = Search { non_finite_as_null };
    if !search.may_be_in(column) {
        return None;
    }
    (0..column.len()).find_map(|row| {
        let (path, problem) = search.at(column, row, path)?;
        Some(Found { row, path, problem })
    })
}

struct Search {
    non_finite_as_null: bool,
}

impl Search {
    /// A quick test of all values at once, which also sees those under nulls.
    fn may_be_in(&self, array: &ArrayRef) -> bool {
        match array.data_type() {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                (0..array.len()).any(|row| self.problem(array, row).is_some())
            }
            other if other.is_temporal() => {
                extremes(array).into_iter().any(|row| self.problem(array, row).is_some())
            }
            _ => array.to_data().child_data().iter().any(|child| self.may_be_in(&make_array(child.clone()))),
        }
    }

    /// The path and problem of the value at `row`, or of a value in it.
    fn at(&self, array: &ArrayRef, row: usize, path: &str) -> Option<(String, String)> {
        if array.is_null(row) {
            return None;
        }
        if let Some(fields) = array.as_struct_opt() {
            let mut members = fields.fields().iter().zip(fields.columns());
            return members
                .find_map(|(field, column)| self.at(column, row, &format!("{path}.{}", field.name())));
        }
        if let Some((items, range)) = items_of(array, row) {
            return range.into_iter().find_map(|item| self.at(&items, item, &format!("{path}[]")));
        }
        Some((path.to_owned(), self.problem(array, row)?))
    }

    fn problem(&self, array: &ArrayRef, row: usize) -> Option<String> {
        if array.is_null(row) {
            return None;
        }
        let float = match array.data_type() {
            DataType::Float16 => f64::from(array.as_primitive::<Float16Type>().value(row)),
            DataType::Float32 => f64::from(array.as_primitive::<Float32Type>().value(row)),
            DataType::Float64 => array.as_primitive::<Float64Type>().value(row),
            other if other.is_temporal() => return unprintable(array, row),
            _ => return None,
        };
        (!float.is_finite() && !self.non_finite_as_null)
            .then(|| format!("JSON has no number {float}; write it as null by option, or use another format"))
    }
}

/// The rows of the least and the greatest value: if these have a date, all do.
fn extremes(array: &ArrayRef) -> Vec<usize> {
    downcast_temporal_array!(
        array => extreme_rows(array),
        _ => Vec::new(),
    )
}

fn extreme_rows<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Vec<usize>
where
    T::Native: Ord,
{
    let valid = || (0..array.len()).filter(|row| array.is_valid(*row));
    let least = valid().min_by_key(|row| array.value(*row));
    let greatest = valid().max_by_key(|row| array.value(*row));
    least.into_iter().chain(greatest).collect()
}

fn unprintable(array: &ArrayRef, row: usize) -> Option<String> {
    let options = FormatOptions::new().with_display_error(false);
    let text =
        ArrayFormatter::try_new(array.as_ref(), &options).and_then(|text| text.value(row).try_to_string());
    text.err().map(|error| format!("{error}; leave the column out or cast it to an integer"))
}

/// The items of a list or map at `row`; `None` for other types.
fn items_of(array: &ArrayRef, row: usize) -> Option<(ArrayRef, Range<usize>)> {
    Some(match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (list.values().clone(), between(list.offsets(), row))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (list.values().clone(), between(list.offsets(), row))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            (Arc::new(map.entries().clone()), between(map.offsets(), row))
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let start = list.value_offset(row).as_usize();
            (list.values().clone(), start..start + list.value_length().as_usize())
        }
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            let start = list.value_offset(row).as_usize();
            (list.values().clone(), start..start + list.value_size(row).as_usize())
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            let start = list.value_offset(row).as_usize();
            (list.values().clone(), start..start + list.value_size(row).as_usize())
        }
        _ => return None,
    })
}

fn between<O: ArrowNativeType>(offsets: &[O], row: usize) -> Range<usize> {
    match offsets.get(row..row + 2) {
        Some([start, end]) => start.as_usize()..end.as_usize(),
        _ => 0..0,
    }
}
