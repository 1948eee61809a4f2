//! SQL over compressed tiles: one compiled kernel a pipeline on a GPU, the same pipelines on the CPU.
//!
//! | module | idea |
//! | --- | --- |
//! | [`session`] | open tables, and SQL over them |
//! | [`front`] | from SQL to pipelines, and from groups to results |
//! | [`plan`] | a query as pipelines: plain data |
//! | [`cpu`] | plans on the CPU |
//! | [`scan`] | tables and the blocks of their columns |
//! | [`cpu`] | plans on the CPU |
//! | [`gpu`] | plans on NVIDIA GPUs |
//! | [`ssb`] | the queries of the Star Schema Benchmark |
//!
//! Nothing here names a codec: columns are whatever decodes into values. The feature `sql` (on unless switched off) brings DataFusion's parser and optimizer, and DataFusion itself for what
//! pipelines cannot express; without it there are plans and what runs them.

pub mod cpu;
mod error;
#[cfg(feature = "sql")]
pub mod front;
pub mod gpu;
pub mod plan;
pub mod scan;
#[cfg(feature = "sql")]
pub mod session;
pub mod ssb;

pub use error::QueryError;
#[cfg(feature = "sql")]
pub use session::{DeviceChoice, Engine, QueryOptions, QueryProfile, QueryResult, Session};
