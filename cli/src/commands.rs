//! One module a command.

pub mod bench;
pub mod demo;
pub mod devices;
pub mod diff;
pub mod explain;
pub mod generate;
pub mod head;
pub mod inspect;
pub mod pack;
#[cfg(feature = "query")]
pub mod query;
pub mod schema;
pub mod stats;
pub mod unpack;
pub mod verify;
