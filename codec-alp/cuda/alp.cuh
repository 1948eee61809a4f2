// Codec alp on the device. In plain words: unpack the residuals and add the reference; divide (or multiply) by the power of ten, or put the left parts above; then put each exception
// in its place. Departures:
// - A quotient by the tile's power of ten takes two corrections of dividend * reciprocal by the exact remainder. It is the correctly rounded one (see `quotient`), without the branch
//   for special operands that every division has.
// - Left parts lie in a value's upper 32 bits, whatever its width: only these are looked up and put together.
// - A thread's values are registers, in which no position can be looked up. So where a tile has exceptions its values pass through shared memory, where they are put in place.
// Specialized by the set of bit widths of the residuals and by what else occurs: split tiles, decimal tiles, exceptions.

namespace codec {

template <class V, u64 WIDTHS_LOW, u64 WIDTHS_HIGH>
struct alp {
  using Widths = cb2t::lanes::Widths<WIDTHS_LOW, WIDTHS_HIGH & 1>;
  // Members 65 to 67 of the set.
  static constexpr bool SPLIT = !Widths::few || WIDTHS_HIGH >> 1 & 1;
  static constexpr bool DECIMAL = !Widths::few || WIDTHS_HIGH >> 2 & 1;
  static constexpr bool EXCEPTIONS = !Widths::few || WIDTHS_HIGH >> 3 & 1;

  using Float = typename cb2t::Either<sizeof(V) == 8, double, float>::Type;
  using Integer = typename cb2t::Either<sizeof(V) == 8, long long, int>::Type;

  struct Metadata {
    V reference;
    // Two words of the header, taken apart where their fields are needed: fewer registers are held until then.
    u32 scheme_exponent_widths, codes_and_exceptions;

    __device__ __forceinline__ bool split() const { return SPLIT && (!DECIMAL || (scheme_exponent_widths & 0xff) != 0); }
    __device__ __forceinline__ int exponent() const { return static_cast<signed char>(scheme_exponent_widths >> 8 & 0xff); }
    __device__ __forceinline__ u32 bit_width() const { return scheme_exponent_widths >> 16 & 0xff; }
    __device__ __forceinline__ u32 right_bits() const { return scheme_exponent_widths >> 24; }
    __device__ __forceinline__ u32 code_bit_width() const { return codes_and_exceptions & 0xff; }
    __device__ __forceinline__ u32 exception_count() const { return codes_and_exceptions >> 16; }
  };
  template <u32 TILE_SIZE>
  struct Values {
    V values[TILE_SIZE];
  };
  template <class G, u32 N>
  union Scratch {
    cb2t::lanes::Scratch<Widths, V, G, N> unpacking;
    typename cb2t::Either<EXCEPTIONS, Values<G::size * N>, cb2t::NoScratch>::Type whole;
  };

  template <class TILE>
  static __device__ __forceinline__ Metadata resolve_metadata(TILE tile) {
    const uint4 header = __ldg(reinterpret_cast<const uint4*>(tile.bytes));
    return {static_cast<V>(header.x | static_cast<u64>(header.y) << 32), header.z, header.w};
  }

  // All threads of the group; leaves with a barrier where it uses scratch. Values past value_count are arbitrary.
  template <class TILE, class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G group, TILE tile, const Metadata& metadata, Scratch<G, N>& scratch, V (&values)[N]) {
    const u32 value_count = TILE::whole ? G::size * N : tile.value_count;
    const u32 code_words = cb2t::lanes::words(value_count, metadata.code_bit_width());
    const u32* residuals = reinterpret_cast<const u32*>(tile.bytes + 16) + (metadata.split() ? 4 + code_words * cb2t::LANES : 0);
    cb2t::lanes::unpack<Widths>(group, tile, residuals, metadata.bit_width(), scratch.unpacking, values);
#pragma unroll
    for (u32 i = 0; i < N; i++) values[i] += metadata.reference;

    // The same for all threads of the group.
    if (SPLIT && metadata.split()) {
      join_left_parts(group, reinterpret_cast<const u32*>(tile.bytes + 16), code_words, metadata.code_bit_width(), metadata.right_bits(), values);
    } else if (DECIMAL) {
      scale(metadata.exponent(), values);
    }
    if constexpr (EXCEPTIONS) {
      const u32* stored = residuals + cb2t::lanes::words(value_count, metadata.bit_width()) * cb2t::LANES;
      if (metadata.exception_count() > 0) put_exceptions(group, stored, metadata, scratch.whole.values, values);
    }
  }

 private:
  static __device__ __forceinline__ V bits_of(double value) { return static_cast<V>(__double_as_longlong(value)); }
  static __device__ __forceinline__ V bits_of(float value) { return static_cast<V>(__float_as_uint(value)); }
  static __device__ __forceinline__ double fused(double left, double right, double summand) { return fma(left, right, summand); }
  static __device__ __forceinline__ float fused(float left, float right, float summand) { return fmaf(left, right, summand); }

  // Integers at `exponent` become floats.
  template <u32 N>
  static __device__ __forceinline__ void scale(int exponent, V (&values)[N]) {
    // Exact all the way to 10^22.
    double power = 1;
#pragma unroll 1
    for (int digits = exponent < 0 ? -exponent : exponent; digits > 0; digits--) power *= 10;
    const Float by = static_cast<Float>(power), reciprocal = static_cast<Float>(1 / power);
    // Products need no correction: one of 0 leaves them as they are.
    const Float factor = exponent < 0 ? by : reciprocal, correction = exponent < 0 ? 0 : reciprocal;
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      const Float integer = static_cast<Float>(static_cast<Integer>(values[i]));
      values[i] = bits_of(quotient(integer, factor, by, correction));
    }
  }

  // The float nearest to dividend / divisor, where `factor` and `correction` are the one nearest to 1 / divisor. The first correction brings the product within a unit in the last place
  // of the quotient; from such a one the remainder is exact and the second rounds correctly (Markstein, IBM Journal of Research and Development 34, 1990). Integers by powers of ten
  // neither overflow nor become subnormal on the way.
  static __device__ __forceinline__ Float quotient(Float dividend, Float factor, Float divisor, Float correction) {
    Float near = dividend * factor;
    near = fused(fused(-near, divisor, dividend), correction, near);
    return fused(fused(-near, divisor, dividend), correction, near);
  }

  // A left part in its place. right_bits are at least 48 of 64, or 16 of 32: there are as many more in the upper 32.
  static __device__ __forceinline__ u32 placed(u16 left, u32 right_bits) { return static_cast<u32>(left) << right_bits % 32; }
  static __device__ __forceinline__ V upper(u32 bits) { return static_cast<V>(bits) << (8 * sizeof(V) - 32); }
  static __device__ __forceinline__ V right_mask(u32 right_bits) { return static_cast<V>(~upper(0xffffffffu << right_bits % 32)); }

  // All lanes of the warp. `parts` are the dictionary, of which lane l holds entry l % 8 for all, and the codes: at most three words a lane.
  template <class G, u32 N>
  static __device__ __forceinline__ void join_left_parts(G group, const u32* __restrict__ parts, u32 code_words, u32 code_bits, u32 right_bits, V (&values)[N]) {
    const u32 entry = placed(__ldg(reinterpret_cast<const u16*>(parts) + group.lane() % 8), right_bits), code_mask = (1u << code_bits) - 1;
    const V kept = right_mask(right_bits);
    const u32* __restrict__ codes = parts + 4 + group.lane();
    u64 rest = 0;
    if (code_words > 1) rest = __ldg(codes + cb2t::LANES);
    if (code_words > 2) rest |= static_cast<u64>(__ldg(codes + 2 * cb2t::LANES)) << 32;
    u32 first = code_words > 0 ? __ldg(codes) : 0;
    const auto drop_row = [&] {
      first = __funnelshift_r(first, static_cast<u32>(rest), code_bits);
      rest >>= code_bits;
    };
#pragma unroll 1
    for (u32 row = 0; row < group.warp(); row++) drop_row();
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      values[i] = (values[i] & kept) | upper(__shfl_sync(cb2t::ALL_LANES, entry, first & code_mask));
#pragma unroll
      for (u32 row = 0; row < G::warps; row++) drop_row();
    }
  }

  // All threads of the group; leaves with a barrier. `stored` are the exceptions, of a split tile left parts, then their positions.
  template <class G, u32 N>
  static __device__ __forceinline__ void put_exceptions(G group, const u32* stored, const Metadata& metadata, V* places, V (&values)[N]) {
#pragma unroll
    for (u32 i = 0; i < N; i++) places[i * G::size + group.rank] = values[i];
    group.sync();
    if (metadata.split()) {
      const u32 right_bits = metadata.right_bits();
      for_each_exception<u16>(group, stored, metadata.exception_count(), places,
                              [=](V value, u16 left) { return (value & right_mask(right_bits)) | upper(placed(left, right_bits)); });
    } else {
      for_each_exception<V>(group, stored, metadata.exception_count(), places, [](V, V exception) { return exception; });
    }
    group.sync();
#pragma unroll
    for (u32 i = 0; i < N; i++) values[i] = places[i * G::size + group.rank];
    group.sync();
  }

  // Each exception, an E, and the value in its place become what `put` returns.
  template <class E, class G, class PUT>
  static __device__ __forceinline__ void for_each_exception(G group, const u32* stored, u32 count, V* places, PUT put) {
    const E* __restrict__ exceptions = reinterpret_cast<const E*>(stored);
    const u16* __restrict__ positions = reinterpret_cast<const u16*>(exceptions + count);
#pragma unroll 1
    for (u32 k = group.rank; k < count; k += G::size) {
      V& place = places[__ldg(positions + k)];
      place = put(place, __ldg(exceptions + k));
    }
  }
};

}  // namespace codec
