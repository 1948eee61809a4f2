// Codec dfor on the device. A row is 32 neighbouring positions, one a lane, so the sum of all differences up to a position is
//   the sum of the rows before it  +  the inclusive scan of its own row by shuffles,
// and delta_reference counts position times. A warp carries the rows' sum along; the warps of a larger group exchange their rows' totals through scratch, with one barrier.

namespace codec {

template <class V, u64 WIDTHS_LOW, u64 WIDTHS_HIGH>
struct dfor {
  using Widths = cb2t::lanes::Widths<WIDTHS_LOW, WIDTHS_HIGH>;
  struct Metadata {
    V first;
    V delta_reference;
    u32 bit_width;
  };
  template <u32 ROWS>
  struct RowSums {
    V row_sums[ROWS];
  };
  template <class G, u32 N>
  struct Scratch {
    cb2t::lanes::Scratch<Widths, V, G, N> unpacking;
    typename cb2t::Either<G::size == cb2t::LANES, cb2t::NoScratch, RowSums<G::size * N / cb2t::LANES>>::Type rows;
  };

  static constexpr u32 HEADER_BYTES = sizeof(V) == 8 ? 32 : 16;

  template <class TILE>
  static __device__ __forceinline__ Metadata resolve_metadata(TILE tile) {
    const uint4 header = __ldg(reinterpret_cast<const uint4*>(tile.bytes));
    if constexpr (sizeof(V) == 8) {
      const u32 bit_width = __ldg(reinterpret_cast<const u32*>(tile.bytes + 16));
      return {header.x | static_cast<u64>(header.y) << 32, header.z | static_cast<u64>(header.w) << 32, bit_width};
    } else {
      return {static_cast<V>(header.x), static_cast<V>(header.y), header.z};
    }
  }

  // All threads of the group; leaves with a barrier where it uses scratch. Values past value_count are arbitrary.
  template <class TILE, class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G group, TILE tile, const Metadata& metadata, Scratch<G, N>& scratch, V (&values)[N]) {
    const u32* residuals = reinterpret_cast<const u32*>(tile.bytes + HEADER_BYTES);
    cb2t::lanes::unpack<Widths>(group, tile, residuals, metadata.bit_width, scratch.unpacking, values);
    if (group.rank == 0) values[0] = 0;  // residual 0 does not count
    // Five steps of at most doubled sums: below 2^32 they are scanned in 32 bits.
    constexpr bool ALL_NARROW = sizeof(V) < 8 || (Widths::few && Widths::count(28, 65) == 0), ALL_WIDE = Widths::few && Widths::count(0, 28) == 0;
    if constexpr (ALL_NARROW) {
      scan_rows<u32>(group, values);
    } else if constexpr (ALL_WIDE) {
      scan_rows<u64>(group, values);
    } else if (metadata.bit_width <= 27) {
      scan_rows<u32>(group, values);
    } else {
      scan_rows<u64>(group, values);
    }

    const V of_row = metadata.delta_reference * static_cast<V>(cb2t::LANES);
    V before = metadata.first + metadata.delta_reference * static_cast<V>(group.lane());
    if constexpr (G::size == cb2t::LANES) {
#pragma unroll
      for (u32 i = 0; i < N; i++) {
        const V row_sum = __shfl_sync(cb2t::ALL_LANES, values[i], cb2t::LANES - 1);
        values[i] += before;
        before += row_sum + of_row;
      }
    } else {
      if (group.lane() == cb2t::LANES - 1) {
#pragma unroll
        for (u32 i = 0; i < N; i++) scratch.rows.row_sums[group.row(i)] = values[i];
      }
      group.sync();
      const V before_row = scan_row_sums(group.lane(), scratch.rows);
#pragma unroll
      for (u32 i = 0; i < N; i++) {
        const u32 row = group.row(i);
        values[i] += before + static_cast<V>(row) * of_row + __shfl_sync(cb2t::ALL_LANES, before_row, row);
      }
      group.sync();
    }
  }

 private:
  // All lanes of the warp. Each row's inclusive scan, with sums in S.
  template <class S, class G, u32 N>
  static __device__ __forceinline__ void scan_rows(G group, V (&values)[N]) {
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      S sum = values[i];
#pragma unroll
      for (u32 distance = 1; distance < cb2t::LANES; distance *= 2) {
        const S left = __shfl_up_sync(cb2t::ALL_LANES, sum, distance);
        if (group.lane() >= distance) sum += left;
      }
      values[i] = static_cast<V>(sum);
    }
  }

  // All lanes of the warp, after the barrier behind row_sums. Lane r gets the sum of the rows before row r; there are at most 32.
  template <u32 ROWS>
  static __device__ __forceinline__ V scan_row_sums(u32 lane, const RowSums<ROWS>& rows) {
    return cb2t::sum_before(lane, lane < ROWS ? rows.row_sums[lane] : V(0));
  }
};

}  // namespace codec
