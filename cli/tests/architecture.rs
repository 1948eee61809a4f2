//! The arrows between the crates, as ARCHITECTURE.md draws them.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// What each crate may depend on, among those of this workspace. Dependencies for tests are free.
const ALLOWED: [(&str, &[&str]); 9] = [
    ("format-spec", &[]),
    ("codec-core", &["format-spec"]),
    ("container", &["format-spec", "codec-core"]),
    ("arrow-io", &["format-spec", "codec-core", "container"]),
    ("gpu-decode", &["format-spec", "codec-core", "container"]),
    ("datagen", &[]),
    ("query-demo", &["format-spec", "codec-core", "container", "arrow-io", "gpu-decode"]),
    ("cb2t", &["format-spec", "codec-core", "container", "arrow-io", "codecs"]),
    ("codecs", &["codec-core", "codec-*"]),
];

/// These may depend on anything.
const FREE: [&str; 5] = ["cli", "bench", "python", "fuzz", "datafusion-cb2t"];

/// Normal and build dependencies of each crate of the workspace, among themselves.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let names: BTreeSet<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    let dependencies = |package: &serde_json::Value| {
        let all = package["dependencies"].as_array().unwrap();
        let kept = all.iter().filter(|dependency| dependency["kind"].as_str() != Some("dev"));
        kept.map(|dependency| dependency["name"].as_str().unwrap())
            .filter(|name| names.contains(name))
            .map(str::to_owned)
            .collect()
    };
    packages
        .iter()
        .map(|package| (package["name"].as_str().unwrap().to_owned(), dependencies(package)))
        .collect()
}

fn allowed(name: &str, dependency: &str) -> bool {
    if FREE.contains(&name) {
        return true;
    }
    let is_codec = name.starts_with("codec-") && name != "codec-core";
    let patterns: &[&str] = if is_codec {
        &["codec-core", "format-spec"]
    } else {
        ALLOWED.iter().find(|(crate_name, _)| *crate_name == name).map_or(&[], |(_, patterns)| patterns)
    };
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => dependency.starts_with(prefix),
        None => dependency == *pattern,
    })
}

#[test]
fn crates_depend_only_on_what_the_architecture_allows() {
    let arrows = arrows();
    assert!(arrows.len() >= 10, "{arrows:?}");
    for (name, dependencies) in &arrows {
        for dependency in dependencies {
            assert!(allowed(name, dependency), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn only_programs_and_the_facade_know_the_list_of_codecs() {
    for (name, dependencies) in arrows() {
        if dependencies.contains("codecs") {
            assert!(name == "cb2t" || FREE.contains(&name.as_str()), "{name} must not depend on codecs");
        }
    }
}
