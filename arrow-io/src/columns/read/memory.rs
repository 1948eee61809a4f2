//! Memory that values are decoded into, used again once nobody holds their arrays any more.

use std::sync::Arc;

use arrow::buffer::Buffer;
use container::Spare;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Memory of arrays that were dropped, for arrays to come.
#[derive(Debug)]
pub struct Memory(Spare<u128>);

impl Default for Memory {
    fn default() -> Self {
        Self(Spare::new(Self::MOST_BYTES))
    }
}

impl Memory {
    /// Most that is kept.
    const MOST_BYTES: usize = 64 << 20;

    /// Room for `length_bytes` bytes, whatever they are.
    pub fn room(self: &Arc<Self>, length_bytes: usize) -> Room {
        let words = self.0.take(length_bytes.div_ceil(size_of::<u128>()));
        Room { words, length_bytes, memory: Arc::clone(self) }
    }
}

/// Room for values, aligned for all of Arrow's; its memory goes back when it is dropped.
#[derive(Debug)]
pub struct Room {
    /// At least `length_bytes` bytes.
    words: Vec<u128>,
    length_bytes: usize,
    memory: Arc<Memory>,
}

impl Room {
    /// The room as values: as many as fit.
    pub fn values_mut<V: FromBytes + IntoBytes + KnownLayout>(&mut self) -> &mut [V] {
        let count = self.length_bytes / size_of::<V>();
        let bytes = self.words.as_mut_slice().as_mut_bytes();
        // Words are aligned for every value, and the room is long enough.
        <[V]>::mut_from_prefix_with_elems(bytes, count).map(|(values, _)| values).unwrap_or_default()
    }

    /// The values that were written.
    pub fn values<V: FromBytes + KnownLayout + Immutable>(&self) -> &[V] {
        let count = self.length_bytes / size_of::<V>();
        let bytes = self.words.as_slice().as_bytes();
        <[V]>::ref_from_prefix_with_elems(bytes, count).map(|(values, _)| values).unwrap_or_default()
    }

    /// The room as an array's buffer.
    pub fn into_buffer(self) -> Buffer {
        Buffer::from(bytes::Bytes::from_owner(self))
    }
}

impl AsRef<[u8]> for Room {
    fn as_ref(&self) -> &[u8] {
        self.values()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.memory.0.give(std::mem::take(&mut self.words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(memory: &Arc<Memory>, length: usize, value: u16) -> Buffer {
        let mut room = memory.room(length * 2);
        room.values_mut::<u16>().fill(value);
        assert_eq!(room.values::<u16>(), vec![value; length]);
        room.into_buffer()
    }

    #[test]
    fn memory_is_used_again_only_when_the_last_array_is_gone() {
        let memory = Arc::new(Memory::default());
        let first = written(&memory, 100_000, 7);
        let (address, slice) = (first.as_ptr(), first.slice_with_length(10, 20));
        drop(first);
        let second = written(&memory, 100_000, 8);
        assert_ne!(second.as_ptr(), address);
        assert_eq!(slice.typed_data::<u16>(), [7; 10]);
        drop(slice);
        let third = written(&memory, 90_000, 9);
        assert_eq!((third.as_ptr(), third.len()), (address, 180_000));
        assert_eq!(second.typed_data::<u16>(), vec![8; 100_000]);
    }

    #[test]
    fn little_is_kept_and_no_small_pieces() {
        let memory = Arc::new(Memory::default());
        let buffers: Vec<Buffer> = (0..200).map(|_| written(&memory, 1 << 18, 1)).collect();
        drop(buffers);
        assert_eq!(memory.0.kept().len(), Memory::MOST_BYTES >> 19);
        let memory = Arc::new(Memory::default());
        drop((written(&memory, 0, 1), written(&memory, 1000, 1)));
        assert!(memory.0.kept().is_empty());
    }
}
