//! How a command ends.

use std::io;
use std::process::ExitCode;

use arrow::error::ArrowError;
use arrow_io::TableError;
use arrow_io::compare::CompareError;
use arrow_io::formats::FormatError;
use cb2t::{ContainerError, WriteError};

/// A command that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Done,
    /// The data differ, or fail verification.
    Differs,
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
    /// A foreign file cannot be read or written. Its message names the file.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Two tables cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A file cannot be created or written. Its message names the file.
    #[error(transparent)]
    File(#[from] ContainerError),
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
    /// What this program cannot do with what it was given.
    #[error("{file}: {reason}")]
    Unsupported {
        /// The file.
        file: String,
        /// Why, and what to do.
        reason: String,
    },
}

/// The message of an error from outside Arrow, without Arrow's words around it.
fn root(error: &ArrowError) -> String {
    match error {
        ArrowError::ExternalError(inner) => inner.to_string(),
        other => other.to_string(),
    }
}

impl CliError {
    /// A table error with its file.
    pub fn table(file: impl ToString) -> impl FnOnce(TableError) -> Self {
        let file = file.to_string();
        move |source| Self::Table { file, source: Box::new(source) }
    }

    /// A writer's error with its file.
    pub fn write(file: impl ToString) -> impl FnOnce(WriteError) -> Self {
        let file = file.to_string();
        move |error| match error {
            WriteError::Batch(source) => Self::Batch { file, source },
            WriteError::Table(source) => Self::Table { file, source: Box::new(source) },
            WriteError::File(source) => Self::File(source),
        }
    }

    /// 2 for wrong use, 3 for bad or unsupported input.
    pub fn exit_code(&self) -> ExitCode {
        let usage = match self {
            Self::Usage(_) | Self::File(ContainerError::Exists { .. }) => true,
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
