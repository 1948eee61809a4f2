//! Numbers, values and tables as people read them.

use arrow::array::ArrayRef;
use arrow::util::display::array_value_to_string;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

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

/// How many times smaller: "4.26x".
pub fn ratio(before: u64, after: u64) -> String {
    if after == 0 { "-".into() } else { format!("{:.2}x", before as f64 / after as f64) }
}

/// The one value of an array of one, as text; a dash for none. Long text is cut.
pub fn scalar(array: Option<&ArrayRef>) -> String {
    const SHOWN: usize = 24;
    let text = array.and_then(|array| array_value_to_string(array, 0).ok()).unwrap_or_else(|| "-".into());
    if text.chars().count() <= SHOWN {
        return text;
    }
    text.chars().take(SHOWN - 1).chain(['…']).collect()
}

/// The one value of an array of one as JSON: text, or null.
pub fn json_scalar(array: Option<&ArrayRef>) -> serde_json::Value {
    array.and_then(|array| array_value_to_string(array, 0).ok()).map_or(serde_json::Value::Null, Into::into)
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
    }
}
