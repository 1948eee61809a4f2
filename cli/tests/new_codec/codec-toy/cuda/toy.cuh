// Codec toy on the device: each thread puts its values together, byte by byte.

namespace codec {

template <class V, u64, u64>
struct toy {
  struct Metadata {
    u32 value_bytes;
  };
  template <class G, u32 N>
  using Scratch = cb2t::NoScratch;

  template <class TILE>
  static __device__ __forceinline__ Metadata resolve_metadata(TILE tile) {
    return {__ldg(tile.bytes)};
  }

  // All threads of the group; no barrier. Values past value_count are 0.
  template <class TILE, class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G group, TILE tile, const Metadata& metadata, cb2t::NoScratch&, V (&values)[N]) {
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      const u32 position = i * G::size + group.rank;
      const u8* bytes = tile.bytes + 1 + position * metadata.value_bytes;
      const u32 present = TILE::whole || position < tile.value_count ? metadata.value_bytes : 0;
      u64 value = 0;
      for (u32 k = 0; k < present; k++) value |= static_cast<u64>(__ldg(bytes + k)) << 8 * k;
      values[i] = static_cast<V>(value);
    }
  }
};

}  // namespace codec
