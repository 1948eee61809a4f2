// Codec rfor on the device. In plain words: unpack run values and run lengths, sum the lengths to get where each run starts, and give each position the value of the last run
// that starts at or before it. Departures:
// - The starts become a bitmap with one bit a position, so a position's run is found by counting bits: no second scan over positions, no barrier for a warp.
// - Each lane takes neighbouring lengths, so it adds most of its bits to the same word in a register before one atomic.
// - A tile in which no value repeats has as many runs as values: its lengths are not looked at.

namespace codec {

template <class V, u64, u64>
struct rfor {
  struct Metadata {
    V value_reference;
    u32 length_reference;
    u32 run_count;
    u32 value_bit_width;
    u32 length_bit_width;
  };
  // 32 neighbouring positions: at which of them runs start, and how many runs start before the first.
  struct alignas(8) Row {
    u32 starts;
    u32 runs_before;
  };
  template <class G, u32 N>
  struct Scratch {
    V run_values[G::size * N];
    Row rows[G::size * N / cb2t::LANES];
  };

  template <class TILE>
  static __device__ __forceinline__ Metadata resolve_metadata(TILE tile) {
    const uint4 header = __ldg(reinterpret_cast<const uint4*>(tile.bytes));
    return {static_cast<V>(header.x | static_cast<u64>(header.y) << 32), header.z & 0xffff, header.z >> 16, header.w & 0xff, header.w >> 8 & 0xff};
  }

  // All threads of the group. Leaves with a barrier, since it uses scratch. Values past value_count are arbitrary.
  template <class TILE, class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G group, TILE tile, const Metadata& metadata, Scratch<G, N>& scratch, V (&values)[N]) {
    const u32* __restrict__ run_values = reinterpret_cast<const u32*>(tile.bytes + 16);
    const u32 run_count = metadata.run_count, value_bits = metadata.value_bit_width;
    const u32 value_words = cb2t::sequence::words(run_count, value_bits);
    // Both streams are asked for at once; what follows finds them in the cache.
    const u32 sectors = (value_words + cb2t::sequence::words(run_count, metadata.length_bit_width)) / 8;
    if (group.rank < sectors) cb2t::prefetch(tile.bytes + 16 + group.rank * 32);
    // Where no value repeats, runs are positions.
    const bool distinct = TILE::whole && run_count == G::size * N;
    if (group.warp() == 0 && !distinct) find_starts(group.lane(), run_values + value_words, metadata, scratch.rows);
#pragma unroll 4
    for (u32 run = group.rank; run < run_count; run += G::size) {
      scratch.run_values[run] = metadata.value_reference + cb2t::sequence::unpack<V>(run_values, run_count, run, value_bits);
    }
    group.sync();

    if (distinct) {
#pragma unroll
      for (u32 i = 0; i < N; i++) values[i] = scratch.run_values[i * G::size + group.rank];
      group.sync();
      return;
    }
    const u32 up_to_lane = cb2t::ALL_LANES >> (cb2t::LANES - 1 - group.lane());
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      const Row row = scratch.rows[group.row(i)];
      values[i] = scratch.run_values[row.runs_before + __popc(row.starts & up_to_lane) - 1];
    }
    group.sync();
  }

 private:
  // One warp. The caller owes the barrier before rows are read.
  template <u32 ROWS>
  static __device__ __forceinline__ void find_starts(u32 lane, const u32* __restrict__ run_lengths, const Metadata& metadata, Row (&rows)[ROWS]) {
    if (lane < ROWS) rows[lane].starts = 0;
    const u32 share = (metadata.run_count + cb2t::LANES - 1) / cb2t::LANES;
    const u32 first = lane * share, end = first + share < metadata.run_count ? first + share : metadata.run_count;
    u32 covered = 0;
#pragma unroll 4
    for (u32 run = first; run < end; run++) covered += length(run_lengths, run, metadata);
    u32 position = cb2t::sum_before(lane, covered);
    __syncwarp();
    u32 row = position / cb2t::LANES, bits = 0;
#pragma unroll 4
    for (u32 run = first; run < end; run++) {
      if (position / cb2t::LANES != row) {
        atomicOr(&rows[row].starts, bits);
        row = position / cb2t::LANES;
        bits = 0;
      }
      bits |= 1u << position % cb2t::LANES;
      position += length(run_lengths, run, metadata);
    }
    if (bits != 0) atomicOr(&rows[row].starts, bits);
    __syncwarp();
    const u32 runs_before = cb2t::sum_before(lane, lane < ROWS ? static_cast<u32>(__popc(rows[lane].starts)) : 0);
    if (lane < ROWS) rows[lane].runs_before = runs_before;
  }

  static __device__ __forceinline__ u32 length(const u32* __restrict__ run_lengths, u32 run, const Metadata& metadata) {
    return metadata.length_reference + cb2t::sequence::unpack<u32>(run_lengths, metadata.run_count, run, metadata.length_bit_width);
  }
};

}  // namespace codec
