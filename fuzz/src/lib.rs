//! What the fuzz targets do; the targets themselves only call it.
//!
//! | module | target | idea |
//! | --- | --- | --- |
//! | [`files`] | `open_file` | any bytes as a `.cb2t` file: an error, or values |
//! | [`tiles`] | `check_then_decode` | any bytes as a tile of any codec: refused, or decoded alike twice |
//! | [`tables`] | `round_trip` | any Arrow table: written, proven, read back equal |
//! | [`foreign`] | `parquet_in`, `csv_in` | any bytes as a foreign file: an error, or a table that can be stored |
//! | [`arrays`] | | bytes become Arrow arrays of any type |
//! | [`surgery`] | | where the structures of a file are; damage with the checksums made right |
//! | [`seeds`] | | the first inputs of each target |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod arrays;
#[path = "../../arrow-io/tests/every_type/mod.rs"]
pub mod every_type;
pub mod files;
pub mod foreign;
pub mod seeds;
#[path = "../../cb2t/tests/surgery/mod.rs"]
pub mod surgery;
pub mod tables;
pub mod tiles;

/// Makes the calling thread the only one that works: nothing is handed over, and an input does the same each time.
pub fn work_alone() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        pool.build_global().expect("no other pool was made before");
    });
}
