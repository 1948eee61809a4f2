//! What the tests of executors share: random tables in files, plans over them, and an executor that is slow and obvious.

// Each test program uses some of it.
#![allow(dead_code)]

pub mod oracle;
pub mod plans;
pub mod random;
pub mod tables;
