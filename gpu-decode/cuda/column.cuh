// A column on the device: the tiles of all its blocks, found by one table, decoded by whichever codec each block has.

namespace cb2t {

// Where a tile is, in units of 16 bytes from the column's first byte, and what it is.
struct TileEntry {
  u32 offset_16;
  u32 codec_and_value_count;  // the codec's place in the column's list above bit 24, value_count below

  __device__ __forceinline__ u32 codec() const { return codec_and_value_count >> 24; }
  __device__ __forceinline__ u32 value_count() const { return codec_and_value_count & 0xffffff; }
};

// A kernel's argument.
struct ColumnView {
  const u8* bytes;
  const TileEntry* tiles;
  const u32* shared_offsets_16;  // of each tile's block; read only by codecs that keep bytes for all tiles of a block
};

// The tile of a constant block is the block's one value.
template <class V, u64, u64>
struct ConstantBlock {
  struct Metadata {
    V value;
  };
  template <class G, u32 N>
  using Scratch = NoScratch;

  template <class TILE>
  static __device__ __forceinline__ Metadata resolve_metadata(TILE tile) {
    return {*reinterpret_cast<const V*>(tile.bytes)};
  }

  // All threads of the group; no barrier.
  template <class TILE, class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G, TILE, const Metadata& metadata, NoScratch&, V (&values)[N]) {
#pragma unroll
    for (u32 i = 0; i < N; i++) values[i] = metadata.value;
  }
};

__device__ constexpr u32 larger(u32 left, u32 right) { return left > right ? left : right; }

template <class V, class FIRST, class... REST>
struct Codecs {
  template <class G, u32 N>
  static __device__ constexpr u32 scratch_bytes() {
    constexpr u32 first = sizeof(typename FIRST::template Scratch<G, N>);
    if constexpr (sizeof...(REST) == 0) {
      return first;
    } else {
      return larger(first, Codecs<V, REST...>::template scratch_bytes<G, N>());
    }
  }

  // Codec number `codec` of the list decodes. The whole group takes the same branch.
  template <class TILE, class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G group, u32 codec, TILE tile, u8* scratch, V (&values)[N]) {
    if constexpr (sizeof...(REST) > 0) {
      if (codec != 0) return Codecs<V, REST...>::decompress_tile(group, codec - 1, tile, scratch, values);
    }
    const typename FIRST::Metadata metadata = FIRST::resolve_metadata(tile);
    auto& own = *reinterpret_cast<typename FIRST::template Scratch<G, N>*>(scratch);
    FIRST::decompress_tile(group, tile, metadata, own, values);
  }
};

// A column of values V whose blocks have the codecs CODECS, in the order of TileEntry::codec. SHARED: whether any of them keeps bytes for all tiles of a block.
template <class V, bool SHARED, class... CODECS>
struct Column {
  using Value = V;

  // Shared memory that a group needs to decode a tile into N values a thread.
  template <class G, u32 N>
  struct Scratch {
    alignas(16) u8 bytes[Codecs<V, CODECS...>::template scratch_bytes<G, N>()];
  };

  // All threads of the group; afterwards scratch is free for other use. WHOLE: the tile has G::size * N values.
  template <bool WHOLE, class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G group, ColumnView column, u32 tile_index, TileEntry entry, u8* scratch, V (&values)[N]) {
    const Tile<WHOLE> tile = {column.bytes + u64(entry.offset_16) * 16, SHARED ? column.bytes + u64(column.shared_offsets_16[tile_index]) * 16 : nullptr,
                              entry.value_count()};
    Codecs<V, CODECS...>::decompress_tile(group, entry.codec(), tile, scratch, values);
  }
};

}  // namespace cb2t
