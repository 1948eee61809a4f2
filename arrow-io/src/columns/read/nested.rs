//! Lists, structs and unions.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, UnionArray};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::DataType;

use super::strings::{Extents, OFFSET_BYTES, narrow_offsets, wide_offsets};
use super::{ChunkReader, Slots, build};
use crate::columns::tree::Node;
use crate::error::TableError;

impl ChunkReader<'_> {
    pub(super) fn list(&self, node: &Node, slots: Slots<'_>) -> Result<ArrayRef, TableError> {
        let Some(child) = node.children.first() else {
            return Ok(arrow::array::new_empty_array(&node.data_type));
        };
        let child_slots = self.chunk(child)?.slot_count.get();
        let Extents { lengths, ranges, end } = match slots.buffers.first() {
            Some(ends) => self.slot_extents(node, ends, slots.ranges, child_slots)?,
            None => Extents { lengths: Vec::new(), ranges: Vec::new(), end: 0 },
        };
        let whole = slots.reach_the_end();
        self.check_covered(node, whole, end, child_slots)?;
        let child = self.node(child, &ranges, child_slots)?.to_data();
        self.budget.charge(node, lengths.len() as u64 * 2 * OFFSET_BYTES)?;
        let data = slots.data(node).add_child_data(child);
        let data = match node.data_type {
            DataType::LargeList(_) => data.add_buffer(wide_offsets(&lengths)),
            DataType::ListView(_) => {
                let sizes: Vec<i32> =
                    lengths.iter().map(|&length| i32::try_from(length).unwrap_or(i32::MAX)).collect();
                data.add_buffer(narrow_offsets(node, &lengths)?).add_buffer(Buffer::from_vec(sizes))
            }
            DataType::LargeListView(_) => {
                let sizes: Vec<i64> =
                    lengths.iter().map(|&length| i64::try_from(length).unwrap_or(i64::MAX)).collect();
                data.add_buffer(wide_offsets(&lengths)).add_buffer(Buffer::from_vec(sizes))
            }
            _ => data.add_buffer(narrow_offsets(node, &lengths)?),
        };
        build(node, data)
    }

    pub(super) fn fixed_list(
        &self,
        node: &Node,
        size: usize,
        slots: Slots<'_>,
    ) -> Result<ArrayRef, TableError> {
        let Some(child) = node.children.first() else {
            return Ok(arrow::array::new_empty_array(&node.data_type));
        };
        let size = size as u64;
        let scaled = |range: &Range<u64>| range.start.saturating_mul(size)..range.end.saturating_mul(size);
        let ranges: Vec<Range<u64>> = slots.ranges.iter().map(scaled).collect();
        let child = self.node(child, &ranges, slots.chunk.slot_count.get().saturating_mul(size))?;
        build(node, slots.data(node).add_child_data(child.to_data()))
    }

    pub(super) fn structs(&self, node: &Node, slots: Slots<'_>) -> Result<ArrayRef, TableError> {
        let mut data = slots.data(node);
        for child in &node.children {
            data =
                data.add_child_data(self.node(child, slots.ranges, slots.chunk.slot_count.get())?.to_data());
        }
        build(node, data)
    }

    pub(super) fn sparse_union(
        &self,
        node: &Node,
        ids: &[i8],
        slots: Slots<'_>,
    ) -> Result<ArrayRef, TableError> {
        let type_ids = self.type_ids(node, ids, &slots, slots.ranges)?;
        let children =
            node.children.iter().map(|child| self.node(child, slots.ranges, slots.chunk.slot_count.get()));
        let children = children.collect::<Result<Vec<_>, _>>()?;
        union(node, type_ids, None, children)
    }

    pub(super) fn dense_union(
        &self,
        node: &Node,
        ids: &[i8],
        slots: Slots<'_>,
    ) -> Result<ArrayRef, TableError> {
        // A slot's place in its child is the number of slots of the same type before it, so the ids are read from the start.
        let end = slots.ranges.iter().map(|range| range.end).max().unwrap_or(0);
        let all = self.type_ids(node, ids, &slots, &[0..end])?;
        self.budget.charge(node, end.saturating_mul(8))?;
        let mut counts = [0_u64; 128];
        let places: Vec<u64> = all
            .iter()
            .map(|id| {
                let count = counts
                    .get_mut(usize::from(id.unsigned_abs()))
                    .map(|count| std::mem::replace(count, *count + 1));
                count.unwrap_or_default()
            })
            .collect();
        let (mut type_ids, mut offsets) =
            (Vec::with_capacity(slots.length), Vec::with_capacity(slots.length));
        let mut wanted: Vec<Vec<Range<u64>>> = vec![Vec::new(); ids.len()];
        let mut taken = vec![0_i32; ids.len()];
        for slot in slots.ranges.iter().cloned().flatten() {
            let slot = usize::try_from(slot).unwrap_or(usize::MAX);
            let (Some(&id), Some(&place)) = (all.get(slot), places.get(slot)) else { continue };
            let Some(child) = ids.iter().position(|other| *other == id) else { continue };
            type_ids.push(id);
            if let (Some(taken), Some(wanted)) = (taken.get_mut(child), wanted.get_mut(child)) {
                offsets.push(*taken);
                *taken += 1;
                match wanted.last_mut() {
                    Some(last) if last.end == place => last.end += 1,
                    _ => wanted.push(place..place + 1),
                }
            }
        }
        let mut children = Vec::with_capacity(ids.len());
        for ((child, wanted), id) in node.children.iter().zip(&wanted).zip(ids) {
            let slot_count = self.chunk(child)?.slot_count.get();
            let whole = slots.reach_the_end();
            let selected = counts.get(usize::from(id.unsigned_abs())).copied().unwrap_or(0);
            if whole && selected != slot_count {
                return Err(self.impossible(child, format!("{selected} slots are selected of {slot_count}")));
            }
            children.push(self.node(child, wanted, slot_count)?);
        }
        union(node, type_ids, Some(offsets), children)
    }

    fn type_ids(
        &self,
        node: &Node,
        ids: &[i8],
        slots: &Slots<'_>,
        ranges: &[Range<u64>],
    ) -> Result<Vec<i8>, TableError> {
        let Some(entry) = slots.buffers.first() else { return Ok(Vec::new()) };
        let found: Vec<i8> =
            self.decode::<u8>(node, entry, ranges)?.into_iter().map(u8::cast_signed).collect();
        match found.iter().find(|id| !ids.contains(id)) {
            Some(id) => Err(self.impossible(node, format!("type id {id}, which the union does not have"))),
            None => Ok(found),
        }
    }
}

fn union(
    node: &Node,
    type_ids: Vec<i8>,
    offsets: Option<Vec<i32>>,
    children: Vec<ArrayRef>,
) -> Result<ArrayRef, TableError> {
    let DataType::Union(fields, _) = &node.data_type else {
        return Ok(arrow::array::new_empty_array(&node.data_type));
    };
    let array = UnionArray::try_new(
        fields.clone(),
        ScalarBuffer::from(type_ids),
        offsets.map(ScalarBuffer::from),
        children,
    )
    .map_err(|source| TableError::Arrow { column: node.path.clone(), source })?;
    Ok(Arc::new(array))
}
