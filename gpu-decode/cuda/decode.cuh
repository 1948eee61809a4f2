// Bodies of the kernels that take whole columns or ranges of rows: decode into device memory, and decode and sum without writing.
// Whole tiles, all but the ends of a range, have kernels of their own without a test. A group decodes one tile, or few neighbours, and ends; the hardware's scheduler brings the
// next: grids that stay and loop over the column, prefetching, were slower (bench/NOTES.md).

namespace cb2t {

// A codec's scratch while it decodes, then the tile on its way to device memory: written by value, read in chunks of 16 bytes.
template <class COLUMN, class G, u32 ITEMS>
struct alignas(16) Staging {
  static constexpr u32 BYTES = larger(sizeof(typename COLUMN::template Scratch<G, ITEMS>), G::size* ITEMS * sizeof(typename COLUMN::Value));
  u8 bytes[(BYTES + 15) / 16 * 16];
};

// All threads of the group. The caller owes the barrier before `staged` is read.
template <class G, class V, u32 N>
__device__ __forceinline__ void stage(G group, const V (&values)[N], V* staged) {
#pragma unroll
  for (u32 i = 0; i < N; i++) staged[i * G::size + group.rank] = values[i];
}

// Tiles first_tile to tile_end - 1, which are whole, into `out`, which is aligned to 16 bytes. THREADS a thread block; GROUP is THREADS, or 32. The grid has a group for every
// tiles_per_group neighbours.
template <class COLUMN, u32 GROUP, u32 ITEMS, u32 THREADS>
__device__ __forceinline__ void decode_whole_tiles(ColumnView column, u32 first_tile, u32 tile_end, u32 tiles_per_group, typename COLUMN::Value* out) {
  using V = typename COLUMN::Value;
  using G = Group<GROUP>;
  constexpr u32 TILE_SIZE = GROUP * ITEMS, GROUPS = THREADS / GROUP, CHUNKS = TILE_SIZE * sizeof(V) / 16;
  __shared__ Staging<COLUMN, G, ITEMS> memory[GROUPS];
  const G group = G::of_this_thread();
  u8* scratch = memory[threadIdx.x / GROUP].bytes;
  u32 tile_index = first_tile + (blockIdx.x * GROUPS + threadIdx.x / GROUP) * tiles_per_group;
  const u32 own_end = tile_index + tiles_per_group < tile_end ? tile_index + tiles_per_group : tile_end;
#pragma unroll 1
  for (; tile_index < own_end; tile_index++) {
    V values[ITEMS];
    COLUMN::template decompress_tile<true>(group, column, tile_index, column.tiles[tile_index], scratch, values);
    stage(group, values, reinterpret_cast<V*>(scratch));
    group.sync();
    uint4* to = reinterpret_cast<uint4*>(out + u64(tile_index - first_tile) * TILE_SIZE);
    const uint4* chunks = reinterpret_cast<const uint4*>(scratch);
#pragma unroll
    for (u32 chunk = 0; chunk < CHUNKS; chunk += GROUP) {
      if (CHUNKS % GROUP == 0 || chunk + group.rank < CHUNKS) __stcs(to + chunk + group.rank, chunks[chunk + group.rank]);
    }
    group.sync();
  }
}

// Rows begin to end - 1 into out[0] to out[end - begin - 1], with any alignment. The grid has a group for every tile that they touch.
template <class COLUMN, u32 GROUP, u32 ITEMS, u32 THREADS>
__device__ __forceinline__ void decode_rows(ColumnView column, u64 begin, u64 end, typename COLUMN::Value* out) {
  using V = typename COLUMN::Value;
  using G = Group<GROUP>;
  constexpr u32 TILE_SIZE = GROUP * ITEMS, GROUPS = THREADS / GROUP;
  __shared__ Staging<COLUMN, G, ITEMS> memory[GROUPS];
  const G group = G::of_this_thread();
  u8* scratch = memory[threadIdx.x / GROUP].bytes;
  const u32 tile_index = static_cast<u32>(begin / TILE_SIZE) + blockIdx.x * GROUPS + threadIdx.x / GROUP;
  const u64 first = u64(tile_index) * TILE_SIZE;
  if (first >= end) return;
  V values[ITEMS];
  COLUMN::template decompress_tile<false>(group, column, tile_index, column.tiles[tile_index], scratch, values);
  stage(group, values, reinterpret_cast<V*>(scratch));
  group.sync();
  const u32 wanted_begin = static_cast<u32>(first < begin ? begin - first : 0), wanted_end = static_cast<u32>(end - first < TILE_SIZE ? end - first : TILE_SIZE);
#pragma unroll 1
  for (u32 position = wanted_begin + group.rank; position < wanted_end; position += GROUP) out[first + position - begin] = reinterpret_cast<const V*>(scratch)[position];
}

// A thread's values, zero-extended. Up to 16 bits their sum fits a word; else two values are added to the same 64 bits at a time, which is one carry for both.
template <class V, u32 N>
__device__ __forceinline__ u64 sum_of(const V (&values)[N]) {
  if constexpr (sizeof(V) <= 2) {
    u32 sum = 0;
#pragma unroll
    for (u32 i = 0; i < N; i++) sum += values[i];
    return sum;
  } else {
    u64 sum = 0;
#pragma unroll
    for (u32 i = 0; i + 1 < N; i += 2) sum += static_cast<u64>(values[i]) + values[i + 1];
    if (N % 2 == 1) sum += values[N - 1];
    return sum;
  }
}

// Sums are spread over so many addresses: one alone would take an atomic a nanosecond.
constexpr u32 PARTIAL_SUMS = 1024;

// All threads. Adds each thread's sum to one of the partial sums.
template <u32 THREADS>
__device__ __forceinline__ void add_to_partial_sums(u64 own, u64* partial_sums) {
#pragma unroll
  for (u32 distance = LANES / 2; distance > 0; distance /= 2) own += __shfl_down_sync(ALL_LANES, own, distance);
  if (threadIdx.x % LANES == 0) atomicAdd(partial_sums + (blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES) % PARTIAL_SUMS, own);
}

// Adds the values of tiles first_tile to tile_end - 1, which are whole, to partial_sums, whose sum modulo 2^64 is the result. The grid as for decode_whole_tiles.
template <class COLUMN, u32 GROUP, u32 ITEMS, u32 THREADS>
__device__ __forceinline__ void sum_whole_tiles(ColumnView column, u32 first_tile, u32 tile_end, u32 tiles_per_group, u64* partial_sums) {
  using G = Group<GROUP>;
  constexpr u32 GROUPS = THREADS / GROUP;
  __shared__ typename COLUMN::template Scratch<G, ITEMS> memory[GROUPS];
  const G group = G::of_this_thread();
  u32 tile_index = first_tile + (blockIdx.x * GROUPS + threadIdx.x / GROUP) * tiles_per_group;
  const u32 own_end = tile_index + tiles_per_group < tile_end ? tile_index + tiles_per_group : tile_end;
  u64 own = 0;
#pragma unroll 1
  for (; tile_index < own_end; tile_index++) {
    typename COLUMN::Value values[ITEMS];
    COLUMN::template decompress_tile<true>(group, column, tile_index, column.tiles[tile_index], memory[threadIdx.x / GROUP].bytes, values);
    own += sum_of(values);
  }
  add_to_partial_sums<THREADS>(own, partial_sums);
}

// Adds the values of rows begin to end - 1 to partial_sums. The grid as for decode_rows.
template <class COLUMN, u32 GROUP, u32 ITEMS, u32 THREADS>
__device__ __forceinline__ void sum_rows(ColumnView column, u64 begin, u64 end, u64* partial_sums) {
  using G = Group<GROUP>;
  constexpr u32 TILE_SIZE = GROUP * ITEMS, GROUPS = THREADS / GROUP;
  __shared__ typename COLUMN::template Scratch<G, ITEMS> memory[GROUPS];
  const G group = G::of_this_thread();
  const u32 tile_index = static_cast<u32>(begin / TILE_SIZE) + blockIdx.x * GROUPS + threadIdx.x / GROUP;
  const u64 first = u64(tile_index) * TILE_SIZE;
  u64 own = 0;
  if (first < end) {
    typename COLUMN::Value values[ITEMS];
    COLUMN::template decompress_tile<false>(group, column, tile_index, column.tiles[tile_index], memory[threadIdx.x / GROUP].bytes, values);
    const u32 wanted_begin = static_cast<u32>(first < begin ? begin - first : 0), wanted_end = static_cast<u32>(end - first < TILE_SIZE ? end - first : TILE_SIZE);
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      if (i * GROUP + group.rank - wanted_begin >= wanted_end - wanted_begin) values[i] = 0;
    }
    own = sum_of(values);
  }
  add_to_partial_sums<THREADS>(own, partial_sums);
}

}  // namespace cb2t
