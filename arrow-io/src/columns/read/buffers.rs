//! Whether a node has the buffers that its type demands.

use format_spec::{BufferEntry, Encoding, FormatError, Kind, NodeChunk, Role};

use crate::columns::tree::{Node, Shape};

/// The buffers of a node in one row group, proven to be those of SPEC.md section 6.
#[derive(Debug)]
pub struct NodeBuffers<'a> {
    /// Validity, where there are nulls.
    pub validity: Option<&'a BufferEntry>,
    content: Vec<&'a BufferEntry>,
}

/// What SPEC.md demands of one buffer.
struct Expected {
    role: Role,
    kind: Kind,
    widths: &'static [u8],
    limb: u8,
    /// None where the number follows from the values of other buffers.
    value_count: Option<u64>,
}

impl<'a> NodeBuffers<'a> {
    /// Proves the buffers of `chunk`.
    ///
    /// # Errors
    /// Another number of buffers, or one of another role, kind, width, limb or length than the type demands.
    pub fn parse(node: &Node, chunk: &NodeChunk, buffers: &'a [BufferEntry]) -> Result<Self, FormatError> {
        let coded = Encoding::parse(chunk.encoding)? == Encoding::Dictionary;
        if coded && node.shape != Shape::Bytes {
            return Err(FormatError::Field {
                what: "node chunk",
                field: "encoding",
                found: chunk.encoding.into(),
            });
        }
        check_null_count(node, chunk)?;
        let expected = expected(node, chunk, coded);
        let (found, wanted) = (buffers.len() as u64, expected.len() as u64);
        if found != wanted {
            let field = "buffer_count";
            return Err(FormatError::Mismatch { what: "node chunk", field, found, expected: wanted });
        }
        for (expected, entry) in expected.iter().zip(buffers) {
            check(expected, entry)?;
        }
        let has_validity = expected.first().is_some_and(|first| first.role == Role::Validity);
        let (validity, content) = buffers.split_at(usize::from(has_validity));
        Ok(Self { validity: validity.first(), content: content.iter().collect() })
    }

    /// The buffers besides validity; none where the node has no slots.
    pub fn content(&self) -> &[&'a BufferEntry] {
        &self.content
    }

    /// The first buffer besides validity.
    pub fn first(&self) -> Option<&'a BufferEntry> {
        self.content.first().copied()
    }

    /// The second buffer besides validity.
    pub fn second(&self) -> Option<&'a BufferEntry> {
        self.content.get(1).copied()
    }
}

fn check_null_count(node: &Node, chunk: &NodeChunk) -> Result<(), FormatError> {
    let (found, slots) = (chunk.null_count.get(), chunk.slot_count.get());
    let expected = match node.shape {
        Shape::Null => slots,
        Shape::SparseUnion(_) | Shape::DenseUnion(_) => 0,
        _ => return Ok(()),
    };
    if found == expected {
        return Ok(());
    }
    Err(FormatError::Mismatch { what: "node chunk", field: "null_count", found, expected })
}

fn expected(node: &Node, chunk: &NodeChunk, coded: bool) -> Vec<Expected> {
    let slots = chunk.slot_count.get();
    if slots == 0 {
        return Vec::new();
    }
    let values =
        |role, widths, limb| Expected { role, kind: Kind::Values, widths, limb, value_count: Some(slots) };
    let bytes =
        |value_count| Expected { role: Role::Bytes, kind: Kind::Bytes, widths: &[8], limb: 0, value_count };
    let mut all = Vec::new();
    if chunk.null_count.get() > 0 && node.shape != Shape::Null {
        all.push(values(Role::Validity, &[8], 0));
    }
    match &node.shape {
        Shape::Null | Shape::FixedList(_) | Shape::Struct => {}
        Shape::Boolean => all.push(values(Role::Values, &[8], 0)),
        Shape::Limbs(limbs) => {
            for (index, limb) in (0_u8..).zip(limbs) {
                all.push(values(Role::Values, one_width(limb.width), index));
            }
        }
        Shape::FixedBytes(stride) => all.push(bytes(Some(slots.saturating_mul(*stride as u64)))),
        Shape::Bytes if coded => all.push(values(Role::Codes, &[8, 16, 32], 0)),
        Shape::Bytes => {
            all.push(values(Role::Ends, &[32, 64], 0));
            all.push(bytes(None));
        }
        Shape::List => all.push(values(Role::Ends, &[32, 64], 0)),
        Shape::SparseUnion(_) | Shape::DenseUnion(_) => all.push(values(Role::TypeIds, &[8], 0)),
    }
    all
}

fn one_width(width: u8) -> &'static [u8] {
    match width {
        8 => &[8],
        16 => &[16],
        32 => &[32],
        _ => &[64],
    }
}

fn check(expected: &Expected, entry: &BufferEntry) -> Result<(), FormatError> {
    let what = "buffer";
    let mismatch =
        |field, found: u64, expected: u64| Err(FormatError::Mismatch { what, field, found, expected });
    if entry.role != expected.role as u8 {
        return mismatch("role", entry.role.into(), (expected.role as u8).into());
    }
    if entry.kind != expected.kind as u8 {
        return mismatch("kind", entry.kind.into(), (expected.kind as u8).into());
    }
    if !expected.widths.contains(&entry.value_width) {
        return Err(FormatError::Field { what, field: "value_width", found: entry.value_width.into() });
    }
    if entry.limb != expected.limb {
        return mismatch("limb", entry.limb.into(), expected.limb.into());
    }
    match expected.value_count {
        Some(count) if count != entry.value_count.get() => {
            mismatch("value_count", entry.value_count.get(), count)
        }
        _ => Ok(()),
    }
}

/// Proves the buffers of a dictionary of `entry_count` entries: ends, bytes, and a rank where they are not ordered.
///
/// # Errors
/// As [`NodeBuffers::parse`].
pub fn check_dictionary(buffers: &[BufferEntry], entry_count: u64, ordered: bool) -> Result<(), FormatError> {
    let values =
        |role, widths| Expected { role, kind: Kind::Values, widths, limb: 0, value_count: Some(entry_count) };
    let bytes = Expected { role: Role::Bytes, kind: Kind::Bytes, widths: &[8], limb: 0, value_count: None };
    let mut all = vec![values(Role::Ends, &[32, 64]), bytes];
    if !ordered {
        all.push(values(Role::Rank, &[32]));
    }
    let (found, wanted) = (buffers.len() as u64, all.len() as u64);
    if found != wanted {
        return Err(FormatError::Mismatch {
            what: "dictionary",
            field: "buffer_count",
            found,
            expected: wanted,
        });
    }
    all.iter().zip(buffers).try_for_each(|(expected, entry)| check(expected, entry))
}
