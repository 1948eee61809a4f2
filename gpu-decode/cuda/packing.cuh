// Integers of b bits, packed in the two ways of format-spec/SPEC.md section 8.

namespace cb2t {

// The lowest bit_width bits, 1 to 32.
__device__ __forceinline__ u32 low_bits(u32 bits, u32 bit_width) { return bits & (0xffffffffu >> (32 - bit_width)); }

// bits << distance, as a product: it goes to the unit that multiplies. The shift back down and the addition of a reference are then one instruction of the other, which has most of the work in
// decoding; a shift and a mask would be two more.
__device__ __forceinline__ u32 raised(u32 bits, u32 distance) {
#if defined(__CUDA_ARCH__)
  u32 product;
  asm("mul.lo.u32 %0, %1, %2;" : "=r"(product) : "r"(bits), "r"(1u << distance));
  return product;
#else
  return bits << distance;
#endif
}

// bit_width bits, 1 to 8 * sizeof(V), from bit `bit` of a string of words of which word(k) is the k-th. Asks only for words that hold some of these bits.
// With constants for bit and bit_width, after unrolling, two or three instructions are left.
template <class V, class WORD>
__device__ __forceinline__ V extract(u32 bit, u32 bit_width, WORD word) {
  const u32 k = bit / 32, shift = bit % 32;
  if (bit_width < 32 && shift + bit_width < 32) return static_cast<V>(raised(word(k), 32 - shift - bit_width) >> (32 - bit_width));
  // In two words: with its highest bit on top, too.
  if (bit_width < 32 && shift + bit_width > 32) return static_cast<V>(__funnelshift_r(word(k), word(k + 1), shift + bit_width - 32) >> (32 - bit_width));
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

// Value j of `count`. The words behind the first are loaded whether they hold bits or not, if need be the last word again: no lane waits for another's branch.
template <class V>
__device__ __forceinline__ V unpack(const u32* __restrict__ packed, u32 count, u32 j, u32 bit_width) {
  if (bit_width == 0) return 0;
  const u32 bit = j * bit_width, k = bit / 32, shift = bit % 32, last = words(count, bit_width) - 1;
  const u32 first = packed[k], second = packed[k < last ? k + 1 : last];
  const u32 low = __funnelshift_r(first, second, shift);
  if (sizeof(V) < 8) return static_cast<V>(low_bits(low, bit_width));
  if (bit_width <= 32) return low_bits(low, bit_width);
  const u32 third = packed[k + 1 < last ? k + 2 : last];
  return static_cast<V>(low | static_cast<u64>(low_bits(__funnelshift_r(second, third, shift), bit_width - 32)) << 32);
}

}  // namespace sequence

// 32 bit strings side by side: value i of lane l is at position i * 32 + l, word k of lane l is word k * 32 + l.
namespace lanes {

// A set of bit widths 0 to 64, as template constants: bit w of LOW, or bit w - 64 of HIGH. The empty set stands for all. Each width of a set gets code of its own, in which every
// shift is a constant; one code with run-time shifts serves all.
template <u64 LOW, u64 HIGH>
struct Widths {
  static __device__ constexpr bool has(u32 width) { return width < 64 ? LOW >> width & 1 : HIGH >> (width - 64) & 1; }
  static __device__ constexpr u32 count(u32 first, u32 end) { return first == end ? 0 : has(first) + count(first + 1, end); }
  static constexpr bool few = count(0, 65) > 0;
};

// The packed words of a tile, for code with run-time shifts. A value may ask for up to two words past the last row: they are there, with whatever they hold.
template <class V, u32 TILE_SIZE>
struct Words {
  static constexpr u32 PAST = sizeof(V) < 8 ? LANES : 2 * LANES;
  alignas(16) u32 words[TILE_SIZE / 32 * 8 * sizeof(V) + PAST];
};

// A warp unpacks few widths from registers. Everything else goes through shared memory.
template <class WIDTHS, class V, class G, u32 N>
using Scratch = typename Either<WIDTHS::few && G::size == LANES, NoScratch, Words<V, G::size * N>>::Type;

// So many loads are made one after the other anyway.
constexpr u32 FEW_WORDS = 8;

// 0, but known only when all words are. What needs it waits for memory once: the compiler would else move loads down to their first use, to save registers, and wait again and again.
template <u32 N>
__device__ __forceinline__ u32 after_all(const u32 (&words)[N]) {
#if defined(__CUDA_ARCH__)
  u32 all = words[0];
#pragma unroll
  for (u32 k = 1; k < N; k++) all &= words[k];
  // No grid here has a third dimension, which the compiler cannot know.
  return all & (gridDim.z - 1);
#else
  return 0;
#endif
}

// A warp whose lanes hold whole strings: each word is loaded once, all loads before the first use. A tile that ends early has fewer rows, and only their words.
template <u32 BIT_WIDTH, bool WHOLE, class V, u32 N>
__device__ __forceinline__ void unpack_strings(u32 lane, const u32* __restrict__ packed, u32 value_count, V (&residuals)[N]) {
  if constexpr (BIT_WIDTH == 0) {
#pragma unroll
    for (u32 i = 0; i < N; i++) residuals[i] = 0;
  } else {
    constexpr u32 WORDS = (N * BIT_WIDTH + 31) / 32;
    const u32 present = WHOLE ? WORDS : ((value_count + LANES - 1) / LANES * BIT_WIDTH + 31) / 32;
    u32 words[WORDS];
#pragma unroll
    for (u32 k = 0; k < WORDS; k++) words[k] = k < present ? __ldcs(packed + k * LANES + lane) : 0;
    if constexpr (WORDS > FEW_WORDS) words[0] |= after_all(words);
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      residuals[i] = extract<V>(i * BIT_WIDTH, BIT_WIDTH, [&](u32 k) { return words[k < WORDS ? k : WORDS - 1]; });
    }
  }
}

// Finds the code for bit_width among the widths FIRST to END - 1 by halving. The last one left needs no test.
template <class WIDTHS, u32 FIRST, u32 END, bool WHOLE, class V, u32 N>
__device__ __forceinline__ void unpack_one_of(u32 lane, const u32* __restrict__ packed, u32 bit_width, u32 value_count, V (&residuals)[N]) {
  constexpr u32 MIDDLE = (FIRST + END) / 2;
  if constexpr (END - FIRST == 1) {
    unpack_strings<FIRST, WHOLE>(lane, packed, value_count, residuals);
  } else if constexpr (WIDTHS::count(FIRST, MIDDLE) == 0) {
    unpack_one_of<WIDTHS, MIDDLE, END, WHOLE>(lane, packed, bit_width, value_count, residuals);
  } else if constexpr (WIDTHS::count(MIDDLE, END) == 0) {
    unpack_one_of<WIDTHS, FIRST, MIDDLE, WHOLE>(lane, packed, bit_width, value_count, residuals);
  } else if (bit_width < MIDDLE) {
    unpack_one_of<WIDTHS, FIRST, MIDDLE, WHOLE>(lane, packed, bit_width, value_count, residuals);
  } else {
    unpack_one_of<WIDTHS, MIDDLE, END, WHOLE>(lane, packed, bit_width, value_count, residuals);
  }
}

// All threads of the group. Leaves with a barrier, since it uses scratch.
template <class G, class V, u32 N>
__device__ __forceinline__ void unpack_staged(G group, const u32* __restrict__ packed, u32 bit_width, u32 value_count, u32* __restrict__ words, V (&residuals)[N]) {
  const u32 rows = (value_count + LANES - 1) / LANES, chunks = (rows * bit_width + 31) / 32 * LANES / 4;
#pragma unroll 8
  for (u32 chunk = group.rank; chunk < chunks; chunk += G::size) {
    reinterpret_cast<uint4*>(words)[chunk] = __ldcs(reinterpret_cast<const uint4*>(packed) + chunk);
  }
  group.sync();
  const u32* string = words + group.lane();
  const u32 low_mask = 0xffffffffu >> (bit_width < 32 ? 32 - bit_width : 0);
  const u32 high_mask = bit_width > 32 ? 0xffffffffu >> (64 - bit_width) : 0;
#pragma unroll
  for (u32 i = 0; i < N; i++) {
    // Every lane of the warp has the same k and shift.
    const u32 bit = group.row(i) * bit_width, k = bit / 32, shift = bit % 32;
    const u32 first = string[k * LANES], second = string[(k + 1) * LANES];
    const u32 low = __funnelshift_r(first, second, shift) & low_mask;
    if constexpr (sizeof(V) < 8) {
      residuals[i] = static_cast<V>(low);
    } else {
      const u32 high = __funnelshift_r(second, string[(k + 2) * LANES], shift) & high_mask;
      residuals[i] = low | static_cast<u64>(high) << 32;
    }
  }
  group.sync();
}

// All threads of the group; leaves with a barrier where Scratch is not empty. The residuals at this thread's positions; those past value_count are arbitrary.
template <class WIDTHS, class TILE, class G, class V, u32 N>
__device__ __forceinline__ void unpack(G group, TILE tile, const u32* __restrict__ packed, u32 bit_width, Scratch<WIDTHS, V, G, N>& scratch, V (&residuals)[N]) {
  const u32 value_count = TILE::whole ? G::size * N : tile.value_count;
  if constexpr (WIDTHS::few && G::size == LANES) {
    unpack_one_of<WIDTHS, 0, 8 * sizeof(V) + 1, TILE::whole>(group.lane(), packed, bit_width, value_count, residuals);
  } else if (bit_width > 0) {
    unpack_staged(group, packed, bit_width, value_count, scratch.words, residuals);
  } else {
#pragma unroll
    for (u32 i = 0; i < N; i++) residuals[i] = 0;
  }
}

// Words a lane.
__device__ __forceinline__ u32 words(u32 value_count, u32 bit_width) { return ((value_count + LANES - 1) / LANES * bit_width + 31) / 32; }

// All lanes of the warp; no barrier. Packs value - reference of the first value_count positions, 0 for the rest of their last row.
template <class G, class V, u32 N>
__device__ __forceinline__ void pack(G group, const V (&values)[N], V reference, u32 bit_width, u32 value_count, u32* __restrict__ packed) {
  static_assert(G::size == LANES, "lanes are packed by a warp");
  const u32 count = words(value_count, bit_width);
  u32 waiting_bits = 0, k = 0;
  u64 waiting = 0;
  // The branches depend on the width alone: all lanes take the same.
  const auto append = [&](u32 bits, u32 width) {
    waiting |= static_cast<u64>(bits) << waiting_bits;
    waiting_bits += width;
    if (waiting_bits < 32) return;
    if (k < count) packed[k * LANES + group.lane()] = static_cast<u32>(waiting);
    k++;
    waiting >>= 32;
    waiting_bits -= 32;
  };
#pragma unroll
  for (u32 i = 0; i < N; i++) {
    const V residual = i * LANES + group.rank < value_count ? static_cast<V>(values[i] - reference) : V(0);
    append(static_cast<u32>(residual), bit_width < 32 ? bit_width : 32);
    if (sizeof(V) == 8 && bit_width > 32) append(static_cast<u32>(static_cast<u64>(residual) >> 32), bit_width - 32);
  }
  if (waiting_bits > 0 && k < count) packed[k * LANES + group.lane()] = static_cast<u32>(waiting);
}

}  // namespace lanes

// All lanes of the warp: the sum of `own` over the lanes before.
template <class T>
__device__ __forceinline__ T sum_before(u32 lane, T own) {
  T sum = own;
#pragma unroll
  for (u32 distance = 1; distance < LANES; distance *= 2) {
    const T left = __shfl_up_sync(ALL_LANES, sum, distance);
    if (lane >= distance) sum += left;
  }
  return sum - own;
}

template <class V>
struct Range {
  V min, max;
};

// All lanes of the warp: smallest and largest of all their values. With `flipped` the sign bit, as two's complement.
template <class V, u32 N>
__device__ __forceinline__ Range<V> warp_range(const V (&values)[N], V flipped) {
  V min = values[0] ^ flipped, max = min;
#pragma unroll
  for (u32 i = 1; i < N; i++) {
    const V value = values[i] ^ flipped;
    min = value < min ? value : min;
    max = value > max ? value : max;
  }
#pragma unroll
  for (u32 distance = LANES / 2; distance > 0; distance /= 2) {
    const V other_min = __shfl_xor_sync(ALL_LANES, min, distance), other_max = __shfl_xor_sync(ALL_LANES, max, distance);
    min = other_min < min ? other_min : min;
    max = other_max > max ? other_max : max;
  }
  return {static_cast<V>(min ^ flipped), static_cast<V>(max ^ flipped)};
}

template <class V>
__device__ __forceinline__ u32 bit_width(V value) {
  return 64 - __clzll(static_cast<long long>(static_cast<u64>(value)));
}

}  // namespace cb2t
