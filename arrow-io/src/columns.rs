//! Arrow arrays as trees of buffers, and back: SPEC.md section 6.
//!
//! | module | idea |
//! | --- | --- |
//! | [`schema`] | the schema's bytes in a file |
//! | [`tree`] | the nodes of a column, and which buffers each has |
//! | [`build`] | batches of arrays collected into the values of a row group's buffers |
//! | [`dictionary`] | distinct strings, in order of insertion or ascending |
//! | [`encode`] | collected values encoded as blocks |
//! | `gather` | slots of arrays as new arrays, where Arrow itself refuses or forgets some |
//! | [`read`] | blocks decoded into arrays |
//! | [`statistics`] | null counts, minima and maxima |

pub mod build;
pub mod dictionary;
pub mod encode;
pub(crate) mod gather;
pub mod read;
pub mod schema;
pub mod statistics;
pub mod tree;
