//! The command line as its users meet it: exit codes, messages, options, streams.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

#[path = "../program/mod.rs"]
mod program;

mod damage;
mod options;
mod reports;
mod streams;
mod usage;
