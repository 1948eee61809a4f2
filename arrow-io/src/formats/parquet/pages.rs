//! The pages of a file, of which no dictionary claims more entries than its bytes can hold.

use std::sync::Arc;

use ::parquet::arrow::arrow_reader::RowGroups;
use ::parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use ::parquet::file::serialized_reader::SerializedPageReader;

use super::whole::WholeFile;

/// Row groups of a file, as the `parquet` crate's reader asks for them: it makes room for as many values as a dictionary page's header claims, up to 2^31, before it decodes
/// one, so each claim is checked on its way there.
pub(super) struct CheckedRowGroups {
    pub(super) file: Arc<WholeFile>,
    pub(super) metadata: Arc<ParquetMetaData>,
    /// Which row groups are read, in order.
    pub(super) selected: Vec<usize>,
}

impl RowGroups for CheckedRowGroups {
    fn num_rows(&self) -> usize {
        let rows = self.row_groups().map(|group| usize::try_from(group.num_rows()).unwrap_or_default());
        rows.fold(0, usize::saturating_add)
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        Ok(Box::new(ColumnChunks {
            file: self.file.clone(),
            metadata: self.metadata.clone(),
            column,
            row_groups: self.selected.clone().into_iter(),
        }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.selected.iter().map(|group| self.metadata.row_group(*group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The chunks of one column, one a row group.
struct ColumnChunks {
    file: Arc<WholeFile>,
    metadata: Arc<ParquetMetaData>,
    column: usize,
    row_groups: std::vec::IntoIter<usize>,
}

impl Iterator for ColumnChunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.metadata.row_group(self.row_groups.next()?);
        let rows = usize::try_from(group.num_rows()).unwrap_or_default();
        let pages = SerializedPageReader::new(self.file.clone(), group.column(self.column), rows, None);
        Some(pages.map(|pages| Box::new(CheckedPages(pages)) as _))
    }
}

impl PageIterator for ColumnChunks {}

/// The pages of a column chunk.
struct CheckedPages(SerializedPageReader<WholeFile>);

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.0.get_next_page()?;
        page.as_ref().map_or(Ok(()), check_dictionary)?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.0.at_record_boundary()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// Refuses a dictionary of more entries than bytes. Entries differ, so one at most can be without a byte: a fixed length of 0.
fn check_dictionary(page: &Page) -> Result<()> {
    let Page::DictionaryPage { buf, num_values, .. } = page else { return Ok(()) };
    let most = buf.len().max(1);
    if usize::try_from(*num_values).is_ok_and(|claimed| claimed <= most) {
        return Ok(());
    }
    Err(ParquetError::General(format!("a dictionary page of {} bytes claims {num_values} values", buf.len())))
}
