//! Where the bytes of a file come from.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{ContainerError, Spare};

/// Anything that reads and seeks.
pub trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// The bytes of a file, readable at any offset by several threads.
pub struct Source {
    bytes: Bytes,
    length: u64,
    spare: Arc<Spare<u8>>,
}

enum Bytes {
    /// Positioned reads into memory of our own: what is proven cannot change afterwards, whatever happens to the file.
    File(File),
    /// A map of the file, on request only.
    Map(memmap2::Mmap),
    Memory(Arc<[u8]>),
    Stream(Mutex<Box<dyn ReadSeek>>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Source").field("length", &self.length).finish_non_exhaustive()
    }
}

/// Bytes of a file: borrowed from a map or from memory, or read.
#[derive(Debug, Clone)]
pub enum BlockBytes<'a> {
    /// In memory already.
    Borrowed(&'a [u8]),
    /// Read for this use; shared by those who read the same block.
    Read(Arc<ReadBytes>),
}

/// Bytes that were read. Their memory goes back to the source when nobody uses them any more: new memory costs more than reading into memory that is there already.
#[derive(Debug)]
pub struct ReadBytes {
    /// At least `length` bytes.
    memory: Vec<u8>,
    length: usize,
    spare: Arc<Spare<u8>>,
}

impl AsRef<[u8]> for ReadBytes {
    fn as_ref(&self) -> &[u8] {
        self.memory.get(..self.length).unwrap_or_default()
    }
}

impl Drop for ReadBytes {
    fn drop(&mut self) {
        self.spare.give(std::mem::take(&mut self.memory));
    }
}

/// Most memory that a source keeps for blocks to come.
const SPARE_BYTES: usize = 32 << 20;

impl AsRef<[u8]> for BlockBytes<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Read(bytes) => (**bytes).as_ref(),
        }
    }
}

impl Source {
    /// A file, by positioned reads. Each block is copied before it is proven and used, so a file that is replaced, truncated or rewritten meanwhile gives
    /// an error or the values that were read: never a crash.
    ///
    /// # Errors
    /// The file cannot be opened, or is no regular file.
    pub fn open(path: &Path) -> Result<Self, ContainerError> {
        let failed =
            |source| ContainerError::File { action: "open", path: path.display().to_string(), source };
        // Looked at before it is opened: opening a pipe waits for its writer.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        Ok(Self { bytes: Bytes::File(file), length, spare: Arc::new(Spare::new(SPARE_BYTES)) })
    }

    /// A file, mapped into memory: blocks are used where they lie, without a copy.
    ///
    /// # Safety
    /// As long as the source lives nothing may truncate or write the file: reading a truncated page ends the process (SIGBUS), and bytes that change under a
    /// proof break it. Use [`Source::open`] where that cannot be promised.
    ///
    /// # Errors
    /// The file cannot be opened or mapped.
    pub unsafe fn map(path: &Path) -> Result<Self, ContainerError> {
        let failed =
            |source| ContainerError::File { action: "map", path: path.display().to_string(), source };
        let file = File::open(path).map_err(failed)?;
        // SAFETY: the caller promises that the file does not change while the map lives, which is what `Mmap::map` demands.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
        let length = map.len() as u64;
        Ok(Self { bytes: Bytes::Map(map), length, spare: Arc::new(Spare::new(SPARE_BYTES)) })
    }

    /// Bytes in memory.
    #[must_use]
    pub fn memory(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let length = bytes.len() as u64;
        Self { bytes: Bytes::Memory(bytes), length, spare: Arc::new(Spare::new(SPARE_BYTES)) }
    }

    /// Anything that reads and seeks; reads take turns.
    ///
    /// # Errors
    /// The end cannot be sought.
    pub fn stream(mut stream: impl ReadSeek + 'static) -> Result<Self, ContainerError> {
        let length = stream.seek(SeekFrom::End(0)).map_err(|source| ContainerError::Read {
            offset: 0,
            length: 0,
            source,
        })?;
        Ok(Self {
            bytes: Bytes::Stream(Mutex::new(Box::new(stream))),
            length,
            spare: Arc::new(Spare::new(SPARE_BYTES)),
        })
    }

    /// Length in bytes, as it was when the source was opened.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The bytes of `range`.
    ///
    /// # Errors
    /// A range beyond the length, or one that cannot be read.
    pub fn read(&self, range: Range<u64>) -> Result<BlockBytes<'_>, ContainerError> {
        let (offset, length) = (range.start, range.end.saturating_sub(range.start));
        let failed = |source| ContainerError::Read { offset, length, source };
        let end_of_file = || failed(io::Error::from(io::ErrorKind::UnexpectedEof));
        // What follows allocates `length` bytes: they are in the file, so they are earned.
        if range.start > range.end || range.end > self.length {
            return Err(end_of_file());
        }
        let (Ok(start), Ok(len)) = (usize::try_from(offset), usize::try_from(length)) else {
            return Err(end_of_file());
        };
        match &self.bytes {
            Bytes::Map(map) => map.get(start..start + len).map(BlockBytes::Borrowed).ok_or_else(end_of_file),
            Bytes::Memory(bytes) => {
                bytes.get(start..start + len).map(BlockBytes::Borrowed).ok_or_else(end_of_file)
            }
            Bytes::File(file) => {
                self.read_with(len, |bytes| read_exact_at(file, bytes, offset)).map_err(failed)
            }
            Bytes::Stream(stream) => {
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                self.read_with(len, |bytes| {
                    stream.seek(SeekFrom::Start(offset))?;
                    stream.read_exact(bytes)
                })
                .map_err(failed)
            }
        }
    }

    /// `length` bytes as `read` fills them.
    fn read_with(
        &self,
        length: usize,
        read: impl FnOnce(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<BlockBytes<'_>> {
        let spare = Arc::clone(&self.spare);
        let mut bytes = ReadBytes { memory: spare.take(length), length, spare };
        read(bytes.memory.get_mut(..length).unwrap_or_default())?;
        Ok(BlockBytes::Read(Arc::new(bytes)))
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        offset += read as u64;
        bytes = &mut bytes[read..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn memory_that_is_used_again_holds_what_was_read_last() {
        let bytes: Vec<u8> = (0..400_000_u32).flat_map(|number| number.to_le_bytes()).collect();
        let source = Source::stream(Cursor::new(bytes.clone())).unwrap();
        let lengths = [200_000, 150_000, 70_000, 199_999, 10, 65_536, 0, 1_600_000];
        for (offset, length) in (0..).step_by(1001).zip(lengths) {
            let offset = if length == bytes.len() { 0 } else { offset };
            let read = |offset: usize| source.read(offset as u64..(offset + length) as u64).unwrap();
            let (first, second) = (read(offset), read(offset / 2));
            assert_eq!(first.as_ref(), &bytes[offset..offset + length]);
            assert_eq!(second.as_ref(), &bytes[offset / 2..offset / 2 + length]);
        }
        let kept = source.spare.kept();
        assert!(kept.iter().all(|&length| length >= Spare::<u8>::LEAST_BYTES), "{kept:?}");
        assert_eq!(kept.len(), 6, "{kept:?}");
    }
}
