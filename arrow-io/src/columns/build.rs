//! Batches of arrays collected into the values of one row group's buffers.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, GenericBinaryArray, OffsetSizeTrait, StringViewArray,
    UInt32Array, UnionArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int16Type, Int32Type, Int64Type};
use codec_core::statistics::is_nan;
use codec_core::{Order, OwnedValues, Value, with_values};
use zerocopy::FromBytes;

use super::dictionary::{DictionaryLimits, StringDictionary, is_same};
use super::gather::take_slots;
use super::tree::{Limb, Node, Shape};
use crate::error::TableError;

/// What one node has collected in the present row group.
#[derive(Debug)]
pub struct NodeBuilder {
    /// Slots so far.
    pub slot_count: u64,
    /// Nulls so far; a union has none of its own.
    pub null_count: u64,
    /// NaN values so far.
    pub nan_count: u64,
    /// What Arrow's own buffers of these slots would take.
    pub arrow_bytes: u64,
    /// One value a slot, from the first null on (the slots before it are filled in then).
    pub validity: Vec<u8>,
    /// The values themselves.
    pub content: Content,
    /// The children's builders.
    pub children: Vec<NodeBuilder>,
    /// How strings find their codes; other shapes have none.
    pub coding: Coding,
}

/// The values that a node has collected.
#[derive(Debug)]
pub enum Content {
    /// Null, Struct and FixedSizeList have no values of their own.
    None,
    /// Each limb's values; one for booleans.
    Limbs(Vec<OwnedValues>),
    /// Fixed-width binary values too long for limbs.
    FixedBytes(Vec<u8>),
    /// Strings or binary values.
    Bytes {
        /// Where each slot's bytes end.
        ends: Vec<u64>,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Strings as codes of the node's dictionary.
    Codes(Vec<u32>),
    /// Where each slot's child slots end.
    Ends(Vec<u64>),
    /// Which child each slot of a union is in.
    TypeIds(Vec<u8>),
}

/// How strings become codes.
#[derive(Debug, Clone)]
pub enum Coding {
    /// They stay strings.
    Direct,
    /// By a dictionary that was made beforehand; a value that it lacks ends its use.
    Prepared(Arc<StringDictionary>),
    /// By a dictionary that grows with them.
    Growing {
        /// The entries so far, kept from row group to row group.
        dictionary: Box<StringDictionary>,
        /// When to give up.
        limits: DictionaryLimits,
        /// Whether an earlier row group was written with codes, so that the dictionary must stay.
        committed: bool,
    },
}

/// After this many values a growing dictionary whose entries are more than half of them is given up.
const EARLY_LOOK: u64 = 16_384;

impl NodeBuilder {
    /// An empty builder; `coding` gives a string node its dictionary by the node's index.
    pub fn new(node: &Node, coding: &mut dyn FnMut(&Node) -> Coding) -> Self {
        let coding_here = if node.shape == Shape::Bytes { coding(node) } else { Coding::Direct };
        Self {
            slot_count: 0,
            null_count: 0,
            nan_count: 0,
            arrow_bytes: 0,
            validity: Vec::new(),
            content: empty_content(&node.shape, &coding_here),
            children: node.children.iter().map(|child| Self::new(child, coding)).collect(),
            coding: coding_here,
        }
    }

    /// Arrow bytes of this node and all below it.
    #[must_use]
    pub fn total_arrow_bytes(&self) -> u64 {
        self.arrow_bytes + self.children.iter().map(Self::total_arrow_bytes).sum::<u64>()
    }

    /// Bytes that the collected values of this node and all below it take: a boolean, for one, takes more than Arrow's bit.
    #[must_use]
    pub fn total_held_bytes(&self) -> u64 {
        let bytes = match &self.content {
            Content::None => 0,
            Content::Limbs(limbs) => limbs
                .iter()
                .map(|limb| limb.as_values().len() * usize::from(limb.as_values().value_width() / 8))
                .sum(),
            Content::FixedBytes(bytes) => bytes.len(),
            Content::Bytes { ends, bytes } => size_of_val(ends.as_slice()) + bytes.len(),
            Content::Codes(codes) => size_of_val(codes.as_slice()),
            Content::Ends(ends) => size_of_val(ends.as_slice()),
            Content::TypeIds(ids) => ids.len(),
        };
        let below: u64 = self.children.iter().map(Self::total_held_bytes).sum();
        (bytes + self.validity.len()) as u64 + below
    }

    /// Forgets the row group's values and keeps the dictionaries, and the room that the values took, since the next row group needs as much.
    pub fn clear(&mut self, node: &Node) {
        self.slot_count = 0;
        self.null_count = 0;
        self.nan_count = 0;
        self.arrow_bytes = 0;
        self.validity.clear();
        let coded = matches!(self.content, Content::Codes(_));
        if node.shape == Shape::Bytes && coded == matches!(self.coding, Coding::Direct) {
            self.content = empty_content(&node.shape, &self.coding);
        }
        self.content.clear();
        for (child, node) in self.children.iter_mut().zip(&node.children) {
            child.clear(node);
        }
    }

    /// Appends all slots of `array`, whose type is the node's.
    ///
    /// # Errors
    /// Arrow cannot flatten a dictionary or run ends, or their values are null where none may be.
    pub fn append(&mut self, node: &Node, array: &ArrayRef) -> Result<(), TableError> {
        let arrow = |source| TableError::Arrow { column: node.path.clone(), source };
        let declared = array.null_count();
        let array = &flatten(array).map_err(arrow)?;
        // A dictionary or run-end array says nothing of the nulls among its values.
        if !node.field.is_nullable() && array.null_count() > declared {
            return Err(TableError::UnexpectedNull { column: node.path.clone() });
        }
        let nulls = if node.shape == Shape::Null { None } else { array.nulls() };
        self.append_validity(node, array.len(), nulls);
        match &node.shape {
            Shape::Null => Ok(()),
            Shape::Boolean => {
                let bits = array.as_boolean().values();
                self.append_limbs(node, nulls, array.len(), |_, values| {
                    if let OwnedValues::U8(values) = values {
                        values.extend(bits.iter().map(u8::from));
                    }
                });
                Ok(())
            }
            Shape::Limbs(limbs) => {
                let stride = node.value_bytes();
                let data = array.to_data();
                let bytes = fixed_bytes(&data, stride);
                self.append_limbs(node, nulls, array.len(), |index, values| {
                    let Some(limb) = limbs.get(index) else { return };
                    with_values!(OwnedValues, values, values => append_limb(values, bytes, stride, limb));
                });
                Ok(())
            }
            Shape::FixedBytes(stride) => {
                self.arrow_bytes += (array.len() * stride) as u64;
                if let Content::FixedBytes(bytes) = &mut self.content {
                    bytes.extend_from_slice(fixed_bytes(&array.to_data(), *stride));
                }
                Ok(())
            }
            Shape::Bytes => {
                self.append_strings(array, nulls);
                Ok(())
            }
            Shape::List => self.append_list(node, array, nulls),
            Shape::FixedList(_) => {
                self.append_children(node, std::slice::from_ref(array.as_fixed_size_list().values()))
            }
            Shape::Struct => self.append_children(node, array.as_struct().columns()),
            Shape::SparseUnion(ids) | Shape::DenseUnion(ids) => {
                self.append_union(node, array.as_union(), ids)
            }
        }
    }

    fn append_validity(&mut self, node: &Node, length: usize, nulls: Option<&NullBuffer>) {
        let before = self.slot_count;
        self.slot_count += length as u64;
        if node.shape == Shape::Null {
            self.null_count = self.slot_count;
            return;
        }
        let null_count = nulls.map_or(0, NullBuffer::null_count);
        self.arrow_bytes += if null_count > 0 { length.div_ceil(8) as u64 } else { 0 };
        if null_count == 0 && self.null_count == 0 {
            return;
        }
        if self.null_count == 0 {
            // The first null of the row group: the slots before it are all valid.
            self.validity.resize(usize::try_from(before).unwrap_or_default(), 1);
        }
        self.null_count += null_count as u64;
        match nulls {
            Some(nulls) => self.validity.extend(nulls.iter().map(u8::from)),
            None => self.validity.resize(self.validity.len() + length, 1),
        }
    }

    /// Appends each limb's values by `append` and makes those under nulls copies of values that are not.
    fn append_limbs(
        &mut self,
        node: &Node,
        nulls: Option<&NullBuffer>,
        length: usize,
        append: impl Fn(usize, &mut OwnedValues),
    ) {
        let float =
            matches!(&node.shape, Shape::Limbs(limbs) if limbs.iter().any(|limb| limb.order == Order::Float));
        self.arrow_bytes +=
            if node.shape == Shape::Boolean { length.div_ceil(8) } else { length * node.value_bytes() }
                as u64;
        let had_valid = self.slot_count - length as u64
            > self.null_count - nulls.map_or(0, NullBuffer::null_count) as u64;
        let Content::Limbs(limbs) = &mut self.content else { return };
        for (index, values) in limbs.iter_mut().enumerate() {
            let start = values.as_values().len();
            append(index, values);
            with_values!(OwnedValues, values, values => {
                if float {
                    self.nan_count += count_nan(values.get(start..).unwrap_or_default(), nulls);
                }
                fill_nulls(values, start, nulls, had_valid);
            });
        }
    }

    fn append_strings(&mut self, array: &ArrayRef, nulls: Option<&NullBuffer>) {
        match array.data_type() {
            DataType::Utf8 => self.append_byte_values(
                &GenericBinaryArray::<i32>::from(array.as_string::<i32>().clone()),
                nulls,
            ),
            DataType::LargeUtf8 => {
                self.append_byte_values(
                    &GenericBinaryArray::<i64>::from(array.as_string::<i64>().clone()),
                    nulls,
                );
            }
            DataType::Binary => self.append_byte_values(array.as_binary::<i32>(), nulls),
            DataType::LargeBinary => self.append_byte_values(array.as_binary::<i64>(), nulls),
            DataType::Utf8View => {
                let array: &StringViewArray = array.as_string_view();
                self.append_views(array.len(), nulls, |index| array.value(index).as_bytes());
            }
            _ => {
                let array: &BinaryViewArray = array.as_binary_view();
                self.append_views(array.len(), nulls, |index| array.value(index));
            }
        }
    }

    fn append_byte_values<O: OffsetSizeTrait>(
        &mut self,
        array: &GenericBinaryArray<O>,
        nulls: Option<&NullBuffer>,
    ) {
        self.arrow_bytes += (array.len() * size_of::<O>()) as u64;
        self.append_each(array.len(), nulls, |index| array.value(index));
    }

    fn append_views<'a>(
        &mut self,
        length: usize,
        nulls: Option<&NullBuffer>,
        value: impl Fn(usize) -> &'a [u8],
    ) {
        self.arrow_bytes += 16 * length as u64;
        self.append_each(length, nulls, value);
    }

    fn append_each<'a>(
        &mut self,
        length: usize,
        nulls: Option<&NullBuffer>,
        value: impl Fn(usize) -> &'a [u8],
    ) {
        for index in 0..length {
            let valid = nulls.is_none_or(|nulls| nulls.is_valid(index));
            self.append_string(valid.then(|| value(index)));
        }
    }

    /// Appends one string, or an empty slot for a null.
    fn append_string(&mut self, value: Option<&[u8]>) {
        self.arrow_bytes += value.map_or(0, <[u8]>::len) as u64;
        if let Content::Codes(codes) = &mut self.content {
            let Some(value) = value else {
                // A copy of the value before; what comes before the first value is filled in when the row group ends.
                codes.push(codes.last().copied().unwrap_or(u32::MAX));
                return;
            };
            let count = codes.len() as u64;
            // Neighbours are often equal: look at the value before first.
            let same = codes
                .last()
                .copied()
                .filter(|&code| code != u32::MAX && is_same(self.coding.entry(code), value));
            if let Some(code) = same.or_else(|| self.coding.code(value, count)) {
                codes.push(code);
                return;
            }
            self.give_up_codes();
        }
        if let Content::Bytes { ends, bytes } = &mut self.content {
            bytes.extend_from_slice(value.unwrap_or_default());
            ends.push(bytes.len() as u64);
        }
    }

    /// Turns the row group's codes back into strings. The dictionary is dropped for good unless earlier row groups need it.
    pub fn give_up_codes(&mut self) {
        self.give_up_codes_for_now();
        if !self.coding.is_committed() {
            self.coding = Coding::Direct;
        }
    }

    /// Turns the row group's codes back into strings; the next row group tries again.
    pub fn give_up_codes_for_now(&mut self) {
        let Content::Codes(codes) = &self.content else { return };
        let mut ends = Vec::with_capacity(codes.len());
        let mut bytes = Vec::new();
        for (index, &code) in codes.iter().enumerate() {
            let null = self.null_count > 0 && self.validity.get(index) == Some(&0);
            if !null {
                bytes.extend_from_slice(self.coding.entry(code));
            }
            ends.push(bytes.len() as u64);
        }
        self.content = Content::Bytes { ends, bytes };
    }

    fn append_list(
        &mut self,
        node: &Node,
        array: &ArrayRef,
        nulls: Option<&NullBuffer>,
    ) -> Result<(), TableError> {
        let (child, slots, offset_bytes) = list_slots(array);
        self.arrow_bytes += (slots.len() * offset_bytes) as u64;
        let Content::Ends(ends) = &mut self.content else { return Ok(()) };
        let mut end = ends.last().copied().unwrap_or(0);
        // Neighbouring slots that follow each other in the child are copied as one.
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (index, slot) in slots.into_iter().enumerate() {
            let slot = if nulls.is_none_or(|nulls| nulls.is_valid(index)) { slot } else { 0..0 };
            end += slot.len() as u64;
            ends.push(end);
            match runs.last_mut() {
                _ if slot.is_empty() => {}
                Some(run) if run.end == slot.start => run.end = slot.end,
                _ => runs.push(slot),
            }
        }
        for run in runs {
            self.append_children(node, &[child.slice(run.start, run.len())])?;
        }
        Ok(())
    }

    fn append_union(&mut self, node: &Node, array: &UnionArray, ids: &[i8]) -> Result<(), TableError> {
        self.arrow_bytes += array.len() as u64 * if array.offsets().is_some() { 5 } else { 1 };
        if let Content::TypeIds(type_ids) = &mut self.content {
            type_ids.extend(array.type_ids().iter().map(|id| id.cast_unsigned()));
        }
        let children = ids.iter().map(|&id| {
            let child = array.child(id);
            let Some(offsets) = array.offsets() else { return Ok(child.clone()) };
            let chosen = array.type_ids().iter().zip(offsets.iter()).filter(|(other, _)| **other == id);
            let offsets: UInt32Array =
                chosen.map(|(_, &offset)| u32::try_from(offset).unwrap_or(u32::MAX)).collect();
            take_slots(child, &offsets)
        });
        let children: Vec<ArrayRef> = children
            .collect::<Result<_, _>>()
            .map_err(|source| TableError::Arrow { column: node.path.clone(), source })?;
        self.append_children(node, &children)
    }

    fn append_children(&mut self, node: &Node, arrays: &[ArrayRef]) -> Result<(), TableError> {
        for ((builder, child), array) in self.children.iter_mut().zip(&node.children).zip(arrays) {
            builder.append(child, array)?;
        }
        Ok(())
    }
}

impl Content {
    fn clear(&mut self) {
        match self {
            Self::None => {}
            Self::Limbs(limbs) => {
                for values in limbs {
                    with_values!(OwnedValues, values, values => values.clear());
                }
            }
            Self::FixedBytes(bytes) | Self::TypeIds(bytes) => bytes.clear(),
            Self::Bytes { ends, bytes } => {
                ends.clear();
                bytes.clear();
            }
            Self::Codes(codes) => codes.clear(),
            Self::Ends(ends) => ends.clear(),
        }
    }
}

impl Coding {
    fn entry(&self, code: u32) -> &[u8] {
        match self {
            Self::Direct => &[],
            Self::Prepared(dictionary) => dictionary.entry(code),
            Self::Growing { dictionary, .. } => dictionary.entry(code),
        }
    }

    /// The code of the next value, of which there were `count`; `None` where the dictionary cannot or should not take it.
    fn code(&mut self, value: &[u8], count: u64) -> Option<u32> {
        match self {
            Self::Direct => None,
            Self::Prepared(dictionary) => dictionary.code(value),
            Self::Growing { dictionary, limits, committed } => {
                let hopeless = !*committed && count == EARLY_LOOK && dictionary.len() as u64 > EARLY_LOOK / 2;
                if hopeless { None } else { dictionary.insert(value, *limits) }
            }
        }
    }

    /// Keeps a growing dictionary: a row group is written with its codes.
    pub fn commit(&mut self) {
        if let Self::Growing { committed, .. } = self {
            *committed = true;
        }
    }

    fn is_committed(&self) -> bool {
        matches!(self, Self::Prepared(_) | Self::Growing { committed: true, .. })
    }

    /// The dictionary, if there is one.
    #[must_use]
    pub fn dictionary(&self) -> Option<&StringDictionary> {
        match self {
            Self::Direct => None,
            Self::Prepared(dictionary) => Some(dictionary),
            Self::Growing { dictionary, .. } => Some(dictionary),
        }
    }
}

fn empty_content(shape: &Shape, coding: &Coding) -> Content {
    match shape {
        Shape::Null | Shape::Struct | Shape::FixedList(_) => Content::None,
        Shape::Boolean => Content::Limbs(vec![OwnedValues::U8(Vec::new())]),
        Shape::Limbs(limbs) => {
            Content::Limbs(limbs.iter().filter_map(|limb| OwnedValues::zeros(limb.width, 0)).collect())
        }
        Shape::FixedBytes(_) => Content::FixedBytes(Vec::new()),
        Shape::Bytes if matches!(coding, Coding::Direct) => {
            Content::Bytes { ends: Vec::new(), bytes: Vec::new() }
        }
        Shape::Bytes => Content::Codes(Vec::new()),
        Shape::List => Content::Ends(Vec::new()),
        Shape::SparseUnion(_) | Shape::DenseUnion(_) => Content::TypeIds(Vec::new()),
    }
}

/// The values themselves: dictionaries and run ends resolved.
fn flatten(array: &ArrayRef) -> Result<ArrayRef, arrow::error::ArrowError> {
    let array = match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            take_slots(dictionary.values(), dictionary.keys())?
        }
        DataType::RunEndEncoded(run_ends, _) => {
            let indexes = match run_ends.data_type() {
                DataType::Int16 => physical_indexes(array.as_run::<Int16Type>()),
                DataType::Int32 => physical_indexes(array.as_run::<Int32Type>()),
                _ => physical_indexes(array.as_run::<Int64Type>()),
            };
            let values = match run_ends.data_type() {
                DataType::Int16 => array.as_run::<Int16Type>().values(),
                DataType::Int32 => array.as_run::<Int32Type>().values(),
                _ => array.as_run::<Int64Type>().values(),
            };
            take_slots(values, &indexes)?
        }
        _ => return Ok(array.clone()),
    };
    flatten(&array)
}

/// For each slot of a run array, which of its values it has.
fn physical_indexes<R: arrow::datatypes::RunEndIndexType>(array: &arrow::array::RunArray<R>) -> UInt32Array {
    (0..array.len()).map(|slot| u32::try_from(array.get_physical_index(slot)).unwrap_or(u32::MAX)).collect()
}

/// Child, slots and bytes an offset of any kind of list.
fn list_slots(array: &ArrayRef) -> (ArrayRef, Vec<Range<usize>>, usize) {
    fn by_offsets<O: OffsetSizeTrait>(offsets: &[O]) -> Vec<Range<usize>> {
        offsets.windows(2).map(|pair| pair[0].as_usize()..pair[1].as_usize()).collect()
    }
    fn by_sizes<O: OffsetSizeTrait>(offsets: &[O], sizes: &[O]) -> Vec<Range<usize>> {
        offsets
            .iter()
            .zip(sizes)
            .map(|(start, size)| start.as_usize()..start.as_usize() + size.as_usize())
            .collect()
    }
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (list.values().clone(), by_offsets(list.value_offsets()), 4)
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (list.values().clone(), by_offsets(list.value_offsets()), 8)
        }
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            (list.values().clone(), by_sizes(list.value_offsets(), list.value_sizes()), 8)
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            (list.values().clone(), by_sizes(list.value_offsets(), list.value_sizes()), 16)
        }
        _ => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            (entries, by_offsets(map.value_offsets()), 4)
        }
    }
}

/// The bytes of a fixed-width array's values; none for a width of 0.
fn fixed_bytes(data: &arrow::array::ArrayData, stride: usize) -> &[u8] {
    let range = data.offset() * stride..(data.offset() + data.len()) * stride;
    data.buffers().first().and_then(|buffer| buffer.as_slice().get(range)).unwrap_or_default()
}

fn append_limb<V: Value>(values: &mut Vec<V>, bytes: &[u8], stride: usize, limb: &Limb) {
    if stride == V::BYTES
        && let Ok(all) = <[V]>::ref_from_bytes(bytes)
    {
        values.extend_from_slice(all);
        return;
    }
    let read = |value: &[u8]| {
        let stored = value.get(limb.offset..limb.offset + V::BYTES).unwrap_or_default();
        V::read_from_bytes(stored).unwrap_or_default()
    };
    if stride > 0 {
        values.extend(bytes.chunks_exact(stride).map(read));
    }
}

fn count_nan<V: Value>(values: &[V], nulls: Option<&NullBuffer>) -> u64 {
    if V::WIDTH == 8 {
        return 0;
    }
    let is_valid = |index: usize| nulls.is_none_or(|nulls| nulls.is_valid(index));
    values.iter().enumerate().filter(|&(index, &value)| is_nan(value) && is_valid(index)).count() as u64
}

/// Makes the values under nulls, of those from `start` on, copies of the valid value before them, or of the first valid value where there is none before, or 0.
fn fill_nulls<V: Value>(values: &mut [V], start: usize, nulls: Option<&NullBuffer>, had_valid: bool) {
    let mut last =
        if had_valid { start.checked_sub(1).and_then(|before| values.get(before)).copied() } else { None };
    let Some(nulls) = nulls else {
        if !had_valid && let Some(&first) = values.get(start) {
            values.get_mut(..start).unwrap_or_default().fill(first);
        }
        return;
    };
    let mut filled = start;
    for (from, to) in nulls.valid_slices() {
        let (from, to) = (start + from, start + to);
        let Some(&first) = values.get(from) else { return };
        // Nothing valid came before: this value also stands for all the nulls so far.
        let (gap, copy) = last.map_or((0..from, first), |last| (filled..from, last));
        values.get_mut(gap).unwrap_or_default().fill(copy);
        last = to.checked_sub(1).and_then(|last| values.get(last)).copied();
        filled = to;
    }
    values.get_mut(filled..).unwrap_or_default().fill(last.unwrap_or_default());
}
