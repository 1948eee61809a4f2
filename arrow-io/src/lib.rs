//! Arrow, Parquet, CSV and JSON lines to and from cb2t columns.
pub mod compare;
