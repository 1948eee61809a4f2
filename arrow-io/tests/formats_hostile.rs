//! Foreign files that are wrong in ways that their readers do not notice.
#![allow(clippy::unwrap_used)]

mod memory;

use arrow_io::formats::{Format, ReadOptions};
use memory::{error_of, read, stream};

#[test]
fn a_character_that_is_split_between_csv_fields_is_refused() {
    let rows = b"a\n\xD9\n\x90\n".as_slice();
    let columns = b"a,b\n\xC3,\xA9\n".as_slice();
    for text in [rows, columns] {
        let options = ReadOptions { format: Some(Format::Csv), ..ReadOptions::default() };
        let error = error_of(read(stream(text), &options));
        assert!(error.contains("UTF-8"), "{error}");
    }
}

/// A page's header in which a list claims two thousand million elements, at the end of the file.
#[test]
fn a_claim_beyond_the_end_of_a_parquet_file_does_not_keep_the_reader() {
    let bytes = include_bytes!("../../fuzz/seeds/parquet_in/found_endless_list");
    let options = ReadOptions { format: Some(Format::Parquet), ..ReadOptions::default() };
    let started = std::time::Instant::now();
    error_of(read(stream(bytes.as_slice()), &options));
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

/// A dictionary page of some bytes whose header claims hundreds of millions of values: room for them would be gigabytes.
#[test]
fn a_parquet_dictionary_of_more_entries_than_bytes_is_refused() {
    let bytes = include_bytes!("../../fuzz/seeds/parquet_in/found_huge_dictionary");
    let options = ReadOptions { format: Some(Format::Parquet), ..ReadOptions::default() };
    let error = error_of(read(stream(bytes.as_slice()), &options));
    assert!(error.contains("dictionary page") && error.contains("claims"), "{error}");
}
