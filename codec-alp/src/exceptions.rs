//! Values that do not fit a tile's scheme: what stands where.

use codec_core::{TileError, Value};
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, IntoBytes};

/// Exceptions whose positions are proven to ascend within the tile.
#[derive(Debug)]
pub struct Exceptions<'a> {
    values: &'a [u8],
    positions: &'a [U16],
}

impl<'a> Exceptions<'a> {
    /// Proves that `bytes` begin with `count` values of `value_bytes` bytes and as many ascending positions below `value_count`.
    pub fn parse(
        bytes: &'a [u8],
        value_bytes: usize,
        count: usize,
        value_count: usize,
    ) -> Result<Self, TileError> {
        if count > value_count {
            return Err(TileError::Field { field: "exception_count", found: count as u64 });
        }
        let truncated = || TileError::Truncated {
            needed_bytes: (count * (value_bytes + size_of::<U16>())) as u64,
            found_bytes: bytes.len() as u64,
        };
        let (values, rest) = bytes.split_at_checked(count * value_bytes).ok_or_else(truncated)?;
        let (positions, _) = <[U16]>::ref_from_prefix_with_elems(rest, count).map_err(|_| truncated())?;
        let mut least = 0;
        for position in positions {
            let position = usize::from(position.get());
            if position < least || position >= value_count {
                return Err(TileError::Field { field: "exception_positions", found: position as u64 });
            }
            least = position + 1;
        }
        Ok(Self { values, positions })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.positions.len()
    }

    /// Position and value of each. `V` has the bytes that [`Exceptions::parse`] was told.
    pub fn iter<V: Value>(&self) -> impl Iterator<Item = (usize, V)> {
        let values = self.values.chunks_exact(V::BYTES);
        self.positions.iter().zip(values).map(|(position, bytes)| {
            (usize::from(position.get()), V::read_from_bytes(bytes).unwrap_or_default())
        })
    }

    /// Appends exceptions as [`Exceptions::parse`] reads them. Positions are within a tile, hence below 2^16.
    pub fn append<V: Value>(values: &[V], positions: &[u16], tile: &mut Vec<u8>) {
        tile.extend_from_slice(values.as_bytes());
        tile.extend_from_slice(positions.as_bytes());
    }
}
