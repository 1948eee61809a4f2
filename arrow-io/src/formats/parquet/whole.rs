//! A file of which nothing is read beyond its end.

use std::fs::File;
use std::io::{self, BufReader, Read};

use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;

/// A file for the `parquet` crate's reader. A read beyond the end is an error: of a plain file the crate makes room for whatever length its metadata claim, and goes on
/// skipping the claimed elements of a list when the file has long ended.
pub(super) struct WholeFile(pub(super) File);

impl Length for WholeFile {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for WholeFile {
    type T = Whole<BufReader<File>>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.0.get_read(start).map(Whole)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let file_bytes = self.len();
        if start.checked_add(length as u64).is_none_or(|end| end > file_bytes) {
            let problem = format!("{length} bytes at offset {start} of a file of {file_bytes}");
            return Err(ParquetError::EOF(problem));
        }
        self.0.get_bytes(start, length)
    }
}

/// A reader that never comes to an end without an error.
pub(super) struct Whole<R>(R);

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.0.read(room)? {
            0 if !room.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(read),
        }
    }
}
