//! The first inputs of each target, the same on every machine.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow_io::formats::{Format, WriteOptions, create};
use cb2t::{Choice, EncodeOptions, REGISTRY, WriterOptions};
use codec_core::conformance::Random;

use crate::every_type::{edge_types, every_type};
use crate::tables::written;
use crate::tiles::{LAYOUTS, input, seeds_of};

/// Writes the seeds of all targets into folders of `corpus` that are named after them.
///
/// # Errors
/// A file cannot be written.
pub fn write_all(corpus: &Path) -> io::Result<()> {
    let targets = [
        ("open_file", files()),
        ("check_then_decode", tiles()),
        ("round_trip", tables()),
        ("parquet_in", parquet()),
        ("csv_in", csv()),
    ];
    for (target, seeds) in targets {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}

type Seeds = Vec<(String, Vec<u8>)>;

/// Single columns of every type, so that each file is small.
fn columns(rows: usize) -> Vec<(String, RecordBatch)> {
    let mut columns = Vec::new();
    for batch in [every_type(rows), edge_types(rows)] {
        for index in 0..batch.num_columns() {
            let one = batch.project(&[index]).expect("a column of the batch");
            columns.push((batch.schema().field(index).name().clone(), one));
        }
    }
    columns
}

fn options(rows: u64, choice: Choice) -> WriterOptions {
    let encode = EncodeOptions { block_bytes: 4096, tile_size: 512, bytes_tile_size: 4096, choice };
    WriterOptions { encode, row_group_rows: rows, created_by: "seed".into(), ..WriterOptions::default() }
}

/// Files: every type in a file of its own, several types together, every codec, none of anything.
pub fn files() -> Seeds {
    let mut seeds = Vec::new();
    let mut add = |name: String, batch: &RecordBatch, options| {
        let batches = std::slice::from_ref(batch);
        seeds.extend(written(batches, options).map(|bytes| (format!("{name}.cb2t"), bytes)));
    };
    for (name, batch) in columns(12) {
        add(name, &batch, options(8, Choice::Auto));
    }
    for codec in REGISTRY.iter() {
        let batch = every_type(1100).project(&[4, 11, 14]).expect("three columns");
        add(format!("codec_{}", codec.name()), &batch, options(1 << 20, Choice::Prefer(codec)));
    }
    add("no_rows".into(), &every_type(0).project(&[3, 13]).expect("two columns"), options(8, Choice::Auto));
    add("no_columns".into(), &every_type(9).project(&[]).expect("no columns"), options(8, Choice::Auto));
    add(
        "three".into(),
        &every_type(40).project(&[1, 12, 13]).expect("three columns"),
        options(20, Choice::Auto),
    );
    seeds
}

fn tiles() -> Seeds {
    let mut seeds = Vec::new();
    for codec in REGISTRY.iter() {
        for layout in LAYOUTS.into_iter().filter(|&layout| codec.supports(layout)) {
            for (index, values) in seeds_of(layout, 70).iter().enumerate().take(8) {
                let name = format!("{}_{}_{index}", codec.name(), layout.value_width);
                seeds.push((format!("{name}_{:?}", layout.kind), input(codec, layout, values.as_values())));
            }
        }
    }
    seeds
}

fn tables() -> Seeds {
    let seed = |index: u64| {
        let mut random = Random(index);
        let bytes = (0..30 + index).flat_map(|_| random.draw().to_le_bytes()).collect();
        (format!("random_{index}"), bytes)
    };
    (0..60).map(seed).collect()
}

fn parquet() -> Seeds {
    let mut seeds = Vec::new();
    for (name, batch) in columns(12) {
        let options = WriteOptions {
            parquet_compression: arrow_io::formats::ParquetCompression::None,
            ..WriteOptions::default()
        };
        seeds.extend(
            foreign(&batch, Format::Parquet, &options).map(|bytes| (format!("{name}.parquet"), bytes)),
        );
    }
    seeds
}

fn csv() -> Seeds {
    let mut seeds = vec![
        ("quotes".to_owned(), b"\0a,b\n\"x, \"\"y\"\"\n\",1\n,2.5\n".to_vec()),
        ("dates".to_owned(), b"\x20d,t\n2020-01-01,2020-01-01T00:00:00Z\n1999-12-31,\n".to_vec()),
        ("nulls".to_owned(), b"\x08n\nNA\n1\n-9223372036854775808\n".to_vec()),
        ("semicolons".to_owned(), b"\x06true;1e300;text\nfalse;-0;\xC3\xA9\n".to_vec()),
    ];
    for (name, batch) in columns(5) {
        let options = WriteOptions::default();
        let text = foreign(&batch, Format::Csv, &options);
        seeds.extend(text.map(|text| (format!("{name}.csv"), [&[0][..], &text].concat())));
    }
    seeds
}

fn foreign(batch: &RecordBatch, format: Format, options: &WriteOptions) -> Option<Vec<u8>> {
    let written = Written::default();
    let mut sink = create(Box::new(written.clone()), format, batch.schema(), options).ok()?;
    sink.write(batch).ok()?;
    sink.finish().ok()?;
    let bytes = written.0.lock().expect("the sink is gone").clone();
    Some(bytes)
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one writer").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
