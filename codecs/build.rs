//! Writes the list of codecs from this crate's dependencies, so that a codec is registered by its line in Cargo.toml alone.

use std::{env, error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=Cargo.toml");
    let manifest = fs::read_to_string(Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("Cargo.toml"))?;
    let dependencies =
        manifest.split("[dependencies]").nth(1).unwrap_or_default().split("\n[").next().unwrap_or_default();
    let list: String = dependencies
        .lines()
        .filter_map(|line| line.split(['=', '.']).next())
        .map(str::trim)
        .filter(|name| name.starts_with("codec-") && *name != "codec-core")
        .map(|name| format!("    {}::CODEC,\n", name.replace('-', "_")))
        .collect();
    let source = format!("&[\n{list}]");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("list.rs"), source)?;
    Ok(())
}
