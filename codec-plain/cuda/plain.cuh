// Codec plain on the device: values as they are. The template to copy: a struct with the codec's name, two hooks, and the scratch that the second needs.

namespace codec {

template <class V, u64, u64>
struct plain {
  struct Metadata {};
  template <u32 TILE_SIZE>
  struct Scratch {};

  static __device__ __forceinline__ Metadata resolve_metadata(cb2t::Tile) { return {}; }

  // All threads of the group; no barrier. Values past value_count are arbitrary.
  template <class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G group, cb2t::Tile tile, const Metadata&, Scratch<G::size * N>&, V (&values)[N]) {
    const V* __restrict__ stored = reinterpret_cast<const V*>(tile.bytes);
    // A whole tile, all but the last of a column, is loaded without tests.
    if (tile.value_count == G::size * N) {
#pragma unroll
      for (u32 i = 0; i < N; i++) values[i] = __ldcs(stored + i * G::size + group.rank);
    } else {
#pragma unroll
      for (u32 i = 0; i < N; i++) {
        const u32 position = i * G::size + group.rank;
        values[i] = position < tile.value_count ? stored[position] : V(0);
      }
    }
  }
};

}  // namespace codec
