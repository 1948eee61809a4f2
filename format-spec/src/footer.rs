//! The footer: what a reader needs of the whole table before it touches a column.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{FILE_ALIGNMENT, FILE_HEADER_BYTES, FormatError, is_zero};

const WHAT: &str = "footer";

/// The first 64 bytes of the footer.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FooterHeader {
    /// Rows of the table.
    pub row_count: U64,
    /// Row groups of the table.
    pub row_group_count: U32,
    /// Top-level fields of the schema.
    pub column_count: U32,
    /// Length of the schema message.
    pub schema_bytes: U64,
    /// Length of the text that names the writer.
    pub created_by_bytes: U32,
    /// Zero.
    pub reserved: [u8; 36],
}

/// Where a column's section is.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ColumnEntry {
    /// Where the section begins in the file.
    pub section_offset: U64,
    /// Length of the section.
    pub section_bytes: U64,
    /// Over the section.
    pub section_checksum: U32,
    /// Zero.
    pub reserved: U32,
}

/// A footer whose parts are proven to add up. The schema is Arrow's to check.
#[derive(Debug, Clone, Copy)]
pub struct Footer<'a> {
    /// Rows of the table.
    pub row_count: u64,
    /// Rows of each row group.
    pub row_groups: &'a [U64],
    /// Where each column's section is.
    pub columns: &'a [ColumnEntry],
    /// The Arrow IPC schema message.
    pub schema: &'a [u8],
    /// The writing program and its version.
    pub created_by: &'a str,
}

impl<'a> Footer<'a> {
    /// Proves a footer that begins at `footer_offset` in its file. The checksum is [`crate::Trailer::verify`]'s.
    ///
    /// # Errors
    /// Lengths that do not add up, rows that do not, or a column section that is not aligned, not behind the one before it or not before the footer.
    pub fn parse(bytes: &'a [u8], footer_offset: u64) -> Result<Self, FormatError> {
        let found_bytes = bytes.len() as u64;
        let (header, rest) = FooterHeader::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
            what: WHAT,
            needed_bytes: size_of::<FooterHeader>() as u64,
            found_bytes,
        })?;
        if !is_zero(&header.reserved) {
            return Err(FormatError::NotZero { what: WHAT });
        }
        let needed_bytes = needed_bytes(header);
        let wrong_length = FormatError::WrongLength { what: WHAT, needed_bytes, found_bytes };
        if needed_bytes != found_bytes {
            return Err(wrong_length);
        }
        let (row_groups, rest) =
            elements::<U64>(rest, header.row_group_count.get()).ok_or(wrong_length.clone())?;
        let (columns, rest) =
            elements::<ColumnEntry>(rest, header.column_count.get()).ok_or(wrong_length.clone())?;
        let schema_len = usize::try_from(header.schema_bytes.get()).map_err(|_| wrong_length.clone())?;
        let (schema, created_by) = rest.split_at_checked(schema_len).ok_or(wrong_length)?;
        let created_by = str::from_utf8(created_by).map_err(|_| FormatError::Field {
            what: WHAT,
            field: "created_by",
            found: header.created_by_bytes.get().into(),
        })?;
        check_rows(row_groups, header.row_count.get())?;
        let mut least_offset = FILE_HEADER_BYTES as u64;
        for column in columns {
            least_offset = check_section_place(column, least_offset, footer_offset)?;
        }
        Ok(Self { row_count: header.row_count.get(), row_groups, columns, schema, created_by })
    }
}

/// The bytes of a footer.
///
/// # Errors
/// More row groups, columns or bytes of text than the counts can say.
pub fn footer_bytes(
    row_groups: &[u64],
    columns: &[ColumnEntry],
    schema: &[u8],
    created_by: &str,
) -> Result<Vec<u8>, FormatError> {
    let header = FooterHeader {
        row_count: row_groups.iter().sum::<u64>().into(),
        row_group_count: count(WHAT, "row_group_count", row_groups.len())?.into(),
        column_count: count(WHAT, "column_count", columns.len())?.into(),
        schema_bytes: (schema.len() as u64).into(),
        created_by_bytes: count(WHAT, "created_by_bytes", created_by.len())?.into(),
        reserved: [0; 36],
    };
    let mut bytes = header.as_bytes().to_vec();
    for &rows in row_groups {
        bytes.extend_from_slice(&rows.to_le_bytes());
    }
    bytes.extend_from_slice(columns.as_bytes());
    bytes.extend_from_slice(schema);
    bytes.extend_from_slice(created_by.as_bytes());
    Ok(bytes)
}

fn needed_bytes(header: &FooterHeader) -> u64 {
    let row_groups = u64::from(header.row_group_count.get()) * 8;
    let columns = u64::from(header.column_count.get()) * size_of::<ColumnEntry>() as u64;
    let fixed = size_of::<FooterHeader>() as u64 + row_groups + columns;
    fixed.saturating_add(header.schema_bytes.get()).saturating_add(header.created_by_bytes.get().into())
}

fn check_rows(row_groups: &[U64], row_count: u64) -> Result<(), FormatError> {
    let mut sum = 0_u64;
    for rows in row_groups {
        let found = rows.get();
        match sum.checked_add(found) {
            Some(next) if found > 0 => sum = next,
            _ => return Err(FormatError::Field { what: "row group", field: "row_count", found }),
        }
    }
    if sum == row_count {
        return Ok(());
    }
    Err(FormatError::Mismatch { what: WHAT, field: "row_count", found: row_count, expected: sum })
}

/// Where the section ends. Sections stand in the order of the columns, so that together they are no longer than the file.
fn check_section_place(
    column: &ColumnEntry,
    least_offset: u64,
    footer_offset: u64,
) -> Result<u64, FormatError> {
    let what = "column entry";
    let offset = column.section_offset.get();
    if column.reserved.get() != 0 {
        return Err(FormatError::NotZero { what });
    }
    if !offset.is_multiple_of(FILE_ALIGNMENT) || offset < least_offset {
        return Err(FormatError::Field { what, field: "section_offset", found: offset });
    }
    match offset.checked_add(column.section_bytes.get()) {
        Some(end) if end <= footer_offset => Ok(end),
        _ => Err(FormatError::Field { what, field: "section_bytes", found: column.section_bytes.get() }),
    }
}

/// The first `count` elements of `bytes` and what follows; `None` where there are fewer.
pub(crate) fn elements<T: FromBytes + Immutable + KnownLayout + Unaligned>(
    bytes: &[u8],
    count: u32,
) -> Option<(&[T], &[u8])> {
    <[T]>::ref_from_prefix_with_elems(bytes, usize::try_from(count).ok()?).ok()
}

/// `length` as a stored count of 32 bits.
pub(crate) fn count(what: &'static str, field: &'static str, length: usize) -> Result<u32, FormatError> {
    u32::try_from(length).map_err(|_| FormatError::Field { what, field, found: length as u64 })
}
