//! `cb2t bench files`: size, writing and reading of whole tables beside Parquet. Each is written to memory, and read from a file in the page cache; a batch that was read
//! is dropped before the next.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow_io::formats::{Format, Input, ParquetCompression, WriteOptions, create, open};
use cb2t::{Choice, DictionarySurvey, EncodeOptions, ReadOptions, TableWriter, WriterOptions};
use serde_json::json;

use super::{machine, median};
use crate::args::BenchFiles;
use crate::error::{CliError, Outcome};
use crate::input::{DEFAULT_MEMORY, Inputs, checked};
use crate::output::{print_json, print_text};
use crate::render::{bytes, counted, table};

/// A table in memory.
struct Rows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    count: u64,
    arrow_bytes: u64,
}

/// What was measured of one writer.
struct Measured {
    writer: &'static str,
    file_bytes: u64,
    write_seconds: f64,
    read_seconds: f64,
}

pub fn run(args: &BenchFiles) -> Result<Outcome, CliError> {
    for path in &args.inputs {
        let paths = [path.clone()];
        let columns = args.columns.clone();
        let inputs = Inputs {
            paths: &paths,
            format: None,
            options: &args.input,
            columns,
            rows: None,
            schema: None,
            memory: DEFAULT_MEMORY,
        };
        let rows = load(&inputs)?;
        let measured = measure(&rows, args.repeat)?;
        report(&inputs.name(), &rows, &measured, args.json)?;
    }
    Ok(Outcome::Done)
}

fn load(inputs: &Inputs<'_>) -> Result<Rows, CliError> {
    let opened = inputs.open()?;
    let schema = opened.reader.schema();
    let name = inputs.name();
    let batches: Vec<RecordBatch> =
        opened.reader.map(|batch| checked(batch, &name)).collect::<Result<_, _>>()?;
    let count = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    let arrow_bytes = batches.iter().map(|batch| batch.get_array_memory_size() as u64).sum();
    Ok(Rows { schema, batches, count, arrow_bytes })
}

fn measure(rows: &Rows, repeat: usize) -> Result<Vec<Measured>, CliError> {
    let choices =
        [("cb2t balanced", Choice::Auto), ("cb2t size", Choice::Size), ("cb2t speed", Choice::Speed)];
    let parquet =
        [("parquet snappy", ParquetCompression::Snappy), ("parquet zstd(3)", ParquetCompression::Zstd(3))];
    let mut all = Vec::new();
    for (writer, choice) in choices {
        let (write_seconds, file) = median(repeat, || write_cb2t(rows, choice))?;
        let temporary = temporary_file(&file)?;
        let (read_seconds, ()) = median(repeat, || read_cb2t(temporary.path(), rows))?;
        all.push(Measured { writer, file_bytes: file.len() as u64, write_seconds, read_seconds });
    }
    for (writer, compression) in parquet {
        let (write_seconds, file) = median(repeat, || write_parquet(rows, compression))?;
        let temporary = temporary_file(&file)?;
        let (read_seconds, ()) = median(repeat, || read_parquet(temporary.path(), rows))?;
        all.push(Measured { writer, file_bytes: file.len() as u64, write_seconds, read_seconds });
    }
    Ok(all)
}

/// Both passes of `cb2t pack`, into memory.
fn write_cb2t(rows: &Rows, choice: Choice) -> Result<Vec<u8>, CliError> {
    let failed = CliError::table;
    let columns = DictionarySurvey::string_columns(&rows.schema);
    let strings =
        rows.schema.project(&columns).map_err(|source| CliError::Batch { file: "schema".into(), source })?;
    let encode = EncodeOptions { choice, ..EncodeOptions::default() };
    let mut options = WriterOptions { encode, ..WriterOptions::default() };
    let mut survey = DictionarySurvey::new(&strings, options.dictionary_limits).map_err(failed("memory"))?;
    for batch in &rows.batches {
        let batch =
            batch.project(&columns).map_err(|source| CliError::Batch { file: "memory".into(), source })?;
        survey.add(&batch).map_err(failed("memory"))?;
    }
    options.dictionaries = survey.finish(&columns);
    let mut writer = TableWriter::new(Vec::new(), rows.schema.clone(), &cb2t::REGISTRY, options)
        .map_err(failed("memory"))?;
    for batch in &rows.batches {
        writer.write(batch).map_err(failed("memory"))?;
    }
    Ok(writer.finish().map_err(failed("memory"))?.0)
}

fn temporary_file(bytes: &[u8]) -> Result<tempfile::NamedTempFile, CliError> {
    let file = tempfile::NamedTempFile::new().and_then(|mut file| {
        file.write_all(bytes)?;
        Ok(file)
    });
    file.map_err(|source| CliError::Io { file: "temporary file".into(), source })
}

fn read_cb2t(path: &Path, rows: &Rows) -> Result<(), CliError> {
    let table = cb2t::open(path).map_err(CliError::table("temporary file"))?;
    let batches = table.read(&ReadOptions::default()).map_err(CliError::table("memory"))?;
    count(batches, rows)
}

fn write_parquet(rows: &Rows, compression: ParquetCompression) -> Result<Vec<u8>, CliError> {
    let shared = Shared::default();
    let options = WriteOptions { parquet_compression: compression, ..WriteOptions::default() };
    let mut sink = create(Box::new(shared.clone()), Format::Parquet, rows.schema.clone(), &options)?;
    for batch in &rows.batches {
        sink.write(batch)?;
    }
    sink.finish()?;
    Ok(std::mem::take(&mut *shared.0.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn read_parquet(path: &Path, rows: &Rows) -> Result<(), CliError> {
    let options = arrow_io::formats::ReadOptions {
        format: Some(Format::Parquet),
        batch_rows: 65_536,
        ..arrow_io::formats::ReadOptions::default()
    };
    count(open(Input::Path(path.to_owned()), &options)?, rows)
}

/// Reads all batches, which must have as many rows as were written.
fn count(batches: impl RecordBatchReader, rows: &Rows) -> Result<(), CliError> {
    let mut found = 0;
    for batch in batches {
        found += checked(batch, "memory")?.num_rows() as u64;
    }
    if found == rows.count {
        return Ok(());
    }
    let reason = format!("{found} rows came back of {}", rows.count);
    Err(CliError::Unsupported { file: "memory".into(), reason })
}

/// Memory that a sink writes to and that is there when the sink is gone.
#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn report(name: &str, rows: &Rows, measured: &[Measured], json: bool) -> Result<(), CliError> {
    let rate = |seconds: f64| rows.count as f64 / seconds / 1e6;
    if json {
        let writers = measured.iter().map(|row| {
            json!({
                "writer": row.writer, "file_bytes": row.file_bytes, "write_seconds": row.write_seconds,
                "read_seconds": row.read_seconds, "write_rows_per_second": rows.count as f64 / row.write_seconds,
                "read_rows_per_second": rows.count as f64 / row.read_seconds,
            })
        });
        return print_json(&json!({
            "file": name, "rows": rows.count, "columns": rows.schema.fields().len(), "arrow_bytes": rows.arrow_bytes,
            "machine": machine(), "writers": writers.collect::<Vec<_>>(),
        }));
    }
    let line = |row: &Measured| {
        vec![
            row.writer.to_owned(),
            bytes(row.file_bytes),
            format!("{:.2}", rows.arrow_bytes as f64 / row.file_bytes.max(1) as f64),
            format!("{:.3}", row.write_seconds),
            format!("{:.2}", rate(row.write_seconds)),
            format!("{:.3}", row.read_seconds),
            format!("{:.2}", rate(row.read_seconds)),
        ]
    };
    let header = ["writer", "size", "ratio", "write s", "M rows/s", "read s", "M rows/s"];
    let text = format!(
        "{name}: {} of {}, in memory {}; medians, {}\n\n{}\n",
        counted(rows.count, "row"),
        counted(rows.schema.fields().len() as u64, "column"),
        bytes(rows.arrow_bytes),
        counted(rayon::current_num_threads() as u64, "thread"),
        table(&header, measured.iter().map(line).collect(), &[1, 2, 3, 4, 5, 6]),
    );
    print_text(&text)
}
