//! Tables in `.cb2t` files: written from and read as record batches.
//!
//! | module | idea |
//! | --- | --- |
//! | [`writer`] | record batches become row groups, and these a file |
//! | [`survey`] | a first pass for ordered dictionaries |
//! | [`report`] | what the writer tried, estimated and achieved |
//! | [`reader`] | open, project, read a range of rows, take single rows |
//! | [`inspect`] | what a file says about columns, buffers and blocks |
//! | [`verify`] | proves all of a file |

pub mod inspect;
pub mod reader;
pub mod report;
pub mod survey;
pub mod verify;
pub mod writer;

pub use inspect::{BlockInfo, BufferInfo, DictionaryInfo, NodeInfo};
pub use reader::{ReadOptions, Table, TableBatches};
pub use report::{BufferReport, CodecReport, WriteReport};
pub use survey::{Dictionaries, DictionarySurvey};
pub use verify::Verified;
pub use writer::{TableWriter, WriterOptions};
