//! Which columns a format can hold: those that come back with the same values and, given the schema where the format keeps
//! none, the same types.
//!
//! One exception: Parquet returns run-end encoded columns as plain ones, with the same values.

use std::fmt;

use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, IntervalUnit, Schema};

use super::Format;
use crate::compare::children;

/// A column that a format cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedColumn {
    /// The column; columns inside columns are named by a dotted path.
    pub path: String,
    /// Its type, why the format cannot hold it, and what to do.
    pub reason: String,
}

impl fmt::Display for UnsupportedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {:?} ({})", self.path, self.reason)
    }
}

/// The columns that `format` cannot hold; none for [`Format::Cb2t`], whose own writer knows.
pub fn unsupported_columns(format: Format, schema: &Schema) -> Vec<UnsupportedColumn> {
    let refusal = match format {
        Format::Parquet => parquet_refusal,
        Format::Csv | Format::Tsv => csv_refusal,
        Format::JsonLines => json_refusal,
        Format::ArrowFile | Format::ArrowStream | Format::Cb2t => return Vec::new(),
    };
    let mut found = Vec::new();
    for field in schema.fields() {
        search(refusal, field.name(), field.data_type(), &mut found);
    }
    found
}

/// Why a format cannot hold a type, regardless of the type's children.
type Refusal = fn(&DataType) -> Option<&'static str>;

/// Descends into the children of types that are not refused themselves.
fn search(refusal: Refusal, path: &str, data_type: &DataType, found: &mut Vec<UnsupportedColumn>) {
    if let Some(reason) = refusal(data_type) {
        found.push(UnsupportedColumn { path: path.to_owned(), reason: format!("{data_type}: {reason}") });
        return;
    }
    match data_type {
        DataType::Dictionary(_, values) => search(refusal, path, values, found),
        DataType::RunEndEncoded(_, values) => search(refusal, path, values.data_type(), found),
        _ => {
            for child in children(data_type) {
                search(refusal, &format!("{path}.{}", child.name()), child.data_type(), found);
            }
        }
    }
}

const NO_UNIONS: &str = "there are no unions; split it into a column for each alternative";
const NO_NEGATIVE_SCALE: &str = "there are no negative decimal scales; cast it to a scale of 0";
const NO_DURATIONS: &str = "durations do not come back from their text; cast it to Int64";
const NO_INTERVALS: &str = "intervals do not come back from their text; cast it to Utf8";
const UNKNOWN_ZONE: &str = "the time zone is not in the time zone database; cast it to another";

fn parquet_refusal(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::Union(..) => Some(NO_UNIONS),
        DataType::Interval(IntervalUnit::MonthDayNano) => Some(
            "intervals of months, days and nanoseconds are not written; split it into three integer columns",
        ),
        DataType::Struct(fields) if fields.is_empty() => Some("a struct needs a member; leave it out"),
        DataType::FixedSizeBinary(0) => Some("fixed size binary needs a size of at least 1; leave it out"),
        DataType::Dictionary(_, values) if values.is_nested() => {
            Some("dictionaries hold no nested values; cast it to its value type")
        }
        DataType::Dictionary(_, values) if **values == DataType::Boolean => {
            Some("dictionaries of booleans cannot be read back; cast it to Boolean")
        }
        other => has_negative_scale(other).then_some(NO_NEGATIVE_SCALE),
    }
}

fn csv_refusal(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        other if other.is_binary() || matches!(other, DataType::FixedSizeBinary(_)) => {
            Some("CSV is text; encode it as text, or write another format")
        }
        DataType::Dictionary(_, values) if **values == DataType::Boolean => {
            Some("dictionaries of booleans cannot be read back; cast it to Boolean")
        }
        DataType::Duration(_) => Some(NO_DURATIONS),
        other if other.is_nested() => Some("CSV has no nested columns; flatten it, or write another format"),
        other if has_negative_scale(other) => Some(NO_NEGATIVE_SCALE),
        other => has_unknown_zone(other).then_some(UNKNOWN_ZONE),
    }
}

fn json_refusal(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::Union(..) => Some(NO_UNIONS),
        DataType::Duration(_) => Some(NO_DURATIONS),
        DataType::Interval(_) => Some(NO_INTERVALS),
        DataType::Map(_, true) => Some("sorted maps cannot be read back; cast it to an unsorted map"),
        DataType::Map(entries, _) if !has_text_keys(entries.data_type()) => {
            Some("JSON's names are text, so a map needs text keys; cast them to Utf8")
        }
        DataType::Dictionary(_, values) if **values == DataType::Boolean => {
            Some("dictionaries of booleans cannot be read back; cast it to Boolean")
        }
        other if has_negative_scale(other) => Some(NO_NEGATIVE_SCALE),
        other => has_unknown_zone(other).then_some(UNKNOWN_ZONE),
    }
}

fn has_text_keys(entries: &DataType) -> bool {
    match entries {
        DataType::Struct(fields) => fields.first().is_some_and(|keys| keys.data_type().is_string()),
        _ => false,
    }
}

fn has_negative_scale(data_type: &DataType) -> bool {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale < 0,
        _ => false,
    }
}

fn has_unknown_zone(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, Some(zone)) if zone.parse::<Tz>().is_err())
}
