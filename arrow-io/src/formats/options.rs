//! How to read and how to write.

use std::ops::Range;

use arrow::datatypes::SchemaRef;

use super::Format;

/// Rows of a stream from which a schema is inferred, unless [`ReadOptions::infer_rows`] says otherwise.
pub const STREAM_INFER_ROWS: u64 = 10_000;

/// How to read a foreign file.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The format; if `None` it is taken from the path's extension, or else from the first bytes.
    pub format: Option<Format>,
    /// The schema of a CSV, TSV or JSON lines file; if `None` it is inferred. Other formats bring their own, so giving
    /// one for them is an error.
    pub schema: Option<SchemaRef>,
    /// The columns to return, in this order, by top-level name; all if `None`.
    pub columns: Option<Vec<String>>,
    /// The range of rows to return, counted from 0; all if `None`. Where it goes beyond the end, what exists is returned.
    pub rows: Option<Range<u64>>,
    /// Most rows in a batch. Tables with hundreds of columns may come in shorter ones.
    pub batch_rows: usize,
    /// Bytes that a batch should take at most: rows that are long come in shorter batches. A batch has at least one row, and those of an Arrow file or
    /// stream are as long as they were written.
    pub batch_bytes: usize,
    /// The delimiter of CSV fields; if `None`, a comma for CSV and a tab for TSV.
    pub delimiter: Option<u8>,
    /// Whether a CSV file begins with a line of column names. Without it columns are called `column_1`, `column_2`, …
    pub has_header: bool,
    /// CSV fields that stand for null, for example `NA`, besides the empty field.
    pub null_values: Vec<String>,
    /// Whether an empty CSV field is null in a text column, too; in other columns it always is. CSV itself tells `""` from
    /// an empty field, but the reader does not.
    pub empty_is_null: bool,
    /// Rows from which the schema is inferred. If `None`, the whole of a file and the first [`STREAM_INFER_ROWS`] of a
    /// stream. A later row that does not fit is an error, never a silent null.
    pub infer_rows: Option<u64>,
}

/// Most fields in a batch of text, since its readers reserve room for them.
const MAX_BATCH_FIELDS: usize = 512 * 1024;

impl ReadOptions {
    /// Rows in a batch where a row takes `row_bytes`.
    pub(super) fn fitting_rows(&self, row_bytes: usize) -> usize {
        self.batch_rows.min(self.batch_bytes / row_bytes.max(1)).max(1)
    }

    /// Rows in a batch of a text format.
    pub(super) fn text_batch_rows(&self, column_count: usize) -> usize {
        self.batch_rows.clamp(1, (MAX_BATCH_FIELDS / column_count.max(1)).max(1))
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            schema: None,
            columns: None,
            rows: None,
            batch_rows: 8_192,
            batch_bytes: 32 * 1024 * 1024,
            delimiter: None,
            has_header: true,
            null_values: Vec::new(),
            empty_is_null: true,
            infer_rows: None,
        }
    }
}

/// How Parquet pages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParquetCompression {
    /// Not at all.
    None,
    /// Snappy.
    Snappy,
    /// Gzip at its default level.
    Gzip,
    /// Zstandard at a level from 1 to 22.
    Zstd(i32),
}

/// How Arrow IPC buffers are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrowCompression {
    /// LZ4 frames.
    Lz4,
    /// Zstandard at its default level.
    Zstd,
}

/// How to write a foreign file.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Compression of Parquet pages.
    pub parquet_compression: ParquetCompression,
    /// Most rows in a Parquet row group.
    pub parquet_row_group_rows: usize,
    /// Compression of Arrow file and stream buffers, if any.
    pub arrow_compression: Option<ArrowCompression>,
    /// Whether to gzip CSV, TSV or JSON lines. For other formats this is an error.
    pub gzip: bool,
    /// The delimiter of CSV fields; if `None`, a comma for CSV and a tab for TSV.
    pub delimiter: Option<u8>,
    /// Whether a CSV file begins with a line of column names.
    pub has_header: bool,
    /// What CSV holds in place of a null; empty by default.
    pub null_text: String,
    /// Whether JSON lines hold `null` for NaN and the infinities, which JSON has no numbers for. Otherwise they are an
    /// error.
    pub non_finite_as_null: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            parquet_compression: ParquetCompression::Zstd(3),
            parquet_row_group_rows: 1024 * 1024,
            arrow_compression: None,
            gzip: false,
            delimiter: None,
            has_header: true,
            null_text: String::new(),
            non_finite_as_null: false,
        }
    }
}
