//! Any bytes as a foreign file: an error, or a table that can be stored and comes back.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_io::formats::{Format, Input, ReadOptions, open};
use bytes::Bytes;
use cb2t::WriterOptions;
use parquet::column::page::Page;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::tables::{assert_holds, collected, written};

/// Reads `bytes` as Parquet.
pub fn parquet_in(bytes: &[u8]) {
    quiet();
    // The crate's reader makes room for as many values as a dictionary page's header claims, up to 2^31, before it reads one. Until it does not, such files are left out.
    if claims_a_huge_dictionary(bytes) {
        return;
    }
    read(bytes, ReadOptions { format: Some(Format::Parquet), batch_rows: 1000, ..ReadOptions::default() });
}

/// Reads the bytes behind the first as CSV; the first says how.
pub fn csv_in(bytes: &[u8]) {
    let Some((flags, text)) = bytes.split_first() else { return };
    let options = ReadOptions {
        format: Some(if flags & 1 == 0 { Format::Csv } else { Format::Tsv }),
        has_header: flags & 2 == 0,
        delimiter: (flags & 4 != 0).then_some(b';'),
        null_values: if flags & 8 == 0 { Vec::new() } else { vec!["NA".to_owned()] },
        empty_is_null: flags & 16 == 0,
        infer_rows: (flags & 32 != 0).then_some(3),
        batch_rows: if flags & 64 == 0 { 1000 } else { 2 },
        ..ReadOptions::default()
    };
    read(text, options);
}

/// Whether a dictionary page claims more values than it has bytes.
fn claims_a_huge_dictionary(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let open = || SerializedFileReader::new(bytes.clone()).ok();
    let Some(reader) = catch_unwind(open).ok().flatten() else { return false };
    (0..reader.num_row_groups()).any(|group| {
        let Ok(group) = reader.get_row_group(group) else { return false };
        (0..group.num_columns()).any(|column| {
            // After an error the pages' reader gives it again and again.
            let claims = || {
                let pages = group.get_column_page_reader(column);
                pages.is_ok_and(|pages| pages.map_while(Result::ok).any(|page| claims_much(&page)))
            };
            catch_unwind(AssertUnwindSafe(claims)).unwrap_or(false)
        })
    })
}

fn claims_much(page: &Page) -> bool {
    matches!(page, Page::DictionaryPage { buf, num_values, .. } if *num_values as usize > buf.len())
}

fn read(bytes: &[u8], options: ReadOptions) {
    quiet();
    crate::work_alone();
    let input = Input::Stream(Box::new(Cursor::new(bytes.to_vec())));
    let Ok(reader) = open(input, &options) else { return };
    let Some(batch) = collected(reader) else { return };
    if let Some(file) = written(std::slice::from_ref(&batch), WriterOptions::default()) {
        assert_holds(file, &batch);
    }
}

/// Parquet's reader panics on some files, which is caught and made an error: libFuzzer's hook must not end the process before that. What is not caught
/// still ends it.
fn quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|info| eprintln!("{info}"))));
}
