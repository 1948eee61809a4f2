//! Arrow, Parquet, CSV and JSON lines to and from cb2t columns.

#![forbid(unsafe_code)]

pub mod columns;
pub mod compare;
mod error;
#[cfg(feature = "formats")]
pub mod formats;
pub mod table;

pub use error::TableError;
pub use format_spec::FormatError as FormatSpecError;
