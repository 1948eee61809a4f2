//! Unfinished files are removed when the program is told to end: by Ctrl-C, or by `kill`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cb2t::{AtomicFile, ContainerError};

/// The temporary files begun so far. Those that were finished have another name by now, so removing them all does no harm.
static BEGUN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Begins the file `path`, and removes what was written of it when a signal ends the program.
pub fn begin(path: &Path, replace: bool) -> Result<AtomicFile, ContainerError> {
    // The lock keeps a signal waiting until the file is known.
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    if begun.is_empty() {
        listen();
    }
    let file = AtomicFile::create(path, replace)?;
    begun.push(file.temporary_path().to_owned());
    Ok(file)
}

#[cfg(unix)]
fn listen() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::low_level::emulate_default_handler;

    // Without a handler the signals do what they always do, and leave the file: no reason not to write it.
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            for path in BEGUN.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                let _ = std::fs::remove_file(path);
            }
            // Whoever waits for the program sees which signal ended it.
            let _ = emulate_default_handler(signal);
        }
    });
}

#[cfg(not(unix))]
fn listen() {}
