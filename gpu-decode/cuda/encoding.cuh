// What the encoding of codecs builds on, beside packing.cuh: a tile's best reference, and sequences packed by a warp.

namespace cb2t {

namespace sequence {

// All lanes of the warp; no barrier. Packs value(0) to value(count - 1), each of at most bit_width bits: every lane gathers whole words.
template <class G, class VALUE>
__device__ __forceinline__ void pack(G group, u32 count, u32 bit_width, u32* __restrict__ packed, VALUE value) {
  const u32 word_count = words(count, bit_width);
#pragma unroll 1
  for (u32 k = group.rank; k < word_count; k += G::size) {
    const u32 begin = k * 32, end = begin + 32;
    u32 word = 0;
#pragma unroll 1
    for (u32 j = begin / bit_width; j < count && j * bit_width < end; j++) {
      const u32 bit = j * bit_width;
      const u64 bits = value(j);
      word |= static_cast<u32>(bit < begin ? bits >> (begin - bit) : bits << (bit - begin));
    }
    packed[k] = word;
  }
}

}  // namespace sequence

// A reference and the bits that residuals to it need.
template <class V>
struct Reference {
  V reference;
  u32 bit_width;
};

// All lanes of the warp. The reference that makes the residuals narrowest: the unsigned minimum, or the signed one where that is better.
template <class V, u32 N>
__device__ __forceinline__ Reference<V> best_reference(const V (&values)[N]) {
  constexpr V SIGN = static_cast<V>(V(1) << (8 * sizeof(V) - 1));
  const Range<V> as_unsigned = warp_range<V>(values, 0), as_signed = warp_range<V>(values, SIGN);
  const u32 unsigned_bits = bit_width(static_cast<V>(as_unsigned.max - as_unsigned.min)), signed_bits = bit_width(static_cast<V>(as_signed.max - as_signed.min));
  if (signed_bits < unsigned_bits) return {as_signed.min, signed_bits};
  return {as_unsigned.min, unsigned_bits};
}

}  // namespace cb2t
