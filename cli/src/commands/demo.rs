//! `cb2t demo`: the main job on a small real table.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use arrow::array::RecordBatchReader;
use arrow_io::compare::{CompareOptions, compare};
use arrow_io::formats::{Format, WriteOptions, create};
use cb2t::{DictionarySurvey, ReadOptions, WriterOptions};
use flate2::read::GzDecoder;
use serde_json::json;

use super::verify::verified;
use crate::args::{Demo, InputOptions};
use crate::error::{CliError, Outcome};
use crate::input::{checked, open_file};
use crate::output::{Output, print_json, print_text};
use crate::render::{bytes, grouped, ratio};

/// 3,322 aircraft: cli/data/README.md says where they come from.
const PLANES: &[u8] = include_bytes!("../../data/planes.csv.gz");

pub fn run(args: &Demo) -> Result<Outcome, CliError> {
    let failed = |source| CliError::Io { file: "temporary folder".into(), source };
    let folder = tempfile::tempdir().map_err(failed)?;
    let [csv, parquet, packed, arrow] =
        ["planes.csv", "planes.parquet", "planes.cb2t", "planes.arrow"].map(|name| folder.path().join(name));
    let mut text = Vec::new();
    GzDecoder::new(PLANES).read_to_end(&mut text).map_err(failed)?;
    fs::write(&csv, &text).map_err(failed)?;

    let started = Instant::now();
    pack(&csv, &packed)?;
    let pack_seconds = started.elapsed().as_secs_f64();
    let table = cb2t::open(&packed).map_err(CliError::table("planes.cb2t"))?;
    let found = verified(&table).map_err(CliError::table("planes.cb2t"))?;
    convert(&packed, &arrow, Format::ArrowFile)?;
    convert(&packed, &parquet, Format::Parquet)?;

    let mut left = open_file(&csv, None, &plain_options())?;
    let mut right = open_file(&arrow, None, &plain_options())?;
    let comparison = compare(&mut left.reader, &mut right.reader, &CompareOptions::default())
        .map_err(CliError::compare("planes.csv", "planes.arrow"))?;
    let size = |path: &Path| fs::metadata(path).map(|metadata| metadata.len()).map_err(failed);
    let (csv_bytes, parquet_bytes, packed_bytes) = (size(&csv)?, size(&parquet)?, size(&packed)?);

    if args.json {
        print_json(&json!({
            "table": "planes", "rows": found.row_count, "columns": table.schema().fields().len(), "csv_bytes": csv_bytes,
            "parquet_zstd_bytes": parquet_bytes, "cb2t_bytes": packed_bytes, "pack_seconds": pack_seconds,
            "verified_blocks": found.block_count, "equal": comparison.is_equal(),
        }))?;
    } else {
        let rows = grouped(found.row_count);
        print_text(&format!(
            "A small real table: {rows} aircraft, {} columns (nycflights13, CC0).\n\n\
             packed     planes.csv {} -> planes.cb2t {} ({}), {:.0} ms\n\
             for scale  the same as Parquet with zstd: {}\n\
             verified   {} blocks, {} tiles: every checksum, value and statistic\n\
             unpacked   to Arrow, and compared with the CSV: {comparison}\n\
             Next: cb2t pack YOUR.parquet -o YOUR.cb2t && cb2t inspect YOUR.cb2t\n",
            table.schema().fields().len(),
            bytes(csv_bytes),
            bytes(packed_bytes),
            ratio(csv_bytes, packed_bytes),
            pack_seconds * 1000.0,
            bytes(parquet_bytes),
            grouped(found.block_count),
            grouped(found.tile_count),
        ))?;
    }
    Ok(if comparison.is_equal() { Outcome::Done } else { Outcome::Differs })
}

fn plain_options() -> InputOptions {
    InputOptions {
        null_values: Vec::new(),
        delimiter: None,
        no_header: false,
        infer_rows: None,
        schema: None,
    }
}

/// Both passes of `cb2t pack`: ordered dictionaries first, then the table.
fn pack(from: &Path, to: &Path) -> Result<(), CliError> {
    let opened = open_file(from, None, &plain_options())?;
    let schema = opened.reader.schema();
    let options = WriterOptions::default();
    let mut survey =
        DictionarySurvey::new(&schema, options.dictionary_limits).map_err(CliError::table("planes.csv"))?;
    for batch in opened.reader {
        survey.add(&checked(batch, "planes.csv")?).map_err(CliError::table("planes.csv"))?;
    }
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    let options = WriterOptions { dictionaries: survey.finish(&columns), ..options };
    let batches = open_file(from, None, &plain_options())?.reader;
    cb2t::write(to, schema, batches, options).map_err(CliError::write("planes.cb2t"))?;
    Ok(())
}

fn convert(from: &Path, to: &Path, format: Format) -> Result<(), CliError> {
    let table = cb2t::open(from).map_err(CliError::table("planes.cb2t"))?;
    let mut batches = table.read(&ReadOptions::default()).map_err(CliError::table("planes.cb2t"))?;
    let output = Output::create(to, false)?;
    let mut sink = create(output.writer(), format, batches.schema(), &WriteOptions::default())
        .map_err(CliError::sink(output.name()))?;
    for batch in &mut batches {
        sink.write(&checked(batch, "planes.cb2t")?).map_err(CliError::sink(output.name()))?;
    }
    sink.finish().map_err(CliError::sink(output.name()))?;
    output.commit()
}
