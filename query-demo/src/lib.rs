//! SQL over compressed tiles: one compiled kernel a pipeline on a GPU, the same pipelines on the CPU.
//!
//! | module | idea |
//! | --- | --- |
//! | [`plan`] | a query as pipelines: plain data |
//! | [`scan`] | tables and the blocks of their columns |
//!
//! Nothing here names a codec: columns are whatever decodes into values.

mod error;
pub mod plan;
pub mod scan;

pub use error::QueryError;
