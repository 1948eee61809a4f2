//! Speed of codecs and files, measured in one way for all of them.
//!
//! | module | idea |
//! | --- | --- |
//! | [`columns`] | what is encoded: columns with the property that a codec lives from |
//! | [`clock`] | best and median of many runs |
//! | [`codecs`] | one column, one codec, one core |
//! | [`files`] | single rows out of a large file, opening a wide one |
//! | [`report`] | rows of results, and the machine they are from |
//!
//! `cargo run --release -p bench` prints a table and writes JSON with `--json FILE`; `cargo bench -p bench` runs the same under criterion. The crate in `peers/` adds other libraries.

pub mod clock;
pub mod codecs;
pub mod columns;
pub mod files;
pub mod report;

pub use report::{Report, Row};
