//! Tables of any supported format as batches.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_io::formats::{self, Format, Input, Progress};
use cb2t::{ReadOptions, Source, Table};

use crate::args::InputOptions;
use crate::error::CliError;

/// Batches, and how far they have come.
pub struct Opened {
    /// The batches.
    pub reader: Box<dyn RecordBatchReader + Send>,
    /// Rows in all, where that is known.
    pub row_count: Option<u64>,
    /// Bytes taken from the input, where they are counted.
    pub progress: Option<Progress>,
}

/// What to read: files of one schema, one after the other.
#[derive(Debug, Clone)]
pub struct Inputs<'a> {
    /// The files; - for standard input.
    pub paths: &'a [PathBuf],
    /// Their format, by extension unless given.
    pub format: Option<Format>,
    /// How text is read.
    pub options: &'a InputOptions,
    /// Only these columns.
    pub columns: Option<Vec<String>>,
    /// Only these rows.
    pub rows: Option<Range<u64>>,
    /// The schema of text, once it is known.
    pub schema: Option<SchemaRef>,
    /// Bytes that reading should stay within.
    pub memory: u64,
}

/// What reading stays within where no option says otherwise.
pub const DEFAULT_MEMORY: u64 = 512 << 20;

/// Whether a path stands for a standard stream.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// What messages call an input.
pub fn input_name(path: &Path) -> String {
    if is_standard(path) { "standard input".into() } else { path.display().to_string() }
}

impl Inputs<'_> {
    /// What messages call the inputs.
    pub fn name(&self) -> String {
        match self.paths {
            [path] => input_name(path),
            [first, ..] => format!("{} and {} more", input_name(first), self.paths.len() - 1),
            [] => String::new(),
        }
    }

    /// Whether the inputs can be read a second time.
    pub fn can_be_read_twice(&self) -> bool {
        self.paths
            .iter()
            .all(|path| !is_standard(path) && path.metadata().is_ok_and(|metadata| metadata.is_file()))
    }

    /// Bytes of all files together; `None` with a stream among them.
    pub fn file_bytes(&self) -> Option<u64> {
        self.paths
            .iter()
            .map(|path| path.metadata().ok().filter(|metadata| metadata.is_file()).map(|file| file.len()))
            .sum()
    }

    /// Opens them.
    pub fn open(&self) -> Result<Opened, CliError> {
        if let [path] = self.paths
            && self.is_table()
        {
            return self.open_table(path);
        }
        if let Some(path) = self.paths.iter().find(|path| self.is_cb2t(path)) {
            let reason = "a .cb2t file is packed alone, not together with other files".to_owned();
            return Err(CliError::Unsupported { file: input_name(path), reason });
        }
        let inputs = self.paths.iter().map(|path| input(path)).collect();
        let reader = formats::open_all(inputs, &self.read_options()?)?;
        Ok(Opened {
            row_count: reader.row_count(),
            progress: Some(reader.progress()),
            reader: Box::new(reader),
        })
    }

    /// Whether this is one .cb2t file.
    pub fn is_table(&self) -> bool {
        matches!(self.paths, [path] if self.is_cb2t(path))
    }

    fn is_cb2t(&self, path: &Path) -> bool {
        match (self.format, Format::from_path(path)) {
            (Some(format), _) | (None, Ok(format)) => format == Format::Cb2t,
            // No extension tells: the first bytes do.
            (None, Err(_)) => begins_like_cb2t(path).unwrap_or(false),
        }
    }

    fn open_table(&self, path: &Path) -> Result<Opened, CliError> {
        if self.options.schema.is_some() {
            let reason = "a cb2t file has a schema of its own; leave the given one out".to_owned();
            return Err(CliError::Unsupported { file: input_name(path), reason });
        }
        let table = open_table(path)?;
        let columns =
            column_indexes(&table, self.columns.as_deref()).map_err(CliError::table(input_name(path)))?;
        let rows = clamped(self.rows.clone(), table.row_count());
        let row_count = rows.end - rows.start;
        let options =
            ReadOptions { columns, rows: Some(rows), memory_bytes: self.memory, ..ReadOptions::default() };
        let batches = table.into_batches(&options).map_err(CliError::table(input_name(path)))?;
        Ok(Opened { reader: Box::new(batches), row_count: Some(row_count), progress: None })
    }

    fn read_options(&self) -> Result<formats::ReadOptions, CliError> {
        let schema = match (&self.schema, &self.options.schema) {
            (Some(schema), _) => Some(schema.clone()),
            (None, Some(path)) => Some(read_schema(path)?),
            (None, None) => None,
        };
        Ok(formats::ReadOptions {
            format: self.format,
            schema,
            columns: self.columns.clone(),
            rows: self.rows.clone(),
            // Short enough that rows which turn out longer than those before do not take much at once.
            batch_rows: 4_096,
            batch_bytes: usize::try_from(self.memory / 16).unwrap_or(usize::MAX),
            delimiter: self.options.delimiter,
            has_header: !self.options.no_header,
            null_values: self.options.null_values.clone(),
            infer_rows: self.options.infer_rows,
            ..formats::ReadOptions::default()
        })
    }

    /// The same inputs read again: text takes the schema that was found the first time.
    pub fn again(&self, schema: &SchemaRef, columns: Option<Vec<String>>) -> Result<Self, CliError> {
        let text = self.paths.iter().all(|path| {
            self.format.map_or_else(|| Format::from_path(path).is_ok_and(Format::is_text), Format::is_text)
        });
        // The schema that was found is that of the columns asked for; the whole file's is needed only where all were.
        let known = text && self.columns.is_none();
        Ok(Self {
            schema: if known { Some(schema.clone()) } else { self.schema.clone() },
            columns,
            ..self.clone()
        })
    }
}

/// Looks at the first bytes of a file, or of standard input, which keeps them for who reads it.
fn begins_like_cb2t(path: &Path) -> io::Result<bool> {
    let is_cb2t = |first_bytes: &[u8]| Format::sniff(first_bytes) == Some(Format::Cb2t);
    if is_standard(path) {
        return Ok(is_cb2t(io::stdin().lock().fill_buf()?));
    }
    // A named pipe would lose what is read here.
    if !path.metadata()?.is_file() {
        return Ok(false);
    }
    let mut first_bytes = Vec::new();
    File::open(path)?.take(64).read_to_end(&mut first_bytes)?;
    Ok(is_cb2t(&first_bytes))
}

fn input(path: &Path) -> Input {
    if is_standard(path) { Input::Stream(Box::new(io::stdin())) } else { Input::Path(path.to_owned()) }
}

/// One file of any supported format.
pub fn open_file(path: &Path, format: Option<Format>, options: &InputOptions) -> Result<Opened, CliError> {
    let paths = [path.to_owned()];
    let memory = DEFAULT_MEMORY;
    Inputs { paths: &paths, format, options, columns: None, rows: None, schema: None, memory }.open()
}

/// A .cb2t file; one from standard input is first copied to a temporary file.
pub fn open_table(path: &Path) -> Result<Table, CliError> {
    if !is_standard(path) {
        return cb2t::open(path).map_err(|source| match source {
            cb2t::TableError::Container(error @ cb2t::ContainerError::File { .. }) => CliError::File(error),
            source => CliError::table(path.display())(source),
        });
    }
    let failed = |source| CliError::Io { file: "standard input".into(), source };
    let mut file = tempfile::tempfile().map_err(failed)?;
    io::copy(&mut io::stdin().lock(), &mut file).map_err(failed)?;
    let source = Source::stream(file)?;
    Table::from_source(source, &cb2t::REGISTRY).map_err(CliError::table("standard input"))
}

/// The indexes of the named columns.
pub fn column_indexes(
    table: &Table,
    names: Option<&[String]>,
) -> Result<Option<Vec<usize>>, cb2t::TableError> {
    names.map(|names| names.iter().map(|name| table.column_index(name)).collect()).transpose()
}

/// The rows asked for, as far as they exist.
pub fn clamped(rows: Option<Range<u64>>, row_count: u64) -> Range<u64> {
    let rows = rows.unwrap_or(0..row_count);
    rows.start.min(row_count)..rows.end.min(row_count)
}

/// A schema from a file: the JSON of `cb2t schema --json`, or whatever any other supported file has.
fn read_schema(path: &Path) -> Result<SchemaRef, CliError> {
    if path.extension().is_some_and(|extension| extension == "json")
        && let Ok(text) = std::fs::read_to_string(path)
        && let Ok(schema) = serde_json::from_str::<Schema>(&text)
    {
        return Ok(Arc::new(schema));
    }
    let options = InputOptions {
        null_values: Vec::new(),
        delimiter: None,
        no_header: false,
        infer_rows: None,
        schema: None,
    };
    Ok(open_file(path, None, &options)?.reader.schema())
}

/// A batch or the error of the file that it should come from.
pub fn checked(batch: Result<RecordBatch, ArrowError>, file: &str) -> Result<RecordBatch, CliError> {
    batch.map_err(|error| CliError::batch(file, error))
}
