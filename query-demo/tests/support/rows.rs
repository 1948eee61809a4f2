//! Results as lines of text.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// The rows of a batch as text, sorted.
pub fn rows(batch: &RecordBatch) -> Vec<String> {
    let mut rows = rows_in_order(batch);
    rows.sort();
    rows
}

/// The rows of a batch as text; floating point to nine digits, since sums of it depend on their order.
pub fn rows_in_order(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("null");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| (column, ArrayFormatter::try_new(column.as_ref(), &options).unwrap()))
        .collect();
    (0..batch.num_rows())
        .map(|row| {
            let values = columns.iter().map(|(column, formatter)| {
                let text = formatter.value(row).to_string();
                match column.data_type() {
                    DataType::Float64 if !column.is_null(row) => {
                        format!("{:.9e}", text.parse::<f64>().unwrap())
                    }
                    _ => text,
                }
            });
            values.collect::<Vec<_>>().join("|")
        })
        .collect()
}
