//! A `.cb2t` file as a container of blocks, without a notion of Arrow or of codecs: where things are, and that their checksums are right.
//!
//! | module | idea |
//! | --- | --- |
//! | [`source`] | where bytes come from: a file by positioned reads, a map, memory, any `Read + Seek` |
//! | [`reader`] | open a file, read a column's section, read blocks, prove that structures tile the file |
//! | [`writer`] | append blocks, end with sections, footer and trailer |
//! | [`spare`] | memory that is used again |
//! | [`atomic`] | a file that appears whole or not at all |

pub mod atomic;
mod error;
pub mod reader;
pub mod source;
pub mod spare;
pub mod writer;

pub use atomic::AtomicFile;
pub use error::ContainerError;
pub use reader::{BufferReader, ContainerReader};
pub use source::{BlockBytes, ReadBytes, Source};
pub use spare::Spare;
pub use writer::ContainerWriter;
