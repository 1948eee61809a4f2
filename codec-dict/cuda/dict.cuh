// Codec dict on the device: codes unpacked as in codec flbp, then one gather each from the block's distinct values, which stay in L1 and L2 from tile to tile.
// Specialized by the set of bit widths of the codes; member 64 (bit 0 of the high word): some tiles hold the values themselves.

namespace codec {

template <class V, u64 WIDTHS_LOW, u64 WIDTHS_HIGH>
struct dict {
  static constexpr u32 VALUES = 0xffffffffu;
  // Only the widths of codes: a tile of values never unpacks.
  using Widths = cb2t::lanes::Widths<WIDTHS_LOW, 0>;
  struct Metadata {
    u32 reference, bit_width;
  };
  template <class G, u32 N>
  using Scratch = cb2t::lanes::Scratch<Widths, u16, G, N>;

  template <class TILE>
  static __device__ __forceinline__ Metadata resolve_metadata(TILE tile) {
    const uint2 header = __ldg(reinterpret_cast<const uint2*>(tile.bytes));
    return {header.x, header.y};
  }

  // All threads of the group; leaves with a barrier where Scratch is not empty. Values past value_count are arbitrary.
  template <class TILE, class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G group, TILE tile, const Metadata& metadata, Scratch<G, N>& scratch, V (&values)[N]) {
    // The same for all threads of the group.
    if (metadata.bit_width == VALUES) {
      const V* __restrict__ stored = reinterpret_cast<const V*>(tile.bytes + 16);
#pragma unroll
      for (u32 i = 0; i < N; i++) {
        const u32 position = i * G::size + group.rank;
        values[i] = TILE::whole || position < tile.value_count ? __ldcs(stored + position) : V(0);
      }
      return;
    }
    u16 codes[N];
    cb2t::lanes::unpack<Widths>(group, tile, reinterpret_cast<const u32*>(tile.bytes + 16), metadata.bit_width, scratch, codes);
    const V* __restrict__ entries = reinterpret_cast<const V*>(tile.shared);
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      // A code past value_count is arbitrary, and would be a place outside the entries.
      const bool valid = TILE::whole || i * G::size + group.rank < tile.value_count;
      values[i] = __ldg(entries + (valid ? metadata.reference + codes[i] : 0));
    }
  }
};

}  // namespace codec
