//! Compiles CUDA source as C++ with `shim.h` and runs it on the CPU under sanitizers.

// Each test binary uses a part.
#![allow(dead_code)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A program that was compiled with the shim.
pub struct ShimProgram {
    executable: PathBuf,
    _folder: tempfile::TempDir,
}

impl ShimProgram {
    /// Compiles `source`, which follows shim.h. `None`, with the reason printed, where there is no C++ compiler.
    pub fn compile(source: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        // Crates beside this one use it, too.
        let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu-decode/tests/shim");
        let file = folder.path().join("program.cpp");
        fs::write(&file, format!("#include \"shim.h\"\n{source}")).unwrap();
        let executable = folder.path().join("program");
        let mut failed = String::new();
        for sanitizers in [&["-fsanitize=address,undefined", "-fno-sanitize-recover=all"][..], &[]] {
            let Some(mut compiler) = compiler() else {
                println!("skipped: no C++ compiler (install g++ or set CXX)");
                return None;
            };
            compiler.args(["-std=c++17", "-O1", "-w", "-I"]).arg(&shim).args(sanitizers);
            match compiler.arg(&file).arg("-o").arg(&executable).output() {
                Ok(output) if output.status.success() => {
                    if sanitizers.is_empty() {
                        println!("without sanitizers, which this compiler does not have: {failed}");
                    }
                    return Some(Self { executable, _folder: folder });
                }
                Ok(output) => failed = String::from_utf8_lossy(&output.stderr).into_owned(),
                Err(error) => {
                    println!("skipped: the C++ compiler does not start: {error}");
                    return None;
                }
            }
        }
        panic!("the C++ compiler refuses the program:\n{failed}");
    }

    /// Runs it with `input`.
    pub fn run(&self, input: &[u8]) -> Output {
        self.run_with(&[], input)
    }

    /// Runs it with `arguments` and `input`.
    pub fn run_with(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut child = Command::new(&self.executable)
            .args(arguments)
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // Beside the reading of its output: the program may write before it has read all. One that fails early closes its input.
            scope.spawn(move || {
                let _ = stdin.write_all(input);
            });
            child.wait_with_output().unwrap()
        })
    }
}

fn compiler() -> Option<Command> {
    let host = format!("{}-unknown-{}-gnu", std::env::consts::ARCH, std::env::consts::OS);
    let mut build = cc::Build::new();
    build.cpp(true).target(&host).host(&host).opt_level(1).debug(false).cargo_metadata(false);
    let path = build.try_get_compiler().ok()?.path().to_owned();
    Command::new(&path).arg("--version").output().ok()?;
    Some(Command::new(path))
}
