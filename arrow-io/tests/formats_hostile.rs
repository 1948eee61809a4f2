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
