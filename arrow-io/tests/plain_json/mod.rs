//! Values of any array in the plain JSON that `format-spec/reader.py` documents, as text: integers may have any number of digits.
#![allow(clippy::unwrap_used, clippy::panic)]

use arrow::array::*;
use arrow::datatypes::*;

/// The value in `row`: null, or as reader.py prints values of the type.
pub fn value(array: &ArrayRef, row: usize) -> String {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let null = dictionary.keys().is_null(row);
            return if null {
                "null".into()
            } else {
                value(dictionary.values(), dictionary.normalized_keys()[row])
            };
        }
        DataType::RunEndEncoded(ends, _) => {
            return match ends.data_type() {
                DataType::Int16 => in_run::<Int16Type>(array, row),
                DataType::Int32 => in_run::<Int32Type>(array, row),
                _ => in_run::<Int64Type>(array, row),
            };
        }
        DataType::Union(..) => {
            let union = array.as_union();
            let id = union.type_id(row);
            return format!("[{id}, {}]", value(union.child(id), union.value_offset(row)));
        }
        DataType::Null => return "null".into(),
        _ if array.is_null(row) => return "null".into(),
        _ => {}
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Float16 => format!("\"{:04x}\"", array.as_primitive::<Float16Type>().value(row).to_bits()),
        DataType::Float32 => format!("\"{:08x}\"", array.as_primitive::<Float32Type>().value(row).to_bits()),
        DataType::Float64 => format!("\"{:016x}\"", array.as_primitive::<Float64Type>().value(row).to_bits()),
        DataType::Utf8 => text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => text(array.as_string_view().value(row)),
        DataType::Binary => hex(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => hex(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => hex(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => hex(array.as_fixed_size_binary().value(row)),
        DataType::Interval(IntervalUnit::DayTime) => {
            let interval = array.as_primitive::<IntervalDayTimeType>().value(row);
            format!("[{}, {}]", interval.days, interval.milliseconds)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let interval = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            format!("[{}, {}, {}]", interval.months, interval.days, interval.nanoseconds)
        }
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value(row).to_string(),
        DataType::Decimal256(..) => array.as_primitive::<Decimal256Type>().value(row).to_string(),
        DataType::List(_) => items(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => items(&array.as_list::<i64>().value(row)),
        DataType::ListView(_) => items(&array.as_list_view::<i32>().value(row)),
        DataType::LargeListView(_) => items(&array.as_list_view::<i64>().value(row)),
        DataType::FixedSizeList(..) => items(&array.as_fixed_size_list().value(row)),
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let pair =
                |entry| format!("[{}, {}]", value(entries.column(0), entry), value(entries.column(1), entry));
            listed('[', (0..entries.len()).map(pair), ']')
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let pair = |(field, column): (&FieldRef, &ArrayRef)| {
                format!("{}: {}", text(field.name()), value(column, row))
            };
            listed('{', fields.iter().zip(columns).map(pair), '}')
        }
        _ => stored_integer(array, row),
    }
}

/// Integers and what is stored as one: dates, times, timestamps, durations, narrow decimals.
fn stored_integer(array: &ArrayRef, row: usize) -> String {
    macro_rules! native {
        ($type:ty) => {
            format!("{:?}", array.as_primitive::<$type>().value(row))
        };
    }
    downcast_primitive! {
        array.data_type() => (native),
        other => panic!("{other}"),
    }
}

fn in_run<R: RunEndIndexType>(array: &ArrayRef, row: usize) -> String {
    let run = array.as_run::<R>();
    value(run.values(), run.get_physical_index(row))
}

fn items(list: &ArrayRef) -> String {
    listed('[', (0..list.len()).map(|item| value(list, item)), ']')
}

fn listed(open: char, items: impl Iterator<Item = String>, close: char) -> String {
    format!("{open}{}{close}", items.collect::<Vec<_>>().join(", "))
}

fn hex(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// A string with what JSON must not hold escaped.
fn text(text: &str) -> String {
    let escaped = text.chars().map(|character| match character {
        '"' | '\\' => format!("\\{character}"),
        control if control < ' ' => format!("\\u{:04x}", u32::from(control)),
        other => other.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}
