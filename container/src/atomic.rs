//! A file that appears under its name whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::ContainerError;

/// A temporary file in the folder of its final name. [`AtomicFile::commit`] syncs and renames it; dropped before that, it is removed.
#[derive(Debug)]
pub struct AtomicFile {
    temporary: NamedTempFile,
    path: PathBuf,
    replace: bool,
}

impl AtomicFile {
    /// Begins the file `path`. Without `replace` an existing file is an error, now and at the end.
    ///
    /// # Errors
    /// The file exists, or its folder cannot be written.
    pub fn create(path: &Path, replace: bool) -> Result<Self, ContainerError> {
        if !replace && path.exists() {
            return Err(ContainerError::Exists { path: path.display().to_string() });
        }
        let failed =
            |source| ContainerError::File { action: "create", path: path.display().to_string(), source };
        let name = path.file_name().ok_or_else(|| {
            failed(io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"))
        })?;
        let prefix = format!(".{}.", name.to_string_lossy());
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // What a plain `create` would ask for; the process's umask still applies. Temporary files are private otherwise.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let temporary = builder.tempfile_in(folder(path)).map_err(failed)?;
        Ok(Self { temporary, path: path.to_owned(), replace })
    }

    /// Where the file is until then.
    #[must_use]
    pub fn temporary_path(&self) -> &Path {
        self.temporary.path()
    }

    /// Gives the file its name: synced to disk first, then renamed.
    ///
    /// # Errors
    /// The disk is full or fails, or the name was taken meanwhile.
    pub fn commit(self) -> Result<(), ContainerError> {
        let Self { temporary, path, replace } = self;
        let failed =
            |source| ContainerError::File { action: "write", path: path.display().to_string(), source };
        temporary.as_file().sync_all().map_err(failed)?;
        if replace {
            temporary.persist(&path).map_err(|error| failed(error.error))?;
        } else {
            temporary.persist_noclobber(&path).map_err(|error| match error.error.kind() {
                io::ErrorKind::AlreadyExists => ContainerError::Exists { path: path.display().to_string() },
                _ => failed(error.error),
            })?;
        }
        // The new name itself is on disk once the folder is; some file systems cannot sync one, and then the rename stands as it is.
        if let Ok(folder) = fs::File::open(folder(&path)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.flush()
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_committed_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.cb2t");
        let mut file = AtomicFile::create(&path, false).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_existing_file_is_replaced_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.cb2t");
        fs::write(&path, "old").unwrap();
        assert!(matches!(AtomicFile::create(&path, false), Err(ContainerError::Exists { .. })));
        let mut file = AtomicFile::create(&path, true).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
