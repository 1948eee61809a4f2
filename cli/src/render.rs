//! Numbers, values, types and tables as people read them.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions, array_value_to_string};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// Characters of a value in a table of statistics.
const STATISTIC_CHARACTERS: usize = 24;

/// Characters of a value in a table of rows.
const VALUE_CHARACTERS: usize = 48;

/// 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 row", "1,000 rows".
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Bytes in the unit that leaves one to three digits before the point.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.*} {name}", if value < 9.995 { 2 } else { 1 })
    }
}

/// How many times smaller: "4.26x"; a dash where there was nothing to make smaller.
pub fn ratio(before: u64, after: u64) -> String {
    if before == 0 || after == 0 { "-".into() } else { format!("{:.2}x", before as f64 / after as f64) }
}

/// A type without those below it, which have lines of their own.
pub fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::List(_) => "List",
        DataType::LargeList(_) => "LargeList",
        DataType::ListView(_) => "ListView",
        DataType::LargeListView(_) => "LargeListView",
        DataType::FixedSizeList(_, length) => return format!("FixedSizeList({length})"),
        DataType::Struct(_) => "Struct",
        DataType::Map(_, true) => "Map(sorted)",
        DataType::Map(_, false) => "Map",
        DataType::Union(_, mode) => return format!("Union({mode:?})"),
        other => return other.to_string(),
    };
    name.to_owned()
}

/// The one value of an array of one, as text; a dash for none. Long text is cut.
pub fn scalar(array: Option<&ArrayRef>) -> String {
    let text = array.and_then(|array| array_value_to_string(array, 0).ok());
    text.map_or_else(|| "-".into(), |text| cut(&text, STATISTIC_CHARACTERS))
}

/// The one value of an array of one as JSON: text, or null.
pub fn json_scalar(array: Option<&ArrayRef>) -> serde_json::Value {
    array.and_then(|array| array_value_to_string(array, 0).ok()).map_or(serde_json::Value::Null, Into::into)
}

/// One line of at most `most` characters.
pub fn cut(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut left = most;
    for character in text.chars() {
        let shown: String =
            if character.is_control() { character.escape_default().collect() } else { character.into() };
        let Some(rest) = left.checked_sub(shown.chars().count()) else {
            line.pop();
            line.push('…');
            break;
        };
        line.push_str(&shown);
        left = rest;
    }
    line
}

/// A table without lines: `right` are the columns of numbers.
pub fn table(header: &[&str], rows: Vec<Vec<String>>, right: &[usize]) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if right.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    format!("{}\n", lines.join("\n"))
}

/// The rows of batches in a grid. Nulls are blank, long values are cut, numbers stand right.
pub fn grid(schema: &Schema, batches: &[RecordBatch]) -> Result<String, ArrowError> {
    let mut table = Table::new();
    table.load_preset("||--+-++|    ++++++");
    table.set_header(schema.fields().iter().map(|field| cut(field.name(), VALUE_CHARACTERS)));
    let options = FormatOptions::default();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns = columns
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.value(row).try_to_string());
            let values = values.map(|value| value.map(|text| cut(&text, VALUE_CHARACTERS)));
            table.add_row(values.collect::<Result<Vec<_>, _>>()?);
        }
    }
    for (field, column) in schema.fields().iter().zip(table.column_iter_mut()) {
        if field.data_type().is_numeric() {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    Ok(format!("{table}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_bytes_have_three_digits() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 999, 1500, 99_960, 3_200_000].map(bytes),
            ["0 B", "999 B", "1.50 kB", "100.0 kB", "3.20 MB"]
        );
        assert_eq!([0, 1, 2].map(|count| counted(count, "row")), ["0 rows", "1 row", "2 rows"]);
    }

    #[test]
    fn a_value_is_one_line_of_bounded_length() {
        assert_eq!(cut("plain", 5), "plain");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut("two\nlines", 48), "two\\nlines");
        assert_eq!(cut("żółw i coś", 5), "żółw…");
    }
}
