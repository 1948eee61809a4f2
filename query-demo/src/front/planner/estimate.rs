//! How many rows a predicate keeps.

pub use crate::plan::estimate;
