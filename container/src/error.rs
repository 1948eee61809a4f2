//! What can go wrong with a file as a container.

use format_spec::FormatError;

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// The file cannot be opened or created.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Bytes cannot be read.
    #[error("cannot read {length} bytes at offset {offset}: {source}")]
    Read {
        /// Where in the file.
        offset: u64,
        /// How many.
        length: u64,
        /// What the system says.
        source: std::io::Error,
    },
    /// Bytes cannot be written.
    #[error("cannot write at offset {offset}: {source}")]
    Write {
        /// Where in the file.
        offset: u64,
        /// What the system says.
        source: std::io::Error,
    },
    /// The bytes are not what the format demands.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A structure of the file, with its place, is not what the format demands.
    #[error("{place}: {source}")]
    Place {
        /// Which structure.
        place: String,
        /// What is wrong.
        source: FormatError,
    },
    /// Two structures of a file share bytes, or bytes belong to none.
    #[error("bytes {start} to {end} {what}")]
    Extent {
        /// First byte.
        start: u64,
        /// First byte behind.
        end: u64,
        /// What is wrong with them.
        what: &'static str,
    },
    /// A column index beyond the columns.
    #[error("column {index} of {count}")]
    NoColumn {
        /// The index asked for.
        index: usize,
        /// Columns that there are.
        count: usize,
    },
    /// The output exists and must not be replaced.
    #[error("{path} exists: choose another name, or allow it to be replaced")]
    Exists {
        /// The file.
        path: String,
    },
}
