//! The two ends of a file.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{FILE_ALIGNMENT, FORMAT_VERSION, FormatError, checksum_of, is_zero};

/// Length of the file header in bytes.
pub const FILE_HEADER_BYTES: usize = size_of::<FileHeader>();

/// Length of the trailer in bytes.
pub const TRAILER_BYTES: usize = size_of::<Trailer>();

/// The first 64 bytes of a file.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FileHeader {
    /// [`FileHeader::MAGIC`].
    pub magic: [u8; 8],
    /// [`FORMAT_VERSION`].
    pub format_version: U16,
    /// Zero.
    pub reserved: [u8; 54],
}

impl FileHeader {
    /// The first eight bytes of every file.
    pub const MAGIC: [u8; 8] = *b"cb2t\r\n\x1a\n";

    /// The header that this version writes.
    #[must_use]
    pub fn current() -> Self {
        Self { magic: Self::MAGIC, format_version: FORMAT_VERSION.into(), reserved: [0; 54] }
    }

    /// The header at the start of `bytes`.
    ///
    /// # Errors
    /// Too few bytes, a wrong magic, another version, or reserved bytes that are not zero.
    pub fn parse(bytes: &[u8]) -> Result<&Self, FormatError> {
        let what = "file header";
        let (header, _) = Self::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
            what,
            needed_bytes: FILE_HEADER_BYTES as u64,
            found_bytes: bytes.len() as u64,
        })?;
        check_ends(what, header.magic == Self::MAGIC, header.format_version.get())?;
        if is_zero(&header.reserved) { Ok(header) } else { Err(FormatError::NotZero { what }) }
    }
}

/// The last 32 bytes of a file.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Trailer {
    /// Where the footer begins.
    pub footer_offset: U64,
    /// Length of the footer; it ends where the trailer begins.
    pub footer_bytes: U64,
    /// Over the footer and the rest of the trailer.
    pub footer_checksum: U32,
    /// [`FORMAT_VERSION`].
    pub format_version: U16,
    /// Zero.
    pub reserved: U16,
    /// [`Trailer::MAGIC`].
    pub magic: [u8; 8],
}

impl Trailer {
    /// The last eight bytes of every file.
    pub const MAGIC: [u8; 8] = *b"\ncb2tend";

    /// The trailer of a file whose footer is `footer` and begins at `footer_offset`.
    #[must_use]
    pub fn new(footer_offset: u64, footer: &[u8]) -> Self {
        let mut trailer = Self {
            footer_offset: footer_offset.into(),
            footer_bytes: (footer.len() as u64).into(),
            footer_checksum: 0.into(),
            format_version: FORMAT_VERSION.into(),
            reserved: 0.into(),
            magic: Self::MAGIC,
        };
        trailer.footer_checksum = trailer.computed_checksum(footer).into();
        trailer
    }

    /// The trailer at the end of a file of `file_bytes` bytes, of which `tail` are the last.
    ///
    /// # Errors
    /// Too few bytes, a wrong magic, another version, reserved bytes that are not zero, or a footer that is not aligned or does not end where the
    /// trailer begins.
    pub fn parse(tail: &[u8], file_bytes: u64) -> Result<&Self, FormatError> {
        let what = "trailer";
        let (_, trailer) = Self::ref_from_suffix(tail).map_err(|_| FormatError::Truncated {
            what,
            needed_bytes: (FILE_HEADER_BYTES + TRAILER_BYTES) as u64,
            found_bytes: file_bytes,
        })?;
        check_ends(what, trailer.magic == Self::MAGIC, trailer.format_version.get())?;
        if trailer.reserved.get() != 0 {
            return Err(FormatError::NotZero { what });
        }
        let (offset, length) = (trailer.footer_offset.get(), trailer.footer_bytes.get());
        let end = file_bytes.checked_sub(TRAILER_BYTES as u64);
        if !offset.is_multiple_of(FILE_ALIGNMENT) || offset < FILE_HEADER_BYTES as u64 {
            return Err(FormatError::Field { what, field: "footer_offset", found: offset });
        }
        if offset.checked_add(length) != end {
            return Err(FormatError::Field { what, field: "footer_bytes", found: length });
        }
        Ok(trailer)
    }

    /// Compares the stored checksum with that of `footer`.
    ///
    /// # Errors
    /// They differ.
    pub fn verify(&self, footer: &[u8]) -> Result<(), FormatError> {
        let (stored, computed) = (self.footer_checksum.get(), self.computed_checksum(footer));
        if stored == computed {
            Ok(())
        } else {
            Err(FormatError::Checksum { what: "footer", stored, computed })
        }
    }

    fn computed_checksum(&self, footer: &[u8]) -> u32 {
        checksum_of(&[
            footer,
            self.footer_offset.as_bytes(),
            self.footer_bytes.as_bytes(),
            self.format_version.as_bytes(),
            self.reserved.as_bytes(),
        ])
    }
}

fn check_ends(what: &'static str, magic_matches: bool, found: u16) -> Result<(), FormatError> {
    if !magic_matches {
        return Err(FormatError::Magic { what });
    }
    if found != FORMAT_VERSION {
        return Err(FormatError::Version { what, found, known: FORMAT_VERSION });
    }
    Ok(())
}
