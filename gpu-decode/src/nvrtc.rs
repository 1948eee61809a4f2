//! NVRTC: found where the loader or Python keeps it, and asked for cubins.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudarc::nvrtc::{result, sys};

use crate::GpuError;

/// Environment variable that names NVRTC's library or the folder that has it.
pub const LIBRARY_VARIABLE: &str = "CB2T_NVRTC";

/// The library's name, and that of the one it loads in turn.
const LIBRARY: &str = "libnvrtc.so.13";
const BUILTINS: &str = "libnvrtc-builtins.so.13";

/// A compiler that was found.
#[derive(Debug, Clone, Copy)]
pub struct Nvrtc {
    version: (i32, i32),
}

/// What NVRTC made of a program.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Machine code for one architecture.
    pub cubin: Vec<u8>,
    /// Warnings, and what options asked the compiler to say.
    pub log: String,
}

impl Nvrtc {
    /// Loads NVRTC: from `CB2T_NVRTC`, from the loader's path, from a CUDA toolkit or from Python's packages, in this order. Looked for once a process.
    ///
    /// # Errors
    /// It is nowhere.
    pub fn load() -> Result<Self, GpuError> {
        static FOUND: OnceLock<bool> = OnceLock::new();
        if !*FOUND.get_or_init(find) {
            return Err(GpuError::NoNvrtc);
        }
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the library is loaded (`find`), and both addresses are valid.
        let status = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
        status.result().map_err(|_| GpuError::NoNvrtc)?;
        Ok(Self { version: (major, minor) })
    }

    /// Major and minor version.
    #[must_use]
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Compiles CUDA C++ to a cubin for `architecture`, as in `sm_90`.
    ///
    /// # Errors
    /// What the compiler refuses, with its log.
    pub fn compile(
        &self,
        source: &str,
        architecture: &str,
        options: &[String],
    ) -> Result<Compiled, GpuError> {
        let failed = |log: String| GpuError::Compile { architecture: architecture.into(), log };
        let source = CString::new(source).map_err(|error| failed(error.to_string()))?;
        let program = CompilerProgram::create(&source).map_err(|error| failed(error.to_string()))?;
        let mut all = vec![format!("--gpu-architecture={architecture}"), "--std=c++17".to_owned()];
        all.extend_from_slice(options);
        if all.iter().any(|option| option.contains('\0')) {
            return Err(failed("an option contains a zero byte".to_owned()));
        }
        match program.compile(&all) {
            Ok(()) => {
                let cubin = program.cubin().map_err(|error| failed(error.to_string()))?;
                Ok(Compiled { cubin, log: program.log() })
            }
            Err(error) => Err(failed(format!("{error}\n{}", program.log()))),
        }
    }
}

/// A program within NVRTC. The source must outlive it, so it borrows it.
struct CompilerProgram<'s> {
    program: sys::nvrtcProgram,
    source: std::marker::PhantomData<&'s CString>,
}

impl<'s> CompilerProgram<'s> {
    fn create(source: &'s CString) -> Result<Self, result::NvrtcError> {
        Ok(Self { program: result::create_program(source, None)?, source: std::marker::PhantomData })
    }

    fn compile(&self, options: &[String]) -> Result<(), result::NvrtcError> {
        // SAFETY: the program was created by `create` and is destroyed only by `drop`; no option has a zero byte (`Nvrtc::compile`).
        unsafe {
            result::compile_program(
                self.program,
                options.iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
            )
        }
    }

    fn log(&self) -> String {
        // SAFETY: as in `compile`.
        let log = unsafe { result::get_program_log(self.program) }.unwrap_or_default();
        let bytes: Vec<u8> =
            log.iter().map(|byte| byte.to_ne_bytes()[0]).take_while(|&byte| byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn cubin(&self) -> Result<Vec<u8>, result::NvrtcError> {
        let mut bytes = 0;
        // SAFETY: as in `compile`; the address is valid.
        unsafe { sys::nvrtcGetCUBINSize(self.program, &raw mut bytes) }.result()?;
        let mut cubin = vec![0_u8; bytes];
        // SAFETY: as in `compile`; the buffer has the length that NVRTC asked for.
        unsafe { sys::nvrtcGetCUBIN(self.program, cubin.as_mut_ptr().cast()) }.result()?;
        Ok(cubin)
    }
}

impl Drop for CompilerProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: created by `create`, destroyed only here.
        let _ = unsafe { result::destroy_program(self.program) };
    }
}

/// Makes NVRTC findable for cudarc, which knows only bare names: a library that is loaded once is found again by its bare name.
fn find() -> bool {
    let named = std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from);
    let named = named
        .map(|path| if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")).to_owned() });
    if let Some(folder) = named {
        return load_from(&folder) && is_present();
    }
    if is_present() {
        return true;
    }
    // Python is asked last, since starting it takes time.
    toolkit_folders().iter().any(|folder| load_from(folder)) && is_present()
        || python_folders().iter().any(|folder| load_from(folder)) && is_present()
}

fn is_present() -> bool {
    // SAFETY: loads and unloads NVRTC, whose initializers every program that uses it runs.
    unsafe { sys::is_culib_present() }
}

/// Loads the library of `folder` and, first, the one that it will look for by its bare name. Both stay loaded.
fn load_from(folder: &Path) -> bool {
    let library = folder.join(LIBRARY);
    if !library.is_file() {
        return false;
    }
    let builtins = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_builtins =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(BUILTINS));
    let mut paths: Vec<PathBuf> = builtins.filter(is_builtins).collect();
    paths.push(library);
    paths.iter().all(|path| keep_loaded(path))
}

fn keep_loaded(path: &Path) -> bool {
    // SAFETY: NVRTC's libraries, whose initializers every program that uses NVRTC runs.
    match unsafe { libloading::Library::new(path) } {
        Ok(library) => {
            std::mem::forget(library);
            true
        }
        Err(_) => false,
    }
}

fn toolkit_folders() -> Vec<PathBuf> {
    let roots = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    roots
        .chain([PathBuf::from("/usr/local/cuda"), PathBuf::from("/usr/local/cuda-13")])
        .map(|root| root.join("lib64"))
        .collect()
}

/// Where `pip install nvidia-cuda-nvrtc` puts it.
fn python_folders() -> Vec<PathBuf> {
    const ASK: &str = "import site,sys\nfor p in dict.fromkeys(sys.path+site.getsitepackages()+[site.getusersitepackages()]): print(p)";
    let Ok(output) = std::process::Command::new("python3").args(["-c", ASK]).output() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter(|line| !line.is_empty()).map(|line| Path::new(line).join("nvidia/cu13/lib")).collect()
}
