//! Where bytes come from: files and streams, with look-ahead, gunzipping and a count for progress bars.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::FormatError;
use super::format::{BOM, is_gzip};

/// Bytes looked at to tell a format.
const SNIFFED_BYTES: usize = 512;

/// Size of read buffers in bytes.
const BUFFER_BYTES: usize = 128 * 1024;

/// What to read.
pub enum Input {
    /// A file.
    Path(PathBuf),
    /// Bytes that can be read once, such as standard input.
    Stream(Box<dyn Read + Send>),
}

impl Input {
    /// The path, or `<stream>`: how messages call the input.
    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Stream(_) => "<stream>".to_owned(),
        }
    }
}

impl From<PathBuf> for Input {
    fn from(path: PathBuf) -> Self {
        Self::Path(path)
    }
}

/// How far a reader has come, for a progress bar. Clones count together.
///
/// Formats that are read from front to back (CSV, JSON lines, Arrow streams) count the bytes taken from the input,
/// compressed ones as compressed. For formats read by row (Parquet, Arrow files), the input's size is scaled by the share
/// of rows returned.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    done_bytes: Arc<AtomicU64>,
    total_bytes: Option<u64>,
}

impl Progress {
    pub(super) fn of(total_bytes: Option<u64>) -> Self {
        Self { done_bytes: Arc::default(), total_bytes }
    }

    /// Bytes consumed so far.
    pub fn done_bytes(&self) -> u64 {
        self.done_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the whole input, `None` for streams.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    pub(super) fn add(&self, bytes: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn set(&self, bytes: u64) {
        self.done_bytes.store(bytes, Ordering::Relaxed);
    }
}

/// An input whose first bytes have been looked at.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) first_bytes: Vec<u8>,
    pub(super) progress: Progress,
    bytes: Bytes,
}

enum Bytes {
    Path(PathBuf),
    Stream(Box<dyn Read + Send>),
}

impl Source {
    pub(super) fn new(input: Input) -> Result<Self, FormatError> {
        let name = input.name();
        match input {
            Input::Path(path) => {
                let mut file = File::open(&path).map_err(|error| FormatError::io(&name, error))?;
                let metadata = file.metadata().map_err(|error| FormatError::io(&name, error))?;
                if metadata.is_dir() {
                    return Err(FormatError::malformed(&name, "this is a directory; name the files in it"));
                }
                if !metadata.is_file() {
                    return Self::of_stream(name, Box::new(file));
                }
                let first_bytes =
                    peeked(&mut file, SNIFFED_BYTES).map_err(|error| FormatError::io(&name, error))?;
                let progress = Progress::of(Some(metadata.len()));
                Ok(Self { name, first_bytes, progress, bytes: Bytes::Path(path) })
            }
            Input::Stream(stream) => Self::of_stream(name, stream),
        }
    }

    fn of_stream(name: String, mut stream: Box<dyn Read + Send>) -> Result<Self, FormatError> {
        let first_bytes =
            peeked(&mut stream, SNIFFED_BYTES).map_err(|error| FormatError::io(&name, error))?;
        let bytes = Bytes::Stream(Box::new(Cursor::new(first_bytes.clone()).chain(stream)));
        Ok(Self { name, first_bytes, progress: Progress::of(None), bytes })
    }

    /// The first bytes, unpacked if they are gzip.
    pub(super) fn first_text_bytes(&self) -> Vec<u8> {
        if !is_gzip(&self.first_bytes) {
            return self.first_bytes.clone();
        }
        let mut text = Vec::new();
        // The sniffed part of a gzip file ends early; what was unpacked until then is enough.
        let _ = MultiGzDecoder::new(self.first_bytes.as_slice())
            .take(SNIFFED_BYTES as u64)
            .read_to_end(&mut text);
        text
    }

    /// A file to seek in. A stream is copied to a temporary file, which the system removes when it is closed.
    pub(super) fn into_file(self) -> Result<File, FormatError> {
        let failed = |error| FormatError::io(&self.name, error);
        match self.bytes {
            Bytes::Path(path) => File::open(path).map_err(failed),
            Bytes::Stream(mut stream) => {
                let mut file = tempfile::tempfile().map_err(failed)?;
                io::copy(&mut stream, &mut file).map_err(failed)?;
                file.seek(SeekFrom::Start(0)).map_err(failed)?;
                Ok(file)
            }
        }
    }

    /// All bytes from front to back.
    pub(super) fn into_reader(self) -> Result<Box<dyn Read + Send>, FormatError> {
        let inner: Box<dyn Read + Send> = match self.bytes {
            Bytes::Path(path) => {
                Box::new(File::open(path).map_err(|error| FormatError::io(&self.name, error))?)
            }
            Bytes::Stream(stream) => stream,
        };
        Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, Counted { inner, progress: self.progress })))
    }

    /// The text, unpacked if it is gzip and without a byte order mark.
    pub(super) fn into_text(self) -> Result<TextSource, FormatError> {
        let (name, progress) = (self.name.clone(), self.progress.clone());
        let bytes = match self.bytes {
            Bytes::Path(path) => TextBytes::Path(path),
            Bytes::Stream(inner) => {
                let counted = Box::new(Counted { inner, progress: progress.clone() });
                let text = unpacked(counted).map_err(|error| FormatError::io(&name, error))?;
                TextBytes::Stream(Replay { recorded: Vec::new(), position: 0, recording: true, rest: text })
            }
        };
        Ok(TextSource { name, progress, bytes })
    }
}

/// Text that can be looked at from its start before it is read.
pub(super) struct TextSource {
    pub(super) name: String,
    progress: Progress,
    bytes: TextBytes,
}

enum TextBytes {
    Path(PathBuf),
    Stream(Replay),
}

impl TextSource {
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.bytes, TextBytes::Stream(_))
    }

    /// Runs `look` over the text from its start. What it reads of a stream is kept in memory.
    pub(super) fn look_ahead<T>(
        &mut self,
        look: impl FnOnce(&mut dyn BufRead) -> Result<T, FormatError>,
    ) -> Result<T, FormatError> {
        match &mut self.bytes {
            TextBytes::Path(path) => {
                let text = open_text(path, Progress::default())
                    .map_err(|error| FormatError::io(&self.name, error))?;
                look(&mut BufReader::with_capacity(BUFFER_BYTES, text))
            }
            TextBytes::Stream(replay) => {
                replay.position = 0;
                look(&mut BufReader::with_capacity(BUFFER_BYTES, replay))
            }
        }
    }

    /// The text from its start.
    pub(super) fn into_reader(self) -> Result<Box<dyn BufRead + Send>, FormatError> {
        let text: Box<dyn Read + Send> = match self.bytes {
            TextBytes::Path(path) => {
                Box::new(open_text(&path, self.progress).map_err(|error| FormatError::io(&self.name, error))?)
            }
            TextBytes::Stream(mut replay) => {
                replay.position = 0;
                replay.recording = false;
                Box::new(replay)
            }
        };
        Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, text)))
    }
}

fn open_text(path: &PathBuf, progress: Progress) -> io::Result<Box<dyn Read + Send>> {
    unpacked(Box::new(Counted { inner: Box::new(File::open(path)?), progress }))
}

fn unpacked(bytes: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let (is_gzip, bytes) = with_prefix(bytes, 2, is_gzip)?;
    let text: Box<dyn Read + Send> = if is_gzip {
        Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, bytes)))
    } else {
        bytes
    };
    let (has_bom, mut text) = with_prefix(text, BOM.len(), |first| first == BOM)?;
    if has_bom {
        text.read_exact(&mut [0; BOM.len()])?;
    }
    Ok(text)
}

type Boxed = Box<dyn Read + Send>;

/// What `test` says about the first bytes, and all bytes.
fn with_prefix(
    mut bytes: Boxed,
    prefix_bytes: usize,
    test: impl Fn(&[u8]) -> bool,
) -> io::Result<(bool, Boxed)> {
    let prefix = peeked(&mut bytes, prefix_bytes)?;
    Ok((test(&prefix), Box::new(Cursor::new(prefix).chain(bytes))))
}

/// Up to `wanted_bytes` bytes, fewer only at the end.
fn peeked(bytes: &mut impl Read, wanted_bytes: usize) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    bytes.take(wanted_bytes as u64).read_to_end(&mut found)?;
    Ok(found)
}

/// Counts the bytes that pass.
struct Counted {
    inner: Box<dyn Read + Send>,
    progress: Progress,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read_bytes = self.inner.read(buffer)?;
        self.progress.add(read_bytes as u64);
        Ok(read_bytes)
    }
}

/// A stream that remembers what was read while `recording`, and reads it again from `position`.
struct Replay {
    recorded: Vec<u8>,
    position: usize,
    recording: bool,
    rest: Box<dyn Read + Send>,
}

impl Read for Replay {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut unread = self.recorded.get(self.position..).unwrap_or_default();
        if !unread.is_empty() {
            let read_bytes = unread.read(buffer)?;
            self.position += read_bytes;
            return Ok(read_bytes);
        }
        if !self.recording {
            self.recorded = Vec::new();
            return self.rest.read(buffer);
        }
        let read_bytes = self.rest.read(buffer)?;
        self.recorded.extend_from_slice(buffer.get(..read_bytes).unwrap_or_default());
        self.position += read_bytes;
        Ok(read_bytes)
    }
}
