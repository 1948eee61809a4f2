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
    // Both streams are asked for before the first is needed: runs of 4 are a tenth faster with this order (bench/NOTES.md).
    const u32 sectors = (value_words + cb2t::sequence::words(run_count, metadata.length_bit_width)) / 8;
    if (group.rank < sectors) cb2t::keep_order(tile.bytes + 16 + group.rank * 32);
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

  // Encoding, by warps. Positions past value_count hold a copy of one of the tile's values.

  template <class G, u32 N>
  struct EncodeScratch {
    V run_values[G::size * N];
    u16 run_starts[G::size * N + 1];
  };

  // All lanes of the warp.
  template <class G, u32 N>
  static __device__ __forceinline__ Metadata choose_metadata(G group, const V (&values)[N], u32 value_count) {
    const u32 lane = group.lane();
    u32 shortest[1] = {0xffffffffu}, longest[1] = {0}, run_count = 0;
    // From the last row on, so that it is known where the run behind a row starts.
    u32 next = value_count;
#pragma unroll
    for (u32 i = N; i-- > 0;) {
      const u32 starts = starts_of_row(group, values, i, value_count), position = i * cb2t::LANES + lane;
      const u32 further = starts >> lane >> 1, length = (further != 0 ? position + __ffs(further) : next) - position;
      const bool is_start = starts >> lane & 1;
      shortest[0] = is_start && length < shortest[0] ? length : shortest[0];
      longest[0] = is_start && length > longest[0] ? length : longest[0];
      run_count += __popc(starts);
      next = starts != 0 ? i * cb2t::LANES + __ffs(starts) - 1 : next;
    }
    const u32 length_reference = cb2t::warp_range<u32>(shortest, 0).min, most = cb2t::warp_range<u32>(longest, 0).max;
    // Every value is one of a run.
    const cb2t::Reference<V> best = cb2t::best_reference(values);
    return {best.reference, length_reference, run_count, best.bit_width, cb2t::bit_width(most - length_reference)};
  }

  static __device__ __forceinline__ u32 tile_words(const Metadata& metadata, u32) {
    return 4 + cb2t::sequence::words(metadata.run_count, metadata.value_bit_width) + cb2t::sequence::words(metadata.run_count, metadata.length_bit_width);
  }

  // All lanes of the warp. Leaves with a barrier, since it uses scratch.
  template <class G, u32 N>
  static __device__ __forceinline__ void encode_tile(G group, const Metadata& metadata, const V (&values)[N], u32 value_count, EncodeScratch<G, N>& scratch, u32* tile) {
    const u64 reference = metadata.value_reference;
    const u32 header[4] = {static_cast<u32>(reference), static_cast<u32>(reference >> 32), metadata.length_reference | metadata.run_count << 16,
                           metadata.value_bit_width | metadata.length_bit_width << 8};
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      if (group.rank == i) tile[i] = header[i];
    }
    u32 runs_before = 0;
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      const u32 starts = starts_of_row(group, values, i, value_count), run = runs_before + __popc(starts & ((1u << group.lane()) - 1));
      if (starts >> group.lane() & 1) {
        scratch.run_values[run] = static_cast<V>(values[i] - metadata.value_reference);
        scratch.run_starts[run] = static_cast<u16>(i * cb2t::LANES + group.lane());
      }
      runs_before += __popc(starts);
    }
    if (group.rank == 0) scratch.run_starts[metadata.run_count] = static_cast<u16>(value_count);
    group.sync();
    u32* run_values = tile + 4;
    u32* run_lengths = run_values + cb2t::sequence::words(metadata.run_count, metadata.value_bit_width);
    cb2t::sequence::pack(group, metadata.run_count, metadata.value_bit_width, run_values, [&](u32 run) { return scratch.run_values[run]; });
    cb2t::sequence::pack(group, metadata.run_count, metadata.length_bit_width, run_lengths,
                         [&](u32 run) { return scratch.run_starts[run + 1] - scratch.run_starts[run] - metadata.length_reference; });
    group.sync();
  }

 private:
  // All lanes of the warp: at which positions of row i runs start.
  template <class G, u32 N>
  static __device__ __forceinline__ u32 starts_of_row(G group, const V (&values)[N], u32 i, u32 value_count) {
    static_assert(G::size == cb2t::LANES, "a warp finds runs");
    const V left = __shfl_up_sync(cb2t::ALL_LANES, values[i], 1), last_of_row = __shfl_sync(cb2t::ALL_LANES, values[i > 0 ? i - 1 : 0], cb2t::LANES - 1);
    const bool is_first = i == 0 && group.lane() == 0, differs = values[i] != (group.lane() > 0 ? left : last_of_row);
    return __ballot_sync(cb2t::ALL_LANES, (is_first || differs) && i * cb2t::LANES + group.lane() < value_count);
  }

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
