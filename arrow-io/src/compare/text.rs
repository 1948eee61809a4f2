//! Values as text, for showing what differs.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// Longer values are cut to this many characters.
const SHOWN_CHARS: usize = 200;

/// The values at `row` of two arrays as text. Two values that differ but read alike (floats with other bits, other
/// encodings of the same characters) are told apart by their bits or by a remark.
pub(super) fn value_texts(left: &ArrayRef, right: &ArrayRef, row: usize) -> (String, String) {
    let texts = (value_text(left, row), value_text(right, row));
    if texts.0 != texts.1 {
        return (shortened(&texts.0), shortened(&texts.1));
    }
    match (float_bits(left, row), float_bits(right, row)) {
        (Some(left), Some(right)) => (format!("{} ({left})", texts.0), format!("{} ({right})", texts.1)),
        _ => {
            let same = format!("{} (reads alike, but the bits differ)", shortened(&texts.0));
            (same.clone(), same)
        }
    }
}

fn value_text(array: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::new().with_null("null").with_quoted_strings(true).with_display_error(true);
    match ArrayFormatter::try_new(array.as_ref(), &options) {
        Ok(formatter) => formatter.value(row).to_string(),
        Err(_) if is_zoned(array.data_type()) => instant_text(array, row, &options),
        Err(error) => format!("(cannot show a {}: {error})", array.data_type()),
    }
}

fn is_zoned(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, Some(_)))
}

/// A timestamp in UTC, for time zones that the formatter does not know.
fn instant_text(array: &ArrayRef, row: usize, options: &FormatOptions<'_>) -> String {
    let DataType::Timestamp(unit, _) = array.data_type() else {
        return format!("(cannot show a {})", array.data_type());
    };
    let text = cast(&array.slice(row, 1), &DataType::Timestamp(*unit, None)).and_then(|instant| {
        ArrayFormatter::try_new(instant.as_ref(), options).map(|text| text.value(0).to_string())
    });
    text.map_or_else(|error| format!("(cannot show a {}: {error})", array.data_type()), |text| text + " UTC")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

fn float_bits(array: &ArrayRef, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Float16 => {
            Some(format!("0x{:04x}", array.as_primitive::<Float16Type>().value(row).to_bits()))
        }
        DataType::Float32 => {
            Some(format!("0x{:08x}", array.as_primitive::<Float32Type>().value(row).to_bits()))
        }
        DataType::Float64 => {
            Some(format!("0x{:016x}", array.as_primitive::<Float64Type>().value(row).to_bits()))
        }
        _ => None,
    }
}
