//! Types of CSV columns, from their fields.
//!
//! A column gets a type whose parser accepts every field, so a schema inferred from all rows never fails on one. Digits
//! with a leading zero (a ZIP code, an account) stay text, as do integers beyond 64 bits and dates that do not exist.
//! Timestamps with an offset become instants in UTC.

use std::sync::{Arc, LazyLock};

use arrow::array::timezone::Tz;
use arrow::array::{AsArray, RecordBatch, StringViewArray};
use arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use arrow::datatypes::{DataType, Date32Type, Field, Float64Type, Schema, TimeUnit};
use arrow::error::ArrowError;

use super::super::inference::{Origin, TextSchema};
use super::super::options::{ReadOptions, STREAM_INFER_ROWS};

/// Rows read at a time.
pub(super) const BATCH_ROWS: usize = 1_024;

/// Inference from a stream ends after about this many bytes, since they are kept in memory.
const STREAM_INFER_BYTES: usize = 64 * 1024 * 1024;

const TEXT: u16 = 1 << 0;
const BOOLEAN: u16 = 1 << 1;
const INTEGER: u16 = 1 << 2;
const FLOAT: u16 = 1 << 3;
const DATE: u16 = 1 << 4;
/// A timestamp without an offset from UTC.
const LOCAL: u16 = 1 << 5;
/// A timestamp with an offset from UTC.
const ZONED: u16 = 1 << 6;
const SECOND: u16 = 1 << 7;
const MILLISECOND: u16 = 1 << 8;
const MICROSECOND: u16 = 1 << 9;
const NANOSECOND: u16 = 1 << 10;
/// A date or timestamp outside the years that 64 bits of nanoseconds reach (1677 to 2262).
const BEYOND_NANOSECONDS: u16 = 1 << 11;

static UTC: LazyLock<Option<Tz>> = LazyLock::new(|| "+00:00".parse().ok());

/// What kinds of fields each selected column holds.
pub(super) struct Inferred {
    names: Vec<String>,
    /// The selected columns, as indices into `names`.
    columns: Vec<usize>,
    kinds: Vec<u16>,
    row_count: u64,
    /// Whether all rows were seen.
    complete: bool,
}

impl Inferred {
    pub(super) fn new(names: &[String], columns: &[usize]) -> Self {
        Self {
            names: names.to_vec(),
            columns: columns.to_vec(),
            kinds: vec![0; columns.len()],
            row_count: 0,
            complete: true,
        }
    }

    /// Looks at the records up to the limit of the options.
    pub(super) fn read(
        &mut self,
        records: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
        is_stream: bool,
        options: &ReadOptions,
    ) -> Result<(), ArrowError> {
        let limit_rows = options.infer_rows.unwrap_or(if is_stream { STREAM_INFER_ROWS } else { u64::MAX });
        let mut bytes = 0_usize;
        for batch in records {
            if self.row_count >= limit_rows || (is_stream && bytes >= STREAM_INFER_BYTES) {
                self.complete = false;
                break;
            }
            let batch = batch?;
            bytes = bytes.saturating_add(batch.get_array_memory_size());
            let left = usize::try_from(limit_rows - self.row_count).unwrap_or(usize::MAX);
            self.complete = batch.num_rows() <= left;
            self.look_at(&batch.slice(0, batch.num_rows().min(left)), options);
            if !self.complete {
                break;
            }
        }
        Ok(())
    }

    fn look_at(&mut self, batch: &RecordBatch, options: &ReadOptions) {
        self.row_count += batch.num_rows() as u64;
        for (kinds, column) in self.kinds.iter_mut().zip(batch.columns()) {
            *kinds = kinds_of(column.as_string_view(), *kinds, &options.null_values);
        }
    }

    /// Rows of the file, if all were seen.
    pub(super) fn row_count(&self) -> Option<u64> {
        self.complete.then_some(self.row_count)
    }

    /// Adds what was found in another file with the same columns.
    pub(super) fn merge(&mut self, other: &Self) {
        for (kinds, more) in self.kinds.iter_mut().zip(&other.kinds) {
            *kinds |= more;
        }
        self.row_count += other.row_count;
        self.complete &= other.complete;
    }

    /// A schema of all columns; those not selected, of which nothing is known, are of type null.
    pub(super) fn schema(&self, is_stream: bool, options: &ReadOptions) -> TextSchema {
        // A column without values may get any later, and empty fields may be text.
        let no_values = if self.complete && options.empty_is_null { DataType::Null } else { DataType::Utf8 };
        let mut types = vec![DataType::Null; self.names.len()];
        for (column, kinds) in self.columns.iter().zip(&self.kinds) {
            if let Some(data_type) = types.get_mut(*column) {
                *data_type = data_type_of(*kinds).unwrap_or_else(|| no_values.clone());
            }
        }
        let fields: Vec<Field> =
            self.names.iter().zip(types).map(|(name, data_type)| Field::new(name, data_type, true)).collect();
        TextSchema {
            schema: Arc::new(Schema::new(fields)),
            origin: if self.complete { Origin::AllRows } else { Origin::FirstRows(self.row_count) },
            row_count: (self.complete && !is_stream).then_some(self.row_count),
        }
    }
}

/// `kinds` and those of the fields in `column`.
fn kinds_of(column: &StringViewArray, mut kinds: u16, null_values: &[String]) -> u16 {
    for field in column.iter().flatten() {
        if kinds & TEXT != 0 {
            break;
        }
        if !null_values.iter().any(|null| null == field) {
            kinds |= kind_of(field);
            if data_type_of(kinds) == Some(DataType::Utf8) {
                kinds |= TEXT;
            }
        }
    }
    kinds
}

/// The type for a set of kinds; `None` for the empty set.
fn data_type_of(kinds: u16) -> Option<DataType> {
    if kinds & NANOSECOND != 0 && kinds & BEYOND_NANOSECONDS != 0 {
        return Some(DataType::Utf8);
    }
    let kinds = kinds & !BEYOND_NANOSECONDS;
    let is_subset = |of: u16| kinds & !of == 0;
    Some(match kinds {
        0 => return None,
        BOOLEAN => DataType::Boolean,
        INTEGER => DataType::Int64,
        DATE => DataType::Date32,
        _ if is_subset(INTEGER | FLOAT) => DataType::Float64,
        _ if is_subset(ZONED | SECOND | MILLISECOND | MICROSECOND | NANOSECOND) => {
            DataType::Timestamp(unit_of(kinds), Some("UTC".into()))
        }
        _ if is_subset(DATE | LOCAL | SECOND | MILLISECOND | MICROSECOND | NANOSECOND) => {
            DataType::Timestamp(unit_of(kinds), None)
        }
        _ => DataType::Utf8,
    })
}

fn unit_of(kinds: u16) -> TimeUnit {
    match kinds {
        _ if kinds & NANOSECOND != 0 => TimeUnit::Nanosecond,
        _ if kinds & MICROSECOND != 0 => TimeUnit::Microsecond,
        _ if kinds & MILLISECOND != 0 => TimeUnit::Millisecond,
        _ => TimeUnit::Second,
    }
}

fn kind_of(field: &str) -> u16 {
    match field.as_bytes().first() {
        Some(b'0'..=b'9' | b'-' | b'.') => number_or_time(field),
        Some(b't' | b'T' | b'f' | b'F')
            if field.eq_ignore_ascii_case("true") || field.eq_ignore_ascii_case("false") =>
        {
            BOOLEAN
        }
        _ if matches!(field, "NaN" | "nan" | "inf") => FLOAT,
        _ => TEXT,
    }
}

fn number_or_time(field: &str) -> u16 {
    let digits = field.strip_prefix('-').unwrap_or(field);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits(digits) {
        return integer_kind(field, digits);
    }
    if digits == "inf" {
        return FLOAT;
    }
    if let Some(kind) = time_kind(field) {
        return kind;
    }
    let only_number_bytes =
        field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    let has_leading_zero = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if only_number_bytes && !has_leading_zero && Float64Type::parse(field).is_some_and(f64::is_finite) {
        FLOAT
    } else {
        TEXT
    }
}

fn integer_kind(field: &str, digits: &str) -> u16 {
    match field {
        "-0" => FLOAT,
        _ if digits.len() > 1 && digits.starts_with('0') => TEXT,
        _ if field.parse::<i64>().is_ok() => INTEGER,
        _ => TEXT,
    }
}

/// The kinds of `YYYY-MM-DD` and of `YYYY-MM-DD[T ]hh:mm:ss[.fraction][offset]`; `None` for what has another shape.
fn time_kind(field: &str) -> Option<u16> {
    let bytes = field.as_bytes();
    let matches = |pattern: &[u8], bytes: &[u8]| {
        pattern.len() == bytes.len()
            && pattern.iter().zip(bytes).all(|(pattern, byte)| match pattern {
                b'0' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b' '),
                other => byte == other,
            })
    };
    if !matches(b"0000-00-00", bytes.get(..10)?) {
        return None;
    }
    let Some(instant) = (*UTC).and_then(|utc| string_to_datetime(&utc, field).ok()) else {
        return Some(TEXT);
    };
    let range = if instant.timestamp_nanos_opt().is_some() { 0 } else { BEYOND_NANOSECONDS };
    if bytes.len() == 10 {
        return Some(if Date32Type::parse(field).is_some() { DATE | range } else { TEXT });
    }
    if !bytes.get(10..19).is_some_and(|time| matches(b"T00:00:00", time)) {
        return Some(TEXT);
    }
    let (fraction_digits, offset) = match field.get(19..)?.strip_prefix('.') {
        Some(fraction) => {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            (digits, fraction.get(digits..)?)
        }
        None => (0, field.get(19..)?),
    };
    let unit = match fraction_digits {
        0 => SECOND,
        1..=3 => MILLISECOND,
        4..=6 => MICROSECOND,
        7..=9 => NANOSECOND,
        _ => return Some(TEXT),
    };
    Some(unit | range | if offset.is_empty() { LOCAL } else { ZONED })
}
