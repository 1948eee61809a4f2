//! Writes the seed corpus: `cargo run --bin seeds -- corpus`.

// Built with the targets it is instrumented as they are, and needs what the instrumentation calls.
use libfuzzer_sys as _;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "corpus".to_owned());
    cb2t_fuzz::seeds::write_all(Path::new(&folder))
}
