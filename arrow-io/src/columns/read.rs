//! Blocks decoded into arrays.

mod buffers;
mod memory;
mod nested;
mod restore;
mod strings;

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{ArrayData, ArrayDataBuilder, ArrayRef, BooleanArray, NullArray, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::DataType;
use codec_core::{BufferError, Registry, Value, decode_ranges, take};
use container::{BufferReader, ContainerError, ContainerReader};
use format_spec::{BufferEntry, ColumnSection, FormatError, NodeChunk, Role};
use std::sync::Arc;

use self::buffers::NodeBuffers;
pub use self::memory::{Memory, Room};
use super::tree::{Limb, Node, Shape};
use crate::error::TableError;

/// The name of a role in messages and reports.
#[must_use]
pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Validity => "validity",
        Role::Ends => "ends",
        Role::Values => "values",
        Role::Bytes => "bytes",
        Role::Codes => "codes",
        Role::TypeIds => "type ids",
        Role::Rank => "rank",
    }
}

/// A column whose section is read: what its row groups and dictionaries are decoded from.
#[derive(Debug)]
pub struct LoadedColumn {
    /// The type tree.
    pub node: Node,
    /// Where everything is.
    pub section: ColumnSection,
    /// The dictionaries' entries as arrays, decoded when first needed.
    dictionaries: Vec<OnceLock<ArrayRef>>,
}

impl LoadedColumn {
    /// A column of the tree `node` and the section `section`.
    ///
    /// # Errors
    /// The section has another number of nodes than the tree, or a dictionary of a node that can have none, or has one already.
    pub fn new(node: Node, section: ColumnSection) -> Result<Self, TableError> {
        let (found, expected) = (section.node_count.into(), node.preorder().len() as u64);
        if found != expected {
            let source =
                FormatError::Mismatch { what: "column section", field: "node_count", found, expected };
            return Err(TableError::Section { column: node.path, source: ContainerError::Format(source) });
        }
        if let Err(source) = check_dictionary_nodes(&node, &section) {
            return Err(TableError::Section { column: node.path, source: ContainerError::Format(source) });
        }
        let dictionaries = section.dictionaries.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { node, section, dictionaries })
    }
}

/// Only strings and binary values have dictionaries, and each node at most one.
fn check_dictionary_nodes(node: &Node, section: &ColumnSection) -> Result<(), FormatError> {
    let mut may_have_one: Vec<bool> = node.preorder().iter().map(|node| node.shape == Shape::Bytes).collect();
    for entry in &section.dictionaries {
        let found = entry.node.get();
        match usize::try_from(found).ok().and_then(|index| may_have_one.get_mut(index)) {
            Some(may) if *may => *may = false,
            _ => return Err(FormatError::Field { what: "dictionary", field: "node", found: found.into() }),
        }
    }
    Ok(())
}

/// Bytes that decoding may still allocate. What a file claims is charged before memory is asked for: what is kept until the array is whole in full, what is dropped
/// before in part, so that all of it together stays below about twice the limit.
#[derive(Debug)]
pub struct Budget {
    left: AtomicU64,
    limit: u64,
}

impl Budget {
    /// A budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { left: AtomicU64::new(limit), limit }
    }

    /// Takes `bytes` for a node.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn charge(&self, node: &Node, bytes: u64) -> Result<(), TableError> {
        let taken =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        let needed_bytes = bytes;
        taken.map(drop).map_err(|_| TableError::Memory {
            column: node.path.clone(),
            needed_bytes,
            limit: self.limit,
        })
    }
}

/// One column in one row group.
#[derive(Debug, Clone, Copy)]
pub struct ChunkReader<'a> {
    /// The file.
    pub container: &'a ContainerReader,
    /// The codecs.
    pub registry: &'a Registry,
    /// The column.
    pub column: &'a LoadedColumn,
    /// Index of the row group.
    pub row_group: u32,
    /// What decoding may allocate.
    pub budget: &'a Budget,
    /// What large arrays are decoded into.
    pub memory: &'a Arc<Memory>,
}

impl<'a> ChunkReader<'a> {
    /// Decodes the slots of `ranges`, one after the other, as one array of the field's type.
    ///
    /// # Errors
    /// Slots that do not exist, buffers that are not the type's, blocks that cannot be read or decoded, values that are impossible, or more memory than the
    /// budget.
    pub fn read(&self, ranges: &[Range<u64>], slot_count: u64) -> Result<ArrayRef, TableError> {
        self.node(&self.column.node, ranges, slot_count)
    }

    /// As [`ChunkReader::read`] for one node, which must have `slot_count` slots.
    fn node(&self, node: &Node, ranges: &[Range<u64>], slot_count: u64) -> Result<ArrayRef, TableError> {
        let chunk = self.chunk(node)?;
        let found = chunk.slot_count.get();
        if found != slot_count {
            let field = "slot_count";
            return Err(self.refuse(
                node,
                FormatError::Mismatch { what: "node chunk", field, found, expected: slot_count },
            ));
        }
        if let Some(range) = ranges.iter().find(|range| range.end > slot_count || range.start > range.end) {
            return Err(TableError::NoRow { row: range.end.saturating_sub(1), row_count: slot_count });
        }
        let buffers = NodeBuffers::parse(node, chunk, self.column.section.chunk_buffers(chunk))
            .map_err(|source| self.refuse(node, source))?;
        let length = self.length(node, ranges)?;
        let nulls = self.nulls(node, chunk, &buffers, ranges, length)?;
        let slots = Slots { chunk, buffers: &buffers, ranges, length, nulls };
        let array = match &node.shape {
            Shape::Bytes => return self.strings(node, slots),
            Shape::Null => Arc::new(NullArray::new(length)),
            Shape::Boolean => self.booleans(node, slots)?,
            Shape::Limbs(limbs) => self.limbs(node, limbs, slots)?,
            Shape::FixedBytes(stride) => self.fixed_bytes(node, *stride, slots)?,
            Shape::List => self.list(node, slots)?,
            Shape::FixedList(size) => self.fixed_list(node, *size, slots)?,
            Shape::Struct => self.structs(node, slots)?,
            Shape::SparseUnion(ids) => self.sparse_union(node, ids, slots)?,
            Shape::DenseUnion(ids) => self.dense_union(node, ids, slots)?,
        };
        restore::restore(node, node.field.data_type(), array, self.budget)
    }

    fn chunk(&self, node: &Node) -> Result<&'a NodeChunk, TableError> {
        let missing =
            FormatError::Field { what: "column section", field: "row_group", found: self.row_group.into() };
        self.column.section.node_chunk(self.row_group, node.index).ok_or_else(|| self.refuse(node, missing))
    }

    /// Slots in all ranges together.
    fn length(&self, node: &Node, ranges: &[Range<u64>]) -> Result<usize, TableError> {
        let length = ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.end - range.start));
        usize::try_from(length)
            .map_err(|_| self.impossible(node, format!("{length} slots do not fit into memory")))
    }

    fn nulls(
        &self,
        node: &Node,
        chunk: &NodeChunk,
        buffers: &NodeBuffers<'_>,
        ranges: &[Range<u64>],
        length: usize,
    ) -> Result<Option<NullBuffer>, TableError> {
        let Some(validity) = buffers.validity else { return Ok(None) };
        let bits = self.bits(node, validity, ranges, Role::Validity)?;
        let nulls = NullBuffer::new(bits);
        let whole = length as u64 == chunk.slot_count.get();
        if whole && nulls.null_count() as u64 != chunk.null_count.get() {
            let reason = format!(
                "validity has {} nulls, null_count is {}",
                nulls.null_count(),
                chunk.null_count.get()
            );
            return Err(self.impossible(node, reason));
        }
        Ok(Some(nulls))
    }

    /// Values of 8 bits that are 0 or 1, as bits.
    fn bits(
        &self,
        node: &Node,
        entry: &BufferEntry,
        ranges: &[Range<u64>],
        role: Role,
    ) -> Result<BooleanBuffer, TableError> {
        let values: Vec<u8> = self.decode(node, entry, ranges)?;
        if let Some(value) = values.iter().find(|&&value| value > 1) {
            return Err(self.impossible(node, format!("{} of {value}, neither 0 nor 1", role_name(role))));
        }
        Ok(BooleanBuffer::collect_bool(values.len(), |index| values.get(index) == Some(&1)))
    }

    fn booleans(&self, node: &Node, slots: Slots<'_>) -> Result<ArrayRef, TableError> {
        let bits = match slots.buffers.first() {
            Some(entry) => self.bits(node, entry, slots.ranges, Role::Values)?,
            None => BooleanBuffer::new_unset(0),
        };
        Ok(Arc::new(BooleanArray::new(bits, slots.nulls)))
    }

    fn limbs(&self, node: &Node, limbs: &[Limb], slots: Slots<'_>) -> Result<ArrayRef, TableError> {
        let buffer = match (limbs, slots.buffers.content()) {
            ([limb], [entry]) => self.single_limb(node, limb, entry, slots.ranges)?,
            (_, entries) => self.joined_limbs(node, limbs, entries, &slots)?,
        };
        build(node, slots.data(node).add_buffer(buffer))
    }

    /// The values of a type of one limb: decoded straight into the array's buffer.
    fn single_limb(
        &self,
        node: &Node,
        limb: &Limb,
        entry: &BufferEntry,
        ranges: &[Range<u64>],
    ) -> Result<Buffer, TableError> {
        Ok(match limb.width {
            8 => self.decode_room::<u8>(node, entry, ranges)?.into_buffer(),
            16 => self.decode_room::<u16>(node, entry, ranges)?.into_buffer(),
            32 => self.decode_room::<u32>(node, entry, ranges)?.into_buffer(),
            _ => self.decode_room::<u64>(node, entry, ranges)?.into_buffer(),
        })
    }

    fn joined_limbs(
        &self,
        node: &Node,
        limbs: &[Limb],
        entries: &[&BufferEntry],
        slots: &Slots<'_>,
    ) -> Result<Buffer, TableError> {
        if let ([Limb { width: 64, offset: 0, .. }, Limb { width: 64, offset: 8, .. }], [low, high]) =
            (limbs, entries)
            && node.value_bytes() == 16
        {
            let low = self.decode_room::<u64>(node, low, slots.ranges)?;
            let high = self.decode_room::<u64>(node, high, slots.ranges)?;
            let total = slots.length.saturating_mul(16);
            self.budget.charge(node, total as u64)?;
            let mut wide = self.memory.room(total);
            let halves = low.values::<u64>().iter().zip(high.values::<u64>());
            for (wide, (&low, &high)) in wide.values_mut::<u128>().iter_mut().zip(halves) {
                *wide = u128::from(high) << 64 | u128::from(low);
            }
            return Ok(wide.into_buffer());
        }
        let stride = node.value_bytes();
        let total = slots.length.saturating_mul(stride);
        self.budget.charge(node, total as u64)?;
        let mut bytes = vec![0; total];
        for (limb, entry) in limbs.iter().zip(entries) {
            match limb.width {
                8 => place(&mut bytes, stride, limb, &self.decode::<u8>(node, entry, slots.ranges)?),
                16 => place(&mut bytes, stride, limb, &self.decode::<u16>(node, entry, slots.ranges)?),
                32 => place(&mut bytes, stride, limb, &self.decode::<u32>(node, entry, slots.ranges)?),
                _ => place(&mut bytes, stride, limb, &self.decode::<u64>(node, entry, slots.ranges)?),
            }
        }
        Ok(Buffer::from_vec(bytes))
    }

    fn fixed_bytes(&self, node: &Node, stride: usize, slots: Slots<'_>) -> Result<ArrayRef, TableError> {
        let stride = stride as u64;
        let scaled =
            |range: &Range<u64>| range.start.saturating_mul(stride)..range.end.saturating_mul(stride);
        let ranges: Vec<Range<u64>> = slots.ranges.iter().map(scaled).collect();
        let bytes = match slots.buffers.first() {
            Some(entry) => self.decode::<u8>(node, entry, &ranges)?,
            None => Vec::new(),
        };
        build(node, slots.data(node).add_buffer(Buffer::from_vec(bytes)))
    }

    /// The values of `ranges` of a buffer, one after the other.
    fn decode<V: Value>(
        &self,
        node: &Node,
        entry: &BufferEntry,
        ranges: &[Range<u64>],
    ) -> Result<Vec<V>, TableError> {
        let length = self.charged_length::<V>(node, ranges)?;
        let mut values = vec![V::default(); length];
        self.decode_into(node, entry, ranges, &mut values)?;
        Ok(values)
    }

    /// As [`ChunkReader::decode`], into memory that is used again.
    fn decode_room<V: Value>(
        &self,
        node: &Node,
        entry: &BufferEntry,
        ranges: &[Range<u64>],
    ) -> Result<Room, TableError> {
        let length = self.charged_length::<V>(node, ranges)?;
        let mut room = self.memory.room(length.saturating_mul(V::BYTES));
        self.decode_into::<V>(node, entry, ranges, room.values_mut())?;
        Ok(room)
    }

    fn charged_length<V: Value>(&self, node: &Node, ranges: &[Range<u64>]) -> Result<usize, TableError> {
        let length = self.length(node, ranges)?;
        self.budget.charge(node, (length as u64).saturating_mul(V::BYTES as u64))?;
        Ok(length)
    }

    fn decode_into<V: Value>(
        &self,
        node: &Node,
        entry: &BufferEntry,
        ranges: &[Range<u64>],
        values: &mut [V],
    ) -> Result<(), TableError> {
        let failed = |source| self.buffer_error(node, entry, source);
        let source = BufferReader::new(self.container, &self.column.section, entry)
            .map_err(|source| failed(BufferError::Read { block_index: 0, source }))?;
        if ranges.len() > 1 && ranges.len() * 4 >= values.len() {
            // Mostly single values: tiles are decoded once for all that are in them.
            let indexes: Vec<u64> = ranges.iter().cloned().flatten().collect();
            take(&source, self.registry, &indexes, values).map_err(failed)
        } else {
            decode_ranges(&source, self.registry, ranges, values).map_err(failed)
        }
    }

    fn buffer_error(
        &self,
        node: &Node,
        entry: &BufferEntry,
        source: BufferError<ContainerError>,
    ) -> TableError {
        let role = Role::parse(entry.role).map_or("buffer", role_name);
        TableError::Buffer { column: node.path.clone(), place: self.place(), role, source: Box::new(source) }
    }

    fn refuse(&self, node: &Node, source: FormatError) -> TableError {
        TableError::Node { column: node.path.clone(), row_group: self.row_group, source }
    }

    fn impossible(&self, node: &Node, reason: String) -> TableError {
        TableError::Values { column: node.path.clone(), place: self.place(), reason }
    }

    fn place(&self) -> String {
        format!("row group {}", self.row_group)
    }
}

/// The slots of a node that are being read.
struct Slots<'a> {
    chunk: &'a NodeChunk,
    buffers: &'a NodeBuffers<'a>,
    ranges: &'a [Range<u64>],
    length: usize,
    nulls: Option<NullBuffer>,
}

impl Slots<'_> {
    /// Whether the last slot of the row group is among them: then nothing may be left of what its ends or ids count.
    fn reach_the_end(&self) -> bool {
        self.ranges.last().is_some_and(|range| range.end == self.chunk.slot_count.get() && !range.is_empty())
    }

    /// The beginning of an array of the node's plain type.
    fn data(&self, node: &Node) -> ArrayDataBuilder {
        self.data_of(node.data_type.clone())
    }

    fn data_of(&self, data_type: DataType) -> ArrayDataBuilder {
        ArrayData::builder(data_type).len(self.length).nulls(self.nulls.clone()).align_buffers(true)
    }
}

/// The array, after Arrow has validated all of it.
fn build(node: &Node, data: ArrayDataBuilder) -> Result<ArrayRef, TableError> {
    data.build().map(make_array).map_err(|source| TableError::Arrow { column: node.path.clone(), source })
}

/// Puts a limb's values into their place in the wide values.
fn place<V: Value>(bytes: &mut [u8], stride: usize, limb: &Limb, values: &[V]) {
    for (wide, value) in bytes.chunks_exact_mut(stride.max(1)).zip(values) {
        if let Some(place) = wide.get_mut(limb.offset..limb.offset + V::BYTES) {
            place.copy_from_slice(value.as_bytes());
        }
    }
}
