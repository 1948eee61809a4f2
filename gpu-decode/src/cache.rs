//! Compiled programs on disk, so that a process that needs one again does not wait for the compiler.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use md5::{Digest, Md5};

/// Environment variable that names the cache's folder; empty switches the cache off.
pub const FOLDER_VARIABLE: &str = "CB2T_CACHE";

/// The name under which a program is kept: a hash of all that it means. The compiler's version is not part of it: cubins of another version are as right, and only the compiler, which
/// nothing on disk needs, could tell it.
#[must_use]
pub fn key(source: &str, architecture: &str, options: &[String]) -> String {
    let mut hash = Md5::new();
    for part in [source, architecture].into_iter().chain(options.iter().map(String::as_str)) {
        // Lengths first: no two lists of parts are the same bytes.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The cubin kept under `key`; `None` where there is none, or one that is not what was written.
#[must_use]
pub fn read(key: &str) -> Option<Vec<u8>> {
    let stored = fs::read(path(key)?).ok()?;
    let (hash, cubin) = stored.split_first_chunk::<16>()?;
    (Md5::digest(cubin).as_slice() == hash).then(|| cubin.to_vec())
}

/// Keeps `cubin` under `key`. A cache that cannot be written is no error: the next process compiles again.
pub fn write(key: &str, cubin: &[u8]) {
    let _ = try_write(key, cubin);
}

fn try_write(key: &str, cubin: &[u8]) -> Option<()> {
    let path = path(key)?;
    fs::create_dir_all(path.parent()?).ok()?;
    // A name of its own, then a rename: another process sees the whole file or none.
    let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = fs::File::create(&unfinished).ok()?;
    let written = file.write_all(&Md5::digest(cubin)).and_then(|()| file.write_all(cubin));
    if written.and_then(|()| fs::rename(&unfinished, &path)).is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    Some(())
}

fn path(key: &str) -> Option<PathBuf> {
    Some(folder()?.join(format!("{key}.cubin")))
}

fn folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        return (!folder.is_empty()).then(|| folder.into());
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let caches = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    Some(caches.or_else(home)?.join("cb2t"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_by_every_part() {
        let options = ["-DA".to_owned(), "-DB".to_owned()];
        let joined = ["-DA-DB".to_owned()];
        let keys = [
            key("source", "sm_90", &options),
            key("source2", "sm_90", &options),
            key("source", "sm_80", &options),
            key("source", "sm_90", &joined),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key));
        }
    }
}
