//! JSON lines: one object a line, read and written by `arrow-json`.

mod read;
mod shape;
mod unwritable;
mod write;

use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatchReader;

use super::FormatError;
use super::inference::{Origin, SharedSchema, TextSchema};
use super::options::{ReadOptions, STREAM_INFER_ROWS};
use super::projection::selected_columns;
use super::reader::Opened;
use super::rows::{clamped, row_count_of};
use super::source::{Input, Source, TextSource};
use read::{JsonReader, next_line};
use shape::Shape;
pub(super) use write::JsonSink;

/// Inference from a stream ends after about this many bytes, since they are kept in memory.
const STREAM_INFER_BYTES: usize = 64 * 1024 * 1024;

pub(super) fn open(
    source: Source,
    known: Option<TextSchema>,
    options: &ReadOptions,
) -> Result<Opened, FormatError> {
    let mut text = source.into_text()?;
    check_is_lines(&mut text)?;
    let file = match known {
        Some(known) => known,
        None => {
            let mut inferred = Inferred::default();
            inferred.read(&mut text, options)?;
            inferred.schema(&text.name, text.is_stream())?
        }
    };
    let columns = selected_columns(&text.name, &file.schema, options.columns.as_deref())?;
    let row_count = file.row_count.map(|row_count| row_count_of(&clamped(options.rows.as_ref(), row_count)));
    let name = text.name.clone();
    let reader = JsonReader::new(name, text.into_reader()?, &file, columns, options)?;
    Ok(Opened {
        reader: Box::new(reader) as Box<dyn RecordBatchReader + Send>,
        row_count,
        counts_rows: false,
    })
}

/// One schema for several files; a column that a file lacks is null there.
pub(super) fn infer_together(paths: &[PathBuf], options: &ReadOptions) -> Result<SharedSchema, FormatError> {
    let mut inferred = Inferred::default();
    let mut row_counts = Vec::with_capacity(paths.len());
    let mut names = Vec::with_capacity(paths.len());
    for path in paths {
        let mut text = Source::new(Input::Path(path.clone()))?.into_text()?;
        check_is_lines(&mut text)?;
        inferred.start_file();
        inferred.read(&mut text, options)?;
        row_counts.push((!inferred.incomplete).then_some(inferred.row_count - inferred.earlier_rows));
        names.push(text.name);
    }
    Ok(SharedSchema {
        file: inferred.schema(&names.join(", "), false)?,
        row_counts: row_counts.into_iter().collect(),
    })
}

/// Refuses a document that is one array, which is no JSON lines.
fn check_is_lines(text: &mut TextSource) -> Result<(), FormatError> {
    let name = text.name.clone();
    text.look_ahead(|bytes| {
        let start = bytes.fill_buf().map_err(|error| FormatError::io(&name, error))?;
        if start.trim_ascii_start().starts_with(b"[") {
            return Err(FormatError::malformed(
                &name,
                "this is one JSON array, not JSON lines; put each object on a line of its own, for example with \
                 `jq -c '.[]'`",
            ));
        }
        Ok(())
    })
}

/// The shape of the rows seen so far.
#[derive(Default)]
struct Inferred {
    shape: Shape,
    row_count: u64,
    /// Rows before those of the current file.
    earlier_rows: u64,
    incomplete: bool,
}

impl Inferred {
    fn start_file(&mut self) {
        self.earlier_rows = self.row_count;
    }

    /// Looks at the rows of a file up to the limit of the options.
    fn read(&mut self, text: &mut TextSource, options: &ReadOptions) -> Result<(), FormatError> {
        let (name, is_stream) = (text.name.clone(), text.is_stream());
        let limit_rows = options.infer_rows.unwrap_or(if is_stream { STREAM_INFER_ROWS } else { u64::MAX });
        text.look_ahead(|bytes| self.read_rows(&name, bytes, limit_rows, is_stream))
    }

    fn read_rows(
        &mut self,
        name: &str,
        bytes: &mut dyn BufRead,
        limit_rows: u64,
        is_stream: bool,
    ) -> Result<(), FormatError> {
        let (mut line, mut seen_bytes) = (Vec::new(), 0_usize);
        while next_line(name, bytes, &mut line)? {
            let row = self.row_count - self.earlier_rows;
            if row >= limit_rows || (is_stream && seen_bytes >= STREAM_INFER_BYTES) {
                self.incomplete = true;
                break;
            }
            seen_bytes += line.len();
            self.shape.add(&line, row).map_err(|problem| FormatError::Row {
                input: name.to_owned(),
                row,
                problem,
                remedy: "each line must hold one whole JSON object, as `jq -c .` writes them".to_owned(),
            })?;
            self.row_count += 1;
            line.clear();
        }
        Ok(())
    }

    fn schema(&self, name: &str, is_stream: bool) -> Result<TextSchema, FormatError> {
        let schema = self.shape.schema().map_err(|problem| FormatError::malformed(name, problem))?;
        Ok(TextSchema {
            schema: Arc::new(schema),
            origin: if self.incomplete { Origin::FirstRows(self.row_count) } else { Origin::AllRows },
            row_count: (!self.incomplete && !is_stream).then_some(self.row_count),
        })
    }
}
