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

  // Encoding, by warps. Positions past value_count hold a copy of one of the tile's values.

  template <class G, u32 N>
  using EncodeScratch = cb2t::NoScratch;

  // All lanes of the warp.
  template <class G, u32 N>
  static __device__ __forceinline__ Metadata choose_metadata(G, const V (&values)[N], u32) {
    const cb2t::Reference<V> best = cb2t::best_reference(values);
    return {best.reference, best.bit_width};
  }

  static __device__ __forceinline__ u32 tile_words(const Metadata& metadata, u32 value_count) {
    return 4 + cb2t::lanes::words(value_count, metadata.bit_width) * cb2t::LANES;
  }

  // All lanes of the warp; no barrier.
  template <class G, u32 N>
  static __device__ __forceinline__ void encode_tile(G group, const Metadata& metadata, const V (&values)[N], u32 value_count, cb2t::NoScratch&, u32* tile) {
    const u64 reference = metadata.reference;
    const u32 header[4] = {static_cast<u32>(reference), static_cast<u32>(reference >> 32), metadata.bit_width, 0};
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      if (group.rank == i) tile[i] = header[i];
    }
    cb2t::lanes::pack(group, values, metadata.reference, metadata.bit_width, value_count, tile + 4);
  }
};

}  // namespace codec
