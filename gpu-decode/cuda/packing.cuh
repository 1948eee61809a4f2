// Integers of b bits, packed in the two ways of format-spec/SPEC.md section 8.

namespace cb2t {

// The lowest bit_width bits, 1 to 32.
__device__ __forceinline__ u32 low_bits(u32 bits, u32 bit_width) { return bits & (0xffffffffu >> (32 - bit_width)); }

// bit_width bits, 1 to 8 * sizeof(V), from bit `bit` of a string of words of which word(k) is the k-th. Asks only for words that hold some of these bits.
// With constants for bit and bit_width, after unrolling, two or three instructions are left.
template <class V, class WORD>
__device__ __forceinline__ V extract(u32 bit, u32 bit_width, WORD word) {
  const u32 k = bit / 32, shift = bit % 32;
  u32 low = word(k);
  low = shift + bit_width > 32 ? __funnelshift_r(low, word(k + 1), shift) : low >> shift;
  if (sizeof(V) < 8 || bit_width <= 32) return static_cast<V>(bit_width < 32 ? low_bits(low, bit_width) : low);
  u32 high = word(k + 1);
  high = shift + bit_width > 64 ? __funnelshift_r(high, word(k + 2), shift) : high >> shift;
  return static_cast<V>(low | static_cast<u64>(low_bits(high, bit_width - 32)) << 32);
}

// One bit string: value j is at bits j * bit_width.
namespace sequence {

__device__ __forceinline__ u32 words(u32 value_count, u32 bit_width) { return (value_count * bit_width + 31) / 32; }

template <class V>
__device__ __forceinline__ V unpack(const u32* __restrict__ packed, u32 j, u32 bit_width) {
  if (bit_width == 0) return 0;
  return extract<V>(j * bit_width, bit_width, [=](u32 k) { return packed[k]; });
}

}  // namespace sequence

// 32 bit strings side by side: value i of lane l is at position i * 32 + l, word k of lane l is word k * 32 + l.
namespace lanes {

// Up to so many widths each get code of their own, in which every shift is a constant; beyond, one code with run-time shifts serves all.
#ifndef CB2T_CONSTANT_WIDTHS
#define CB2T_CONSTANT_WIDTHS 12
#endif

// A set of bit widths 0 to 64, as template constants: bit w of LOW, or bit w - 64 of HIGH.
template <u64 LOW, u64 HIGH>
struct Widths {
  static __device__ constexpr bool has(u32 width) { return width < 64 ? LOW >> width & 1 : HIGH >> (width - 64) & 1; }
  static __device__ constexpr u32 count(u32 first, u32 end) { return first == end ? 0 : has(first) + count(first + 1, end); }
};

// A warp whose lanes hold whole strings: each word is loaded once, all loads before the first use.
template <u32 BIT_WIDTH, class V, u32 N>
__device__ __forceinline__ void unpack_strings(const u32* __restrict__ packed, u32 lane, V (&residuals)[N]) {
  constexpr u32 WORDS = (N * BIT_WIDTH + 31) / 32;
  u32 words[WORDS];
#pragma unroll
  for (u32 k = 0; k < WORDS; k++) words[k] = __ldcs(packed + k * LANES + lane);
#pragma unroll
  for (u32 i = 0; i < N; i++) {
    residuals[i] = extract<V>(i * BIT_WIDTH, BIT_WIDTH, [&](u32 k) { return words[k < WORDS ? k : WORDS - 1]; });
  }
}

// Value by value. Inlined with a constant width, its mask is a constant too.
template <class G, class V, u32 N>
__device__ __forceinline__ void unpack_rows(G group, const u32* __restrict__ packed, u32 bit_width, V (&residuals)[N]) {
  const u32* string = packed + group.lane();
#pragma unroll
  for (u32 i = 0; i < N; i++) {
    residuals[i] = extract<V>(group.row(i) * bit_width, bit_width, [=](u32 k) { return string[k * LANES]; });
  }
}

// A tile that ends early has fewer rows, and only their words.
template <class G, class V, u32 N>
__device__ __forceinline__ void unpack_partial(G group, const u32* __restrict__ packed, u32 bit_width, u32 value_count, V (&residuals)[N]) {
  const u32* string = packed + group.lane();
  const u32 rows = (value_count + LANES - 1) / LANES;
#pragma unroll
  for (u32 i = 0; i < N; i++) {
    const u32 row = group.row(i);
    residuals[i] = row < rows ? extract<V>(row * bit_width, bit_width, [=](u32 k) { return string[k * LANES]; }) : V(0);
  }
}

template <u32 BIT_WIDTH, class G, class V, u32 N>
__device__ __forceinline__ void unpack_constant(G group, const u32* __restrict__ packed, V (&residuals)[N]) {
  if constexpr (BIT_WIDTH == 0) {
#pragma unroll
    for (u32 i = 0; i < N; i++) residuals[i] = 0;
  } else if constexpr (G::size == LANES) {
    unpack_strings<BIT_WIDTH>(packed, group.lane(), residuals);
  } else {
    unpack_rows(group, packed, BIT_WIDTH, residuals);
  }
}

// Finds the code for bit_width among the widths FIRST to END - 1 by halving. The last one left needs no test.
template <class WIDTHS, u32 FIRST, u32 END, class G, class V, u32 N>
__device__ __forceinline__ void unpack_one_of(G group, const u32* __restrict__ packed, u32 bit_width, V (&residuals)[N]) {
  constexpr u32 MIDDLE = (FIRST + END) / 2;
  if constexpr (END - FIRST == 1) {
    unpack_constant<FIRST>(group, packed, residuals);
  } else if constexpr (WIDTHS::count(FIRST, MIDDLE) == 0) {
    unpack_one_of<WIDTHS, MIDDLE, END>(group, packed, bit_width, residuals);
  } else if constexpr (WIDTHS::count(MIDDLE, END) == 0) {
    unpack_one_of<WIDTHS, FIRST, MIDDLE>(group, packed, bit_width, residuals);
  } else if (bit_width < MIDDLE) {
    unpack_one_of<WIDTHS, FIRST, MIDDLE>(group, packed, bit_width, residuals);
  } else {
    unpack_one_of<WIDTHS, MIDDLE, END>(group, packed, bit_width, residuals);
  }
}

// All threads of the group; no barrier. The residuals at this thread's positions; those past value_count are arbitrary. WIDTHS are the widths that occur; none given stands for all.
template <class WIDTHS, class G, class V, u32 N>
__device__ __forceinline__ void unpack(G group, const u32* __restrict__ packed, u32 bit_width, u32 value_count, V (&residuals)[N]) {
  constexpr u32 WIDEST = 8 * sizeof(V), COUNT = WIDTHS::count(0, WIDEST + 1);
  if (value_count == G::size * N) {
    if constexpr (0 < COUNT && COUNT <= CB2T_CONSTANT_WIDTHS) {
      unpack_one_of<WIDTHS, 0, WIDEST + 1>(group, packed, bit_width, residuals);
      return;
    } else if (bit_width > 0) {
      unpack_rows(group, packed, bit_width, residuals);
      return;
    }
  } else if (bit_width > 0) {
    unpack_partial(group, packed, bit_width, value_count, residuals);
    return;
  }
#pragma unroll
  for (u32 i = 0; i < N; i++) residuals[i] = 0;
}

}  // namespace lanes
}  // namespace cb2t
