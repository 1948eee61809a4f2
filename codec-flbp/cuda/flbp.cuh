// Codec flbp on the device. A warp's 32 threads are the 32 lanes of a tile: word k of all lanes is one line of 128 bytes, and a thread unpacks its lane from registers.
// Specialized by the set of bit widths that occur: with one width, every shift and mask is a constant, and the payload is loaded without waiting for the header.

namespace codec {

template <class V, u64 WIDTHS_LOW, u64 WIDTHS_HIGH>
struct flbp {
  using Widths = cb2t::lanes::Widths<WIDTHS_LOW, WIDTHS_HIGH>;
  struct Metadata {
    V reference;
    u32 bit_width;
  };
  template <class G, u32 N>
  using Scratch = cb2t::lanes::Scratch<Widths, V, G, N>;

  template <class TILE>
  static __device__ __forceinline__ Metadata resolve_metadata(TILE tile) {
    const uint4 header = __ldg(reinterpret_cast<const uint4*>(tile.bytes));
    return {static_cast<V>(header.x | static_cast<u64>(header.y) << 32), header.z};
  }

  // All threads of the group; leaves with a barrier where Scratch is not empty. Values past value_count are arbitrary.
  template <class TILE, class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G group, TILE tile, const Metadata& metadata, Scratch<G, N>& scratch, V (&values)[N]) {
    const u32* residuals = reinterpret_cast<const u32*>(tile.bytes + 16);
    cb2t::lanes::unpack<Widths>(group, tile, residuals, metadata.bit_width, scratch, values);
#pragma unroll
    for (u32 i = 0; i < N; i++) values[i] += metadata.reference;
  }
};

}  // namespace codec
