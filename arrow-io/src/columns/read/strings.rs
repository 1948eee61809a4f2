//! Strings and binary values: from ends and bytes, or from codes.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::downcast_integer;
use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BinaryViewArray, DictionaryArray, GenericByteArray, PrimitiveArray,
    StringViewArray, UInt32Array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowNativeType, BinaryType, ByteArrayType, DataType, LargeBinaryType,
    LargeUtf8Type, Utf8Type,
};
use codec_core::Value;
use format_spec::{BufferEntry, Encoding};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

use super::buffers::check_dictionary;
use super::{Budget, ChunkReader, Slots, build, restore};
use crate::columns::tree::Node;
use crate::error::TableError;

/// Bytes of a slot's length while it is decoded.
const LENGTH_BYTES: u64 = 8;

/// Bytes of a slot's offset in an array.
pub(super) const OFFSET_BYTES: u64 = 8;

/// Bytes of a slot's view in an array.
const VIEW_BYTES: u64 = 16;

/// Bytes of a dictionary's entry besides its own: its end, length, offset and view.
const DICTIONARY_ENTRY_BYTES: u64 = 40;

/// Bytes of memory that a dictionary gets without being charged for each of its bytes in the file.
const EARNED_BYTES: u64 = 16;

/// Bytes of a slot that names an entry of a dictionary: its code, and its key, offset or view.
const CODED_SLOT_BYTES: u64 = 4 + 16;

/// Bytes that a copy of a dictionary's entry moves at once; most entries are shorter.
const SPAN: usize = 16;

/// Longest dictionary of which every entry can be copied so.
const PADDED_BYTES: usize = 64 << 10;

/// In place of a code where there is no value.
const NO_ENTRY: u32 = u32::MAX;

/// Where slots are in the bytes or child slots that their ends count.
pub(super) struct Extents {
    /// Each slot's length.
    pub lengths: Vec<u64>,
    /// The slots' extents, neighbours joined, without empty ones.
    pub ranges: Vec<Range<u64>>,
    /// The last slot's end.
    pub end: u64,
}

impl ChunkReader<'_> {
    /// The strings of a node, in the field's type.
    pub(super) fn strings(&self, node: &Node, slots: Slots<'_>) -> Result<ArrayRef, TableError> {
        if slots.chunk.encoding == Encoding::Dictionary as u8 {
            return self.coded_strings(node, &slots);
        }
        let array = match (slots.buffers.first(), slots.buffers.second()) {
            (Some(ends), Some(bytes)) => {
                let extents = self.slot_extents(node, ends, slots.ranges, bytes.value_count.get())?;
                let whole = slots.reach_the_end();
                self.check_covered(node, whole, extents.end, bytes.value_count.get())?;
                let bytes = self.decode::<u8>(node, bytes, &extents.ranges)?;
                byte_array(node, &extents.lengths, bytes, slots.nulls, self)?
            }
            _ => arrow::array::new_empty_array(&node.data_type),
        };
        restore::restore(node, node.field.data_type(), array, self.budget)
    }

    /// Where the slots of `ranges` are in what the ends count; all of it below `limit`.
    pub(super) fn slot_extents(
        &self,
        node: &Node,
        ends: &BufferEntry,
        ranges: &[Range<u64>],
        limit: u64,
    ) -> Result<Extents, TableError> {
        // A slot begins where the one before it ends.
        let with_start = |range: &Range<u64>| range.start.saturating_sub(1)..range.end;
        let wanted: Vec<Range<u64>> =
            ranges.iter().filter(|range| !range.is_empty()).map(with_start).collect();
        let decoded = self.ends(node, ends, &wanted)?;
        self.budget.charge(node, decoded.len() as u64 * LENGTH_BYTES)?;
        let mut extents = Extents { lengths: Vec::with_capacity(decoded.len()), ranges: Vec::new(), end: 0 };
        let mut rest = decoded.as_slice();
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            let before = usize::from(range.start > 0);
            let slots = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
            let (mine, behind) = rest.split_at_checked(slots.saturating_add(before)).unwrap_or((rest, &[]));
            rest = behind;
            let (start, mine) = if before == 1 {
                mine.split_first().map_or((0, mine), |(first, mine)| (*first, mine))
            } else {
                (0, mine)
            };
            let mut end = start;
            for &next in mine {
                if next < end || next > limit {
                    return Err(
                        self.impossible(node, format!("an end of {next} after {end}, of {limit} in all"))
                    );
                }
                extents.lengths.push(next - end);
                end = next;
            }
            extents.end = end;
            match extents.ranges.last_mut() {
                _ if end == start => {}
                Some(last) if last.end == start => last.end = end,
                _ => extents.ranges.push(start..end),
            }
        }
        Ok(extents)
    }

    /// Where a whole row group is read, nothing may lie behind the last end.
    pub(super) fn check_covered(
        &self,
        node: &Node,
        whole: bool,
        end: u64,
        limit: u64,
    ) -> Result<(), TableError> {
        if whole && end != limit {
            return Err(self.impossible(node, format!("the ends stop at {end} of {limit}")));
        }
        Ok(())
    }

    fn ends(&self, node: &Node, entry: &BufferEntry, ranges: &[Range<u64>]) -> Result<Vec<u64>, TableError> {
        if entry.value_width == 64 {
            return self.decode(node, entry, ranges);
        }
        let narrow = self.decode::<u32>(node, entry, ranges)?;
        self.budget.charge(node, narrow.len() as u64 * LENGTH_BYTES)?;
        Ok(narrow.into_iter().map(u64::from).collect())
    }

    fn coded_strings(&self, node: &Node, slots: &Slots<'_>) -> Result<ArrayRef, TableError> {
        let Some(entry) = slots.buffers.first() else {
            return Ok(arrow::array::new_empty_array(node.field.data_type()));
        };
        let values = self.dictionary(node, slots.chunk.dictionary.get())?;
        // What names the entries by the codes: keys, offsets or views.
        self.budget.charge(node, (slots.length as u64).saturating_mul(CODED_SLOT_BYTES))?;
        match entry.value_width {
            8 => self.named_by_codes::<u8>(node, entry, slots, &values),
            16 => self.named_by_codes::<u16>(node, entry, slots, &values),
            _ => self.named_by_codes::<u32>(node, entry, slots, &values),
        }
    }

    fn named_by_codes<V: Value>(
        &self,
        node: &Node,
        entry: &BufferEntry,
        slots: &Slots<'_>,
        values: &ArrayRef,
    ) -> Result<ArrayRef, TableError> {
        let codes = self.decode::<V>(node, entry, slots.ranges)?;
        let largest = codes.iter().copied().max().unwrap_or_default().to_u32();
        if !codes.is_empty() && largest as usize >= values.len() {
            let reason = format!("code {largest} of a dictionary of {} entries", values.len());
            return Err(self.impossible(node, reason));
        }
        if let DataType::Dictionary(key, plain) = node.field.data_type()
            && **plain == node.data_type
            && let Some(array) = keyed(key, &codes, largest, slots.nulls.as_ref(), values)
        {
            return Ok(array);
        }
        let array = match &node.data_type {
            DataType::Utf8 => self.copies::<Utf8Type, V>(node, &codes, slots, values)?,
            DataType::LargeUtf8 => self.copies::<LargeUtf8Type, V>(node, &codes, slots, values)?,
            DataType::Binary => self.copies::<BinaryType, V>(node, &codes, slots, values)?,
            DataType::LargeBinary => self.copies::<LargeBinaryType, V>(node, &codes, slots, values)?,
            _ => {
                let codes = UInt32Array::new(codes.into_iter().map(V::to_u32).collect(), slots.nulls.clone());
                arrow::compute::take(values, &codes, None)
                    .map_err(|source| TableError::Arrow { column: node.path.clone(), source })?
            }
        };
        restore::restore(node, node.field.data_type(), array, self.budget)
    }

    /// An array of copies of the entries, empty ones under nulls.
    fn copies<T: ByteArrayType, V: Value>(
        &self,
        node: &Node,
        codes: &[V],
        slots: &Slots<'_>,
        entries: &ArrayRef,
    ) -> Result<ArrayRef, TableError>
    where
        T::Offset: FromBytes + IntoBytes + KnownLayout,
    {
        let entries = entries.as_bytes::<T>();
        let Some(nulls) = &slots.nulls else {
            let (offsets, bytes) = self.copied(node, codes.iter().map(|code| code.to_u32()), entries)?;
            return byte_array_of::<T>(node, offsets, bytes, None);
        };
        let codes = codes.iter().zip(nulls).map(|(code, valid)| if valid { code.to_u32() } else { NO_ENTRY });
        let (offsets, bytes) = self.copied(node, codes, entries)?;
        byte_array_of::<T>(node, offsets, bytes, Some(nulls.clone()))
    }

    /// Offsets and bytes of copies of the entries.
    fn copied<T: ByteArrayType>(
        &self,
        node: &Node,
        codes: impl ExactSizeIterator<Item = u32> + Clone,
        entries: &GenericByteArray<T>,
    ) -> Result<(Buffer, Buffer), TableError>
    where
        T::Offset: FromBytes + IntoBytes + KnownLayout,
    {
        let (ends, data) = (entries.value_offsets(), entries.value_data());
        let extent = |code: u32| {
            let index = code as usize;
            match ends.get(index..index.saturating_add(2)) {
                Some(&[start, end]) => (start.as_usize(), (end - start).as_usize()),
                _ => (0, 0),
            }
        };
        // Charged before it is allocated: a code of one byte can name an entry of megabytes.
        let total = codes.clone().fold(0_u64, |sum, code| sum.saturating_add(extent(code).1 as u64));
        check_offsets(node, total)?;
        self.budget.charge(node, total)?;
        let mut bytes = self.memory.room(usize::try_from(total).unwrap_or(usize::MAX));
        let mut offsets = self.memory.room((codes.len() + 1).saturating_mul(size_of::<T::Offset>()));
        copy_entries(data, codes.map(extent), bytes.values_mut(), offsets.values_mut::<T::Offset>());
        Ok((offsets.into_buffer(), bytes.into_buffer()))
    }

    /// The entries of the dictionary that the column itself has in this row group.
    ///
    /// # Errors
    /// It has none, or it is damaged.
    pub fn column_dictionary(&self) -> Result<ArrayRef, TableError> {
        let node = &self.column.node;
        self.dictionary(node, self.chunk(node)?.dictionary.get())
    }

    /// The entries of a dictionary as an array of the node's plain type; decoded once a column.
    fn dictionary(&self, node: &Node, index: u32) -> Result<ArrayRef, TableError> {
        let position = index as usize;
        let (Some(cell), Some(entry)) =
            (self.column.dictionaries.get(position), self.column.section.dictionaries.get(position))
        else {
            return Err(self.impossible(node, format!("no dictionary {index}")));
        };
        if entry.node.get() != node.index {
            return Err(self.impossible(node, format!("dictionary {index} belongs to another node")));
        }
        let buffers = self.column.section.dictionary_buffers(entry);
        let entry_count = entry.entry_count.get();
        check_dictionary(buffers, entry_count, entry.is_ordered())
            .map_err(|source| self.refuse(node, source))?;
        self.charge_dictionary(node, buffers, entry_count)?;
        if let Some(values) = cell.get() {
            return Ok(values.clone());
        }
        // What it takes is charged above.
        let reader = ChunkReader { budget: &Budget::new(u64::MAX), ..*self };
        let values = reader.dictionary_values(node, buffers, entry_count).map_err(of_dictionary)?;
        Ok(cell.get_or_init(|| values).clone())
    }

    /// Charges what a dictionary takes beyond what its bytes in the file have earned. As it stays in memory it is charged again whenever it is used: else the
    /// dictionaries of many columns could each be within the limit.
    fn charge_dictionary(
        &self,
        node: &Node,
        buffers: &[BufferEntry],
        entry_count: u64,
    ) -> Result<(), TableError> {
        let blocks = buffers.iter().flat_map(|buffer| self.column.section.buffer_blocks(buffer));
        let stored: u64 = blocks.map(|block| u64::from(block.block_bytes.get())).sum();
        let bytes = buffers.get(1).map_or(0, |bytes| bytes.value_count.get());
        let taken = entry_count.saturating_mul(DICTIONARY_ENTRY_BYTES).saturating_add(bytes);
        self.budget.charge(node, taken.saturating_sub(stored.saturating_mul(EARNED_BYTES)))
    }

    fn dictionary_values(
        &self,
        node: &Node,
        buffers: &[BufferEntry],
        entry_count: u64,
    ) -> Result<ArrayRef, TableError> {
        let (Some(ends), Some(bytes)) = (buffers.first(), buffers.get(1)) else {
            return Ok(arrow::array::new_empty_array(&node.data_type));
        };
        let extents = self.slot_extents(node, ends, &[0..entry_count], bytes.value_count.get())?;
        self.check_covered(node, true, extents.end, bytes.value_count.get())?;
        let mut bytes = self.decode::<u8>(node, bytes, &extents.ranges)?;
        // Copies of entries read this much from any entry's start. Of a large dictionary few entries are so near its end, and it is not copied for them.
        if bytes.len() <= PADDED_BYTES {
            bytes.extend_from_slice(&[0; SPAN]);
        }
        byte_array(node, &extents.lengths, bytes, None, self)
    }

    /// The ranks of a dictionary whose entries do not ascend, proven to be a permutation that sorts them.
    ///
    /// # Errors
    /// A rank that is none, or entries that are not distinct or not in the order that they claim.
    pub fn check_dictionary_order(&self, node: &Node, index: u32) -> Result<(), TableError> {
        let values = self.dictionary(node, index)?;
        let Some(entry) = self.column.section.dictionaries.get(index as usize) else { return Ok(()) };
        let buffers = self.column.section.dictionary_buffers(entry);
        let count = values.len();
        let mut codes: Vec<Option<usize>> = vec![None; count];
        match buffers.get(2) {
            None => codes = (0..count).map(Some).collect(),
            Some(rank) => {
                let ranks = self.decode::<u32>(node, rank, &[0..count as u64]).map_err(of_dictionary)?;
                for (code, rank) in ranks.into_iter().enumerate() {
                    match codes.get_mut(rank as usize) {
                        Some(place @ None) => *place = Some(code),
                        _ => {
                            let reason = format!("rank {rank} is no permutation");
                            return Err(of_dictionary(self.impossible(node, reason)));
                        }
                    }
                }
            }
        }
        let codes: Vec<usize> = codes.into_iter().flatten().collect();
        let ascends = |pair: &[usize]| match pair {
            [left, right] => value_bytes(&values, *left) < value_bytes(&values, *right),
            _ => true,
        };
        if codes.windows(2).all(ascends) {
            return Ok(());
        }
        Err(of_dictionary(self.impossible(node, "its entries do not ascend as it claims".into())))
    }
}

/// What is wrong with a dictionary is wrong in every row group: its place is the dictionary, not the row group that was read.
fn of_dictionary(error: TableError) -> TableError {
    let place = "dictionary".to_owned();
    match error {
        TableError::Buffer { column, role, source, .. } => TableError::Buffer { column, place, role, source },
        TableError::Values { column, reason, .. } => TableError::Values { column, place, reason },
        other => other,
    }
}

fn value_bytes(values: &ArrayRef, index: usize) -> &[u8] {
    match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().value(index).as_bytes(),
        DataType::LargeUtf8 => values.as_string::<i64>().value(index).as_bytes(),
        DataType::Utf8View => values.as_string_view().value(index).as_bytes(),
        DataType::Binary => values.as_binary::<i32>().value(index),
        DataType::LargeBinary => values.as_binary::<i64>().value(index),
        _ => values.as_binary_view().value(index),
    }
}

/// An array of the node's plain type from its slots' lengths and bytes; strings are proven to be UTF-8.
fn byte_array(
    node: &Node,
    lengths: &[u64],
    bytes: Vec<u8>,
    nulls: Option<NullBuffer>,
    reader: &ChunkReader<'_>,
) -> Result<ArrayRef, TableError> {
    let (data_type, view) = match &node.data_type {
        DataType::Utf8View => (DataType::LargeUtf8, true),
        DataType::BinaryView => (DataType::LargeBinary, true),
        other => (other.clone(), false),
    };
    let slot_bytes = if view { OFFSET_BYTES + VIEW_BYTES } else { OFFSET_BYTES };
    reader.budget.charge(node, lengths.len() as u64 * slot_bytes)?;
    let offsets = match data_type {
        DataType::Utf8 | DataType::Binary => narrow_offsets(node, lengths)?,
        _ => wide_offsets(lengths),
    };
    let data = ArrayData::builder(data_type).len(lengths.len()).nulls(nulls);
    let array = build(node, data.add_buffer(offsets).add_buffer(Buffer::from_vec(bytes)))?;
    Ok(match (&node.data_type, view) {
        (DataType::Utf8View, true) => Arc::new(StringViewArray::from(array.as_string::<i64>())),
        (DataType::BinaryView, true) => Arc::new(BinaryViewArray::from(array.as_binary::<i64>())),
        _ => array,
    })
}

/// Arrow's 32-bit offsets of slots of these lengths.
pub(super) fn narrow_offsets(node: &Node, lengths: &[u64]) -> Result<Buffer, TableError> {
    let total = lengths.iter().fold(0_u64, |sum, &length| sum.saturating_add(length));
    check_offsets(node, total)?;
    let mut end = 0_i32;
    let offsets = std::iter::once(0).chain(lengths.iter().map(|&length| {
        // The total fits, so every part does.
        end = end.saturating_add(i32::try_from(length).unwrap_or(i32::MAX));
        end
    }));
    Ok(Buffer::from_vec(offsets.collect::<Vec<i32>>()))
}

/// Arrow's 64-bit offsets of slots of these lengths.
pub(super) fn wide_offsets(lengths: &[u64]) -> Buffer {
    let mut end = 0_i64;
    let offsets = std::iter::once(0).chain(lengths.iter().map(|&length| {
        end = end.saturating_add_unsigned(length);
        end
    }));
    Buffer::from_vec(offsets.collect::<Vec<i64>>())
}

/// One array of a type with 32-bit offsets holds less than 2 GiB; fewer rows at once hold less.
fn check_offsets(node: &Node, needed_bytes: u64) -> Result<(), TableError> {
    const LIMIT: u64 = i32::MAX as u64;
    let narrow =
        matches!(node.data_type, DataType::Utf8 | DataType::Binary | DataType::List(_) | DataType::Map(..));
    if narrow && needed_bytes > LIMIT {
        return Err(TableError::Memory { column: node.path.clone(), needed_bytes, limit: LIMIT });
    }
    Ok(())
}

/// Copies the parts of `data` that start and length name, one after the other, into `bytes`, and writes where each begins and the last ends.
fn copy_entries<O: ArrowNativeType>(
    data: &[u8],
    extents: impl Iterator<Item = (usize, usize)>,
    bytes: &mut [u8],
    offsets: &mut [O],
) {
    let mut position = 0;
    let Some((first, ends)) = offsets.split_first_mut() else { return };
    *first = O::default();
    for ((start, length), end) in extents.zip(ends) {
        let span = data.get(start..).and_then(<[u8]>::first_chunk::<SPAN>);
        let place = bytes.get_mut(position..).and_then(<[u8]>::first_chunk_mut::<SPAN>);
        if let (Some(span), Some(place), true) = (span, place, length <= SPAN) {
            // One instruction, whatever the length: what is too much, the next copy overwrites.
            *place = *span;
        } else if let (Some(value), Some(place)) =
            (data.get(start..start + length), bytes.get_mut(position..position + length))
        {
            place.copy_from_slice(value);
        }
        position += length;
        // The total fits, so every part does.
        *end = O::from_usize(position).unwrap_or_default();
    }
}

/// A byte array of offsets and bytes; strings are proven to be UTF-8.
fn byte_array_of<T: ByteArrayType>(
    node: &Node,
    offsets: Buffer,
    bytes: Buffer,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, TableError> {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let array = GenericByteArray::<T>::try_new(offsets, bytes, nulls);
    array
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|source| TableError::Arrow { column: node.path.clone(), source })
}

/// A dictionary array with the codes, of which `largest` is the largest, as keys of type `key`; `None` where they do not fit.
fn keyed<V: Value>(
    key: &DataType,
    codes: &[V],
    largest: u32,
    nulls: Option<&NullBuffer>,
    values: &ArrayRef,
) -> Option<ArrayRef> {
    fn of<K: ArrowDictionaryKeyType, V: Value>(
        codes: &[V],
        largest: u32,
        nulls: Option<&NullBuffer>,
        values: &ArrayRef,
    ) -> Option<ArrayRef>
    where
        K::Native: TryFrom<u32>,
    {
        K::Native::try_from(largest).ok()?;
        // As the largest fits, all do.
        let keys = codes.iter().map(|&code| K::Native::try_from(code.to_u32()).unwrap_or_default());
        let keys = PrimitiveArray::<K>::new(keys.collect(), nulls.cloned());
        Some(Arc::new(DictionaryArray::<K>::try_new(keys, values.clone()).ok()?))
    }
    macro_rules! of_key {
        ($key:ty) => {
            of::<$key, V>(codes, largest, nulls, values)
        };
    }
    downcast_integer! {
        key => (of_key),
        _ => None,
    }
}
