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
    /// Begins the file `path`. Without `replace` an existing file is an error, now and at the end. Of a symbolic link the file that it leads to is replaced.
    ///
    /// # Errors
    /// The file exists, what exists is no regular file, or its folder cannot be written.
    pub fn create(path: &Path, replace: bool) -> Result<Self, ContainerError> {
        let failed =
            |source| ContainerError::File { action: "create", path: path.display().to_string(), source };
        let refused = |reason| failed(io::Error::new(io::ErrorKind::InvalidInput, reason));
        if let Ok(metadata) = path.metadata() {
            if !replace {
                return Err(ContainerError::Exists { path: path.display().to_string() });
            }
            // A rename would put a file in the place of a device.
            if !metadata.is_file() {
                return Err(refused("it exists and is not a regular file"));
            }
        }
        let resolved =
            if path.is_symlink() { fs::canonicalize(path).map_err(failed)? } else { path.to_owned() };
        let path = resolved.as_path();
        let name = path.file_name().ok_or_else(|| refused("the path has no file name"))?;
        // Short, since the whole name may be as long as a name can be.
        let prefix: String =
            ['.'].into_iter().chain(name.to_string_lossy().chars().take(32)).chain(['.']).collect();
        // A plain `create_new`: with the permissions that any new file gets, where temporary files of their own are private, and errors that do not
        // name the temporary path.
        let create = |path: &Path| fs::OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let temporary = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".part")
            .make_in(folder(path), create)
            .map_err(failed)?;
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
        self.temporary.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.as_file_mut().flush()
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
    #[cfg(unix)]
    fn neither_a_folder_nor_a_link_nor_a_device_is_replaced_by_a_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(AtomicFile::create(folder.path(), true).is_err());
        assert!(AtomicFile::create(Path::new("/dev/null"), true).is_err());
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut file = AtomicFile::create(&link, true).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_name_may_be_as_long_as_a_name_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n".repeat(255));
        AtomicFile::create(&path, false).unwrap().commit().unwrap();
        assert!(path.exists());
    }

    #[test]
    fn a_missing_folder_is_named_by_the_path_that_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/out.cb2t");
        let message = AtomicFile::create(&path, false).unwrap_err().to_string();
        assert!(message.contains("missing/out.cb2t: "), "{message}");
        assert!(!message.contains(".part"), "{message}");
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
