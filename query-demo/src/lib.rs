//! SQL over compressed tiles: one compiled kernel a pipeline on a GPU, the same pipelines on the CPU.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::sync::Arc;
//! # use arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
//! # use arrow_io::table::{TableWriter, WriterOptions};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("flights.cb2t");
//! # let carrier: ArrayRef = Arc::new(StringArray::from(["UA", "AA", "UA", "B6"].repeat(500)));
//! # let delay: ArrayRef = Arc::new(Int32Array::from([2, 33, -1, 7].repeat(500)));
//! # let batch = RecordBatch::try_from_iter([("carrier", carrier), ("dep_delay", delay)])?;
//! # let mut writer = TableWriter::new(std::fs::File::create(&path)?, batch.schema(), &codecs::REGISTRY, WriterOptions::default())?;
//! # writer.write(&batch)?;
//! # writer.finish()?;
//! use query_demo::{QueryOptions, Session};
//!
//! let session = Session::open([path], &codecs::REGISTRY)?;
//! let sql = "SELECT carrier, count(*), max(dep_delay) FROM flights WHERE dep_delay > 0 GROUP BY carrier ORDER BY carrier";
//! let result = session.query(sql, &QueryOptions::default())?;
//! println!("{:?} ran {}", result.engine, result.plan.map(|plan| plan.to_string()).unwrap_or_default());
//! assert_eq!(result.batch.num_rows(), 3);
//! # Ok(())
//! # }
//! ```
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
