//! Parquet files, read and written by the `parquet` crate.

mod pages;
mod whole;

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, RowGroups, RowSelector,
};
use ::parquet::arrow::{ArrowWriter, ProjectionMask, parquet_to_arrow_field_levels};
use ::parquet::basic::{Compression, GzipLevel, Type as PhysicalType, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use ::parquet::file::properties::WriterProperties;
use arrow::array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use self::pages::CheckedRowGroups;
use self::whole::WholeFile;
use super::FormatError;
use super::options::{ParquetCompression, ReadOptions, WriteOptions};
use super::projection::selected_columns;
use super::reader::Opened;
use super::rows::{clamped, row_count_of};
use super::sink::{OUTPUT, Sink};
use super::source::Source;

/// A row group is also closed when it holds about this many encoded bytes, which bounds the writer's memory.
const MAX_ROW_GROUP_BYTES: usize = 512 * 1024 * 1024;

pub(super) fn open(source: Source, options: &ReadOptions) -> Result<Opened, FormatError> {
    let name = source.name.clone();
    let failed = |source| FormatError::Parquet { name: name.clone(), source };
    let file = WholeFile(source.into_file()?);
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(failed)?;

    let group_rows = row_group_rows(&name, metadata.metadata())?;
    let rows = clamped(options.rows.as_ref(), group_rows.iter().copied().fold(0, u64::saturating_add));
    let row_count = row_count_of(&rows);
    let selected = select_row_groups(&group_rows, &rows);
    let schema = metadata.schema().clone();
    let columns = selected_columns(&name, &schema, options.columns.as_deref())?;

    let mask = match &columns {
        Some(columns) => ProjectionMask::roots(metadata.parquet_schema(), columns.iter().copied()),
        None => ProjectionMask::all(),
    };
    let batch_rows = options.fitting_rows(row_bytes(metadata.metadata(), &mask));
    let levels = parquet_to_arrow_field_levels(metadata.parquet_schema(), mask, Some(schema.fields()))
        .map_err(failed)?;
    let row_groups = CheckedRowGroups {
        file: Arc::new(file),
        metadata: metadata.metadata().clone(),
        selected: selected.row_groups,
    };
    let count = usize::try_from(row_count).unwrap_or(usize::MAX);
    let count = count.min(row_groups.num_rows().saturating_sub(selected.offset));
    let selection = vec![RowSelector::skip(selected.offset), RowSelector::select(count)];
    let reader = ParquetRecordBatchReader::try_new_with_row_groups(
        &levels,
        &row_groups,
        batch_rows.min(count),
        Some(selection.into()),
    )
    .map_err(failed)?;
    let reader = Restored::new(reader, schema, columns.as_deref());
    let reader = Box::new(reader.map_err(|error| arrow_error(&name, error))?);
    Ok(Opened { reader, row_count: Some(row_count), counts_rows: true })
}

fn arrow_error(name: &str, source: ArrowError) -> FormatError {
    FormatError::Arrow { input: name.to_owned(), format: super::Format::Parquet, source }
}

fn row_group_rows(name: &str, metadata: &ParquetMetaData) -> Result<Vec<u64>, FormatError> {
    let groups = metadata.row_groups().iter().enumerate();
    groups
        .map(|(index, group)| {
            u64::try_from(group.num_rows()).map_err(|_| {
                FormatError::malformed(name, format!("row group {index} claims {} rows", group.num_rows()))
            })
        })
        .collect()
}

/// Bytes of a row of the columns in `mask`, as far as the metadata tell: those of the row group with the longest.
fn row_bytes(metadata: &ParquetMetaData, mask: &ProjectionMask) -> usize {
    let of_group = |group: &RowGroupMetaData| {
        let columns = group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf));
        let bytes: u64 = columns.map(|(_, column)| decoded_bytes(column)).fold(0, u64::saturating_add);
        bytes / u64::try_from(group.num_rows()).unwrap_or_default().max(1)
    };
    let longest = metadata.row_groups().iter().map(of_group).max().unwrap_or_default();
    usize::try_from(longest).unwrap_or(usize::MAX)
}

/// About the bytes of a column chunk's values: no fewer than it takes as it is encoded, or than its values take by themselves.
fn decoded_bytes(column: &ColumnChunkMetaData) -> u64 {
    let count = |number: i64| u64::try_from(number).unwrap_or_default();
    let value_bytes = match column.column_type() {
        PhysicalType::BOOLEAN => 1,
        PhysicalType::INT32 | PhysicalType::FLOAT => 4,
        PhysicalType::INT64 | PhysicalType::DOUBLE | PhysicalType::BYTE_ARRAY => 8,
        PhysicalType::INT96 => 12,
        PhysicalType::FIXED_LEN_BYTE_ARRAY => {
            u64::try_from(column.column_descr().type_length()).unwrap_or_default()
        }
    };
    let fixed = count(column.num_values()).saturating_mul(value_bytes);
    let texts = column.unencoded_byte_array_data_bytes().map_or(0, count);
    fixed.saturating_add(texts).max(count(column.uncompressed_size()))
}

struct SelectedRowGroups {
    row_groups: Vec<usize>,
    /// Rows to skip in the first of them.
    offset: usize,
}

/// The row groups that hold any of `rows`.
fn select_row_groups(group_rows: &[u64], rows: &Range<u64>) -> SelectedRowGroups {
    let mut selected = SelectedRowGroups { row_groups: Vec::new(), offset: 0 };
    let mut start = 0_u64;
    for (index, row_count) in group_rows.iter().enumerate() {
        let end = start.saturating_add(*row_count);
        if start < rows.end && end > rows.start {
            if selected.row_groups.is_empty() {
                selected.offset = usize::try_from(rows.start.saturating_sub(start)).unwrap_or(usize::MAX);
            }
            selected.row_groups.push(index);
        }
        start = end;
    }
    selected
}

/// The `parquet` crate's reader leaves out the table's metadata and returns the selected columns in the file's order; this
/// puts both right.
struct Restored {
    reader: ParquetRecordBatchReader,
    schema: SchemaRef,
    /// Where the reader has each column.
    order: Vec<usize>,
}

impl Restored {
    fn new(
        reader: ParquetRecordBatchReader,
        schema: SchemaRef,
        columns: Option<&[usize]>,
    ) -> Result<Self, ArrowError> {
        let Some(columns) = columns else {
            let order = (0..schema.fields().len()).collect();
            return Ok(Self { reader, schema, order });
        };
        let mut in_file_order = columns.to_vec();
        in_file_order.sort_unstable();
        let order = columns.iter().filter_map(|column| in_file_order.binary_search(column).ok()).collect();
        Ok(Self { reader, schema: schema.project(columns)?.into(), order })
    }

    fn restored(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns = self.order.iter().map(|column| batch.column(*column).clone()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}

impl Iterator for Restored {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?;
        Some(batch.and_then(|batch| self.restored(&batch)))
    }
}

impl RecordBatchReader for Restored {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Writes a Parquet file with the Arrow schema embedded, so that types and metadata come back as they were.
pub(super) struct ParquetSink {
    writer: ArrowWriter<Box<dyn Write + Send>>,
    row_group_rows: usize,
}

impl ParquetSink {
    pub(super) fn new(
        output: Box<dyn Write + Send>,
        schema: SchemaRef,
        options: &WriteOptions,
    ) -> Result<Self, FormatError> {
        let row_group_rows = options.parquet_row_group_rows.max(1);
        let properties = WriterProperties::builder()
            .set_compression(compression(options.parquet_compression).map_err(write_error)?)
            .set_max_row_group_row_count(Some(row_group_rows))
            .set_max_row_group_bytes(Some(MAX_ROW_GROUP_BYTES))
            .build();
        let writer = ArrowWriter::try_new(output, schema, Some(properties)).map_err(write_error)?;
        Ok(Self { writer, row_group_rows })
    }
}

fn compression(compression: ParquetCompression) -> Result<Compression, ParquetError> {
    Ok(match compression {
        ParquetCompression::None => Compression::UNCOMPRESSED,
        ParquetCompression::Snappy => Compression::SNAPPY,
        ParquetCompression::Gzip => Compression::GZIP(GzipLevel::default()),
        ParquetCompression::Zstd(level) => Compression::ZSTD(ZstdLevel::try_new(level)?),
    })
}

fn write_error(source: ParquetError) -> FormatError {
    FormatError::Parquet { name: OUTPUT.to_owned(), source }
}

impl Sink for ParquetSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        // The writer cuts longer batches by recursion.
        for start in (0..batch.num_rows()).step_by(self.row_group_rows) {
            let row_count = self.row_group_rows.min(batch.num_rows() - start);
            self.writer.write(&batch.slice(start, row_count)).map_err(write_error)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), FormatError> {
        self.writer.finish().map_err(write_error)?;
        self.writer.inner_mut().flush().map_err(|error| FormatError::io(OUTPUT, error))
    }
}

#[cfg(test)]
mod tests {
    use super::select_row_groups;

    #[test]
    fn only_row_groups_that_meet_the_range_are_selected() {
        let selected = select_row_groups(&[100, 0, 50, 100], &(120..151));
        assert_eq!((selected.row_groups, selected.offset), (vec![2, 3], 20));
        let selected = select_row_groups(&[100, 50], &(0..100));
        assert_eq!((selected.row_groups, selected.offset), (vec![0], 0));
        let selected = select_row_groups(&[100, 50], &(150..150));
        assert_eq!((selected.row_groups, selected.offset), (vec![], 0));
    }
}
