//! Where a command's table goes: a file that appears whole or not at all, or standard output.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cb2t::AtomicFile;

use crate::error::CliError;
use crate::input::is_standard;

/// A sink that several may hold, of whom one ends it.
#[derive(Debug, Clone)]
pub struct Output {
    file: Option<Arc<Mutex<AtomicFile>>>,
}

impl Output {
    /// Begins the file `path`, or standard output for -.
    pub fn create(path: &Path, replace: bool) -> Result<Self, CliError> {
        if is_standard(path) {
            return Ok(Self { file: None });
        }
        let file = AtomicFile::create(path, replace)?;
        Ok(Self { file: Some(Arc::new(Mutex::new(file))) })
    }

    /// A buffered writer to it.
    pub fn writer(&self) -> Box<dyn Write + Send> {
        const BUFFER_BYTES: usize = 1 << 20;
        match &self.file {
            None => Box::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout())),
            Some(_) => Box::new(BufWriter::with_capacity(BUFFER_BYTES, self.clone())),
        }
    }

    /// Where the file is until it gets its name; `None` for standard output.
    pub fn temporary_path(&self) -> Option<PathBuf> {
        let file = self.file.as_ref()?;
        Some(file.lock().unwrap_or_else(PoisonError::into_inner).temporary_path().to_owned())
    }

    /// Gives a file its name. All writers must be gone.
    pub fn commit(self) -> Result<(), CliError> {
        let Some(file) = self.file else { return Ok(()) };
        let file = Arc::into_inner(file)
            .ok_or_else(|| CliError::Usage("the output is still being written".into()))?;
        file.into_inner().unwrap_or_else(PoisonError::into_inner).commit()?;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.file {
            Some(file) => file.lock().unwrap_or_else(PoisonError::into_inner).write(bytes),
            None => io::stdout().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &self.file {
            Some(file) => file.lock().unwrap_or_else(PoisonError::into_inner).flush(),
            None => io::stdout().flush(),
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
