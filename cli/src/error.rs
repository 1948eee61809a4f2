//! How a command ends.

use std::io;
use std::process::ExitCode;

use arrow::error::ArrowError;
use arrow_io::TableError;
use arrow_io::compare::{CompareError, Side};
use arrow_io::formats::FormatError;
use cb2t::{ContainerError, WriteError};
#[cfg(feature = "query")]
use query_demo::QueryError;

/// A command that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Done,
    /// The data differ, or fail verification.
    Differs,
    /// Some input could not be read, which was said already.
    Unreadable,
}

/// A command that did not. Each message names the file.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Options that make no sense together: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// A table cannot be read or written.
    #[error("{file}: {source}")]
    Table {
        /// The file.
        file: String,
        /// What is wrong.
        source: Box<TableError>,
    },
    /// A foreign file cannot be read. Its message names the file.
    #[error("{}", named_input(.0))]
    Format(#[from] FormatError),
    /// A foreign file cannot be written.
    #[error("{}", named_output(.file, .source))]
    Sink {
        /// The file.
        file: String,
        /// What is wrong.
        source: Box<FormatError>,
    },
    /// Two tables cannot be compared.
    #[error(transparent)]
    Compare(CompareError),
    /// A file is there that must not be replaced.
    #[error("{0} exists: choose another name, or replace it with --force")]
    Exists(String),
    /// A file cannot be created or written. Its message names the file.
    #[error(transparent)]
    File(ContainerError),
    /// Batches of a file cannot be read.
    #[error("{file}: {}", root(.source))]
    Batch {
        /// The file.
        file: String,
        /// What is wrong.
        source: ArrowError,
    },
    /// Standard streams.
    #[error("{file}: {source}")]
    Io {
        /// The file or stream.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    #[cfg(feature = "query")]
    /// A query gave no result.
    #[error("{0}")]
    Query(Box<QueryError>),
    /// A CUDA device cannot be had, or fails.
    #[error("device: {0}")]
    Device(Box<gpu_decode::GpuError>),
    /// What this program cannot do with what it was given.
    #[error("{file}: {reason}")]
    Unsupported {
        /// The file.
        file: String,
        /// Why, and what to do.
        reason: String,
    },
}

/// A reader's message, with the name that people have for what it calls a stream.
fn named_input(error: &FormatError) -> String {
    let message = error.to_string().replace("<stream>", "standard input");
    match error {
        FormatError::UnknownFormat { .. } => message.replace("name it:", "name it with --format:"),
        _ => message,
    }
}

/// A sink's message, with the file that it does not know.
fn named_output(file: &str, error: &FormatError) -> String {
    let message = error.to_string();
    let rest = message.strip_prefix("<output>: ").unwrap_or(&message);
    format!("{file}: {rest}")
}

/// The message of an error from outside Arrow, without Arrow's words around it.
fn root(error: &ArrowError) -> String {
    match error {
        ArrowError::ExternalError(inner) => inner.to_string(),
        other => other.to_string(),
    }
}

impl From<ContainerError> for CliError {
    fn from(error: ContainerError) -> Self {
        match error {
            ContainerError::Exists { path } => Self::Exists(path),
            error => Self::File(error),
        }
    }
}

impl CliError {
    /// A sink's error with its file.
    pub fn sink(file: impl ToString) -> impl FnOnce(FormatError) -> Self {
        let file = file.to_string();
        move |source| Self::Sink { file, source: Box::new(source) }
    }

    #[cfg(feature = "query")]
    /// A query's error.
    pub fn query(error: QueryError) -> Self {
        match error {
            QueryError::Gpu(error) => Self::device(error),
            error => Self::Query(Box::new(error)),
        }
    }

    /// An error of a CUDA device.
    pub fn device(error: gpu_decode::GpuError) -> Self {
        Self::Device(Box::new(error))
    }

    /// A table error with its file.
    pub fn table(file: impl ToString) -> impl FnOnce(TableError) -> Self {
        let file = file.to_string();
        move |source| Self::Table { file, source: Box::new(source) }
    }

    /// A comparison's error, with the file on the side that it could not read.
    pub fn compare(left: &str, right: &str) -> impl FnOnce(CompareError) -> Self {
        move |error| match error {
            CompareError::Read { side, source, .. } => {
                Self::batch(if side == Side::Left { left } else { right }, source)
            }
            other => Self::Compare(other),
        }
    }

    /// The error of a file that a batch should have come from.
    pub fn batch(file: &str, error: ArrowError) -> Self {
        match error {
            ArrowError::ExternalError(inner) if inner.is::<FormatError>() => {
                Self::Format(FormatError::from_reader(file, ArrowError::ExternalError(inner)))
            }
            source => Self::Batch { file: file.to_owned(), source },
        }
    }

    /// A writer's error with its file.
    pub fn write(file: impl ToString) -> impl FnOnce(WriteError) -> Self {
        let file = file.to_string();
        move |error| match error {
            WriteError::Batch(source) => Self::Batch { file, source },
            WriteError::Table(source) => Self::Table { file, source: Box::new(source) },
            WriteError::File(source) => Self::from(source),
        }
    }

    /// 2 for wrong use, 3 for bad or unsupported input.
    pub fn exit_code(&self) -> ExitCode {
        let usage = match self {
            Self::Usage(_) | Self::Exists(_) => true,
            #[cfg(feature = "query")]
            Self::Query(error) => matches!(**error, QueryError::Sql(_) | QueryError::Options { .. }),
            Self::Format(error) => {
                matches!(error, FormatError::UnknownColumn { .. } | FormatError::AmbiguousColumn { .. })
            }
            Self::Table { source, .. } => {
                matches!(
                    **source,
                    TableError::NoColumn { .. } | TableError::NoRow { .. } | TableError::Option { .. }
                )
            }
            _ => false,
        };
        ExitCode::from(if usage { 2 } else { 3 })
    }

    /// Whether the reader of our output went away.
    pub fn is_broken_pipe(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if error
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
            {
                return true;
            }
            cause = error.source();
        }
        false
    }
}
