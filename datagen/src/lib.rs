//! Benchmark tables as streams of Arrow record batches: the Star Schema Benchmark ([`ssb`]) and TPC-H ([`tpch`]).
//!
//! Both generators have the same shape. A [`Scale`] sets the size, a `Table` names a table, `row_count` counts its rows
//! without making them, and `stream` makes them on several threads, in order, holding a few batches at a time:
//!
//! ```
//! use datagen::{Scale, ssb};
//!
//! let generator = ssb::Generator::new(Scale::new(0.01)?, ssb::Dialect::Maintained);
//! let mut rows = 0;
//! for batch in generator.stream(ssb::Table::Lineorder, 2, 8192)? {
//!     rows += batch?.num_rows();
//! }
//! assert_eq!(u64::try_from(rows)?, generator.row_count(ssb::Table::Lineorder));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The rows depend on the scale (and for SSB the dialect) alone: not on the thread count, the batch size, or the machine.
mod error;
mod lehmer;
mod lines;
mod scale;
pub mod ssb;
mod stream;
pub mod tpch;

pub use error::{Error, Result};
pub use scale::Scale;
pub use stream::{BatchStream, DEFAULT_BATCH_ROWS, MAX_BATCH_ROWS};
