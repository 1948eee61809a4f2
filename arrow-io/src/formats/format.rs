//! The formats by name, by file name and by first bytes.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::FormatError;

/// The names of all formats, for messages.
pub(super) const NAMES: &str = "parquet, csv, tsv, arrow, arrow-stream, jsonl, cb2t";

/// A file format for tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values, quoted like CSV.
    Tsv,
    /// Arrow IPC file (Feather version 2).
    ArrowFile,
    /// Arrow IPC stream.
    ArrowStream,
    /// JSON lines: one object a line.
    JsonLines,
    /// The cb2t format itself. It is named here so that a path can be told apart; its files are opened elsewhere.
    Cb2t,
}

impl Format {
    /// The formats that [`open`](super::open) and [`create`](super::create) handle.
    pub const FOREIGN: [Self; 6] =
        [Self::Parquet, Self::Csv, Self::Tsv, Self::ArrowFile, Self::ArrowStream, Self::JsonLines];

    /// The format that a path's extension names; `.gz` after the extension of a text format stands for gzip.
    ///
    /// # Errors
    /// [`FormatError::UnknownFormat`] for any other extension, [`FormatError::Malformed`] for `.gz` after the extension
    /// of a binary format.
    pub fn from_path(path: &Path) -> Result<Self, FormatError> {
        let unknown =
            || FormatError::UnknownFormat { input: path.display().to_string(), clue: "file extension" };
        let gzip = is_gzip_path(path);
        let named = if gzip { path.with_extension("") } else { path.to_path_buf() };
        let extension = named.extension().and_then(|extension| extension.to_str()).ok_or_else(unknown)?;
        let format = Self::from_extension(&extension.to_ascii_lowercase()).ok_or_else(unknown)?;
        if gzip && !format.is_text() {
            return Err(FormatError::malformed(
                &path.display().to_string(),
                format!("gzip is only handled around csv, tsv and jsonl; unpack the {format} file first"),
            ));
        }
        Ok(format)
    }

    fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "parquet" | "pq" => Self::Parquet,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "arrow" | "feather" | "ipc" => Self::ArrowFile,
            "arrows" | "ipcs" => Self::ArrowStream,
            "jsonl" | "ndjson" | "json" => Self::JsonLines,
            "cb2t" => Self::Cb2t,
            _ => return None,
        })
    }

    /// The format that the first bytes of a file give away, gzip aside. CSV and TSV never do.
    pub fn sniff(first_bytes: &[u8]) -> Option<Self> {
        let text = first_bytes.strip_prefix(BOM).unwrap_or(first_bytes);
        match first_bytes {
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Self::ArrowFile),
            [0xff, 0xff, 0xff, 0xff, ..] => Some(Self::ArrowStream),
            [b'c', b'b', b'2', b't', ..] => Some(Self::Cb2t),
            _ if text.trim_ascii_start().starts_with(b"{") => Some(Self::JsonLines),
            _ => None,
        }
    }

    /// Whether the format is text, which may be gzipped and has no schema of its own.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv | Self::JsonLines)
    }

    /// This format, or the other Arrow one if the first bytes say so: both go by the same extensions.
    pub(super) fn refined(self, first_bytes: &[u8]) -> Self {
        match (self, Self::sniff(first_bytes)) {
            (Self::ArrowFile | Self::ArrowStream, Some(found @ (Self::ArrowFile | Self::ArrowStream))) => {
                found
            }
            _ => self,
        }
    }
}

/// The UTF-8 byte order mark.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Whether these are the first bytes of a gzip member.
pub fn is_gzip(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(&[0x1f, 0x8b])
}

/// Whether a path ends in `.gz`.
pub fn is_gzip_path(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::ArrowFile => "arrow",
            Self::ArrowStream => "arrow-stream",
            Self::JsonLines => "jsonl",
            Self::Cb2t => "cb2t",
        })
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<Self, FormatError> {
        Ok(match name {
            "parquet" => Self::Parquet,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "arrow" => Self::ArrowFile,
            "arrow-stream" => Self::ArrowStream,
            "jsonl" => Self::JsonLines,
            "cb2t" => Self::Cb2t,
            _ => return Err(FormatError::UnknownFormatName { name: name.to_owned() }),
        })
    }
}
