// Codec rfor on the device. In plain words: unpack run values and run lengths, sum the lengths to get where each run starts, and give each position the value of the last run
// that starts at or before it. Departures:
// - The starts become a bitmap with one bit a position, so a position's run is found by counting bits: no second scan over positions, no barrier for a warp.
// - Each lane takes neighbouring lengths, so it adds most of its bits to the same word in a register before one atomic.
// - A tile in which no value repeats has as many runs as values: they are unpacked straight to where they belong.

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
  template <u32 TILE_SIZE>
  struct Scratch {
    V run_values[TILE_SIZE];
    u32 starts[TILE_SIZE / cb2t::LANES];
  };

  static __device__ __forceinline__ Metadata resolve_metadata(cb2t::Tile tile) {
    const uint4 header = __ldg(reinterpret_cast<const uint4*>(tile.bytes));
    return {static_cast<V>(header.x | static_cast<u64>(header.y) << 32), header.z & 0xffff, header.z >> 16, header.w & 0xff, header.w >> 8 & 0xff};
  }

  // All threads of the group. Leaves with a barrier, since it uses scratch. Values past value_count are arbitrary.
  template <class G, u32 N>
  static __device__ __forceinline__ void decompress_tile(G group, cb2t::Tile tile, const Metadata& metadata, Scratch<G::size * N>& scratch, V (&values)[N]) {
    constexpr u32 ROWS = G::size * N / cb2t::LANES;
    const u32* __restrict__ run_values = reinterpret_cast<const u32*>(tile.bytes + 16);
    if (metadata.run_count == G::size * N) {
#pragma unroll
      for (u32 i = 0; i < N; i++) {
        values[i] = metadata.value_reference + cb2t::sequence::unpack<V>(run_values, i * G::size + group.rank, metadata.value_bit_width);
      }
      return;
    }
    const u32* __restrict__ run_lengths = run_values + cb2t::sequence::words(metadata.run_count, metadata.value_bit_width);
    if (group.warp() == 0) mark_starts<ROWS>(group.lane(), run_lengths, metadata, scratch);
    for (u32 run = group.rank; run < metadata.run_count; run += G::size) {
      scratch.run_values[run] = metadata.value_reference + cb2t::sequence::unpack<V>(run_values, run, metadata.value_bit_width);
    }
    group.sync();

    // Lane r holds the bitmap's row r and how many runs start before it.
    const u32 lane = group.lane(), starts = lane < ROWS ? scratch.starts[lane] : 0;
    const u32 before = sum_before(lane, __popc(starts));
    const u32 up_to_lane = cb2t::ALL_LANES >> (cb2t::LANES - 1 - lane);
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      const u32 row = group.row(i);
      const u32 row_starts = __shfl_sync(cb2t::ALL_LANES, starts, row), row_before = __shfl_sync(cb2t::ALL_LANES, before, row);
      values[i] = scratch.run_values[row_before + __popc(row_starts & up_to_lane) - 1];
    }
    group.sync();
  }

 private:
  // One warp. Sets the bit of each position at which a run starts; the caller owes the barrier.
  template <u32 ROWS>
  static __device__ __forceinline__ void mark_starts(u32 lane, const u32* __restrict__ run_lengths, const Metadata& metadata, Scratch<ROWS * cb2t::LANES>& scratch) {
    if (lane < ROWS) scratch.starts[lane] = 0;
    const u32 share = (metadata.run_count + cb2t::LANES - 1) / cb2t::LANES;
    const u32 first = lane * share, end = first + share < metadata.run_count ? first + share : metadata.run_count;
    u32 covered = 0;
    for (u32 run = first; run < end; run++) covered += length(run_lengths, run, metadata);
    u32 position = sum_before(lane, covered);
    __syncwarp();
    u32 row = position / cb2t::LANES, bits = 0;
    for (u32 run = first; run < end; run++) {
      if (position / cb2t::LANES != row) {
        atomicOr(&scratch.starts[row], bits);
        row = position / cb2t::LANES;
        bits = 0;
      }
      bits |= 1u << position % cb2t::LANES;
      position += length(run_lengths, run, metadata);
    }
    if (bits != 0) atomicOr(&scratch.starts[row], bits);
  }

  static __device__ __forceinline__ u32 length(const u32* __restrict__ run_lengths, u32 run, const Metadata& metadata) {
    return metadata.length_reference + cb2t::sequence::unpack<u32>(run_lengths, run, metadata.length_bit_width);
  }

  // All lanes of the warp: the sum of `own` over the lanes before.
  static __device__ __forceinline__ u32 sum_before(u32 lane, u32 own) {
    u32 sum = own;
#pragma unroll
    for (u32 distance = 1; distance < cb2t::LANES; distance *= 2) {
      const u32 left = __shfl_up_sync(cb2t::ALL_LANES, sum, distance);
      if (lane >= distance) sum += left;
    }
    return sum - own;
  }
};

}  // namespace codec
