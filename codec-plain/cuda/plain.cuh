// Codec plain on the device: values as they are. The template to copy: a struct with the codec's name, two hooks, and the scratch that the second needs.

namespace codec {

template <class V, u64, u64>
struct plain {
  struct Metadata {};
  template <class G, u32 N>
  using Scratch = cb2t::NoScratch;

  template <class TILE>
  static __device__ __forceinline__ Metadata resolve_metadata(TILE) {
    return {};
  }

  // All threads of the group; no barrier. Values past value_count are arbitrary.
  template <class TILE, class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G group, TILE tile, const Metadata&, cb2t::NoScratch&, V (&values)[N]) {
    const V* __restrict__ stored = reinterpret_cast<const V*>(tile.bytes);
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      const u32 position = i * G::size + group.rank;
      values[i] = TILE::whole || position < tile.value_count ? __ldcs(stored + position) : V(0);
    }
  }
};

}  // namespace codec
