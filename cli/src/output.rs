//! Where a command's table goes: a file that appears whole or not at all, a device, or standard output.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cb2t::AtomicFile;

use crate::error::CliError;
use crate::input::is_standard;
use crate::signals::begin;

/// A sink that several may hold, of whom one ends it.
#[derive(Debug, Clone)]
pub struct Output {
    target: Target,
    name: String,
}

#[derive(Debug, Clone)]
enum Target {
    Standard,
    /// What is there already and is no file: a device or a named pipe.
    Device(Arc<File>),
    File(Arc<Mutex<AtomicFile>>),
}

impl Output {
    /// Begins the file `path`, or standard output for -.
    pub fn create(path: &Path, replace: bool) -> Result<Self, CliError> {
        let name = path.display().to_string();
        if is_standard(path) {
            return Ok(Self { target: Target::Standard, name: "standard output".into() });
        }
        let is_device = |path: &Path| path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
        if is_device(path) {
            let file = OpenOptions::new().write(true).open(path);
            let file = file.map_err(|source| CliError::Io { file: name.clone(), source })?;
            return Ok(Self { target: Target::Device(Arc::new(file)), name });
        }
        let file = begin(path, replace)?;
        Ok(Self { target: Target::File(Arc::new(Mutex::new(file))), name })
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A buffered writer to it.
    pub fn writer(&self) -> Box<dyn Write + Send> {
        const BUFFER_BYTES: usize = 1 << 20;
        match &self.target {
            Target::Standard => Box::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout())),
            _ => Box::new(BufWriter::with_capacity(BUFFER_BYTES, self.clone())),
        }
    }

    /// Where the file is until it gets its name; `None` for what cannot be read again.
    pub fn temporary_path(&self) -> Option<PathBuf> {
        match &self.target {
            Target::File(file) => Some(locked(file).temporary_path().to_owned()),
            Target::Standard | Target::Device(_) => None,
        }
    }

    /// Gives a file its name. All writers must be gone.
    pub fn commit(self) -> Result<(), CliError> {
        let Target::File(file) = self.target else { return Ok(()) };
        let file = Arc::into_inner(file)
            .ok_or_else(|| CliError::Usage("the output is still being written".into()))?;
        file.into_inner().unwrap_or_else(PoisonError::into_inner).commit()?;
        Ok(())
    }
}

fn locked(file: &Mutex<AtomicFile>) -> MutexGuard<'_, AtomicFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.target {
            Target::File(file) => locked(file).write(bytes),
            Target::Device(file) => file.as_ref().write(bytes),
            Target::Standard => io::stdout().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &self.target {
            Target::File(file) => locked(file).flush(),
            Target::Device(file) => file.as_ref().flush(),
            Target::Standard => io::stdout().flush(),
        }
    }
}

/// Writes a line of JSON to standard output.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string(value)
        .map_err(|error| CliError::Io { file: "standard output".into(), source: error.into() })?;
    print_text(&format!("{text}\n"))
}

/// Writes text to standard output.
pub fn print_text(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|source| CliError::Io { file: "standard output".into(), source })
}
