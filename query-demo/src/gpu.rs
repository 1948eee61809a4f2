//! Plans on NVIDIA GPUs: one compiled kernel a pipeline, over compressed tiles that are decoded where they are used.
//!
//! | module | idea |
//! | --- | --- |
//! | [`check`] | do a plan's numbers agree |
//! | [`presence`] | which groups exist |
//! | [`expression`] | values and predicates as CUDA C++ |
//! | [`uses`] | when a pipeline needs what |
//! | [`mod@tuple`] | tuple code: a pipeline's kernel, which knows no codec |
//! | [`bindings`] | column types, placement and launch shape, which tuple code finds by name |
//! | [`words`] | the kernels' arguments by meaning |
//! | [`columns`] | blocks read, proven and made of whole tiles; tiles left out |
//! | [`job`] | a query's work on a device as plain data |
//! | [`store`] | columns on devices, kept for the next query |
//! | [`mod@device`] | queries on devices |
//! | [`part`] | a query on one device: upload, compile, run (`part/run.rs`) |
//! | [`options`] | placement and launch shape |

pub mod bindings;
pub mod check;
pub mod columns;
pub mod device;
pub mod expression;
pub mod job;
pub mod options;
pub mod part;
pub mod presence;
pub mod store;
pub mod tuple;
pub mod uses;
pub mod words;

pub use device::{Gpu, GpuProfile, Prepared};
pub use gpu_decode::tiles::Recode;
pub use options::{Options, Placement, Shape, ShapeOptions};
