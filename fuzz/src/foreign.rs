//! Any bytes as a foreign file: an error, or a table that can be stored and comes back.

use std::io::Cursor;

use arrow_io::formats::{Format, Input, ReadOptions, open};
use cb2t::WriterOptions;

use crate::tables::{assert_holds, collected, written};

/// Reads `bytes` as Parquet.
pub fn parquet_in(bytes: &[u8]) {
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
