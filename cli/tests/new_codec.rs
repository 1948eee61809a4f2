//! What a codec's author does: one new folder, one line outside it, and the whole program has the codec.
//!
//! It builds a copy of the workspace, which takes minutes: `cargo test -p cli --test new_codec -- --ignored`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Copies what cargo needs: no builds, no history, no data, and of tests only those that decode on the device.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let crates = from == workspace() && ["fuzz", "bench"].contains(&name.as_str());
            let is_kept = name == "tests" && from.ends_with("gpu-decode");
            let folders = ["target", "tests", "golden"].contains(&name.as_str()) && !is_kept;
            if !crates && !folders && !name.starts_with('.') {
                copy(&entry.path(), &to.join(name));
            }
        } else {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

fn cargo(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", workspace().join("target/new-codec"))
        .env("CB2T_TEST_CODEC", "toy")
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "cargo {arguments:?}: {text}");
    text
}

#[test]
#[ignore = "builds a copy of the workspace"]
fn a_codec_in_one_folder_and_one_line_works_everywhere() {
    let temporary = tempfile::tempdir().unwrap();
    let copied = temporary.path().join("cb2t");
    copy(&workspace(), &copied);
    // Members whose folders were left out.
    let manifest = fs::read_to_string(copied.join("Cargo.toml")).unwrap();
    fs::write(copied.join("Cargo.toml"), manifest.replace(", \"bench\"", "")).unwrap();

    let toy = workspace().join("cli/tests/new_codec/codec-toy");
    copy(&toy, &copied.join("codec-toy"));
    let lines = fs::read_to_string(toy.join("src/lib.rs")).unwrap().lines().count();
    assert!(lines < 150, "the toy codec has {lines} lines");
    let list = copied.join("codecs/Cargo.toml");
    let before = fs::read_to_string(&list).unwrap();
    let line = "codec-toy = { path = \"../codec-toy\" }\n";
    fs::write(&list, before.replace("[dependencies]\n", &format!("[dependencies]\n{line}"))).unwrap();

    let tests = cargo(&copied, &["test", "--offline", "-p", "codec-toy"]);
    assert!(tests.contains("conformance_distributions ... ok"), "{tests}");
    // Its device half, without an edit elsewhere: through the shim, where there is a C++ compiler.
    let hooks = ["test", "--offline", "-p", "gpu-decode", "--test", "hooks_on_the_shim", "hooks_of_u"];
    let tests = cargo(&copied, &hooks);
    assert!(tests.contains("hooks_of_u16 ... ok") && tests.contains("hooks_of_u64 ... ok"), "{tests}");
    cargo(&copied, &["build", "--offline", "-p", "cli", "--no-default-features"]);
    let program = workspace().join("target/new-codec/debug/cb2t");
    let [csv, packed, unpacked] = ["in.csv", "out.cb2t", "back.csv"].map(|name| temporary.path().join(name));
    let rows: String = (0..5000).map(|row| format!("{row},{}\n", row % 200)).collect();
    fs::write(&csv, format!("row,small\n{rows}")).unwrap();
    let cb2t = |arguments: &[&str]| {
        let output = Command::new(&program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let [csv, packed, unpacked] = [&csv, &packed, &unpacked].map(|path| path.to_str().unwrap());
    cb2t(&["pack", csv, "-o", packed, "--codec", "toy"]);
    assert!(cb2t(&["inspect", packed]).contains("values toy"));
    assert!(cb2t(&["verify", packed]).contains("sound"));
    cb2t(&["unpack", packed, "-o", unpacked]);
    assert_eq!(fs::read_to_string(unpacked).unwrap(), fs::read_to_string(csv).unwrap());
}
