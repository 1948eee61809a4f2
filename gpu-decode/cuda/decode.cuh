// Kernels' bodies that take whole columns or ranges of rows: decode into device memory, and decode and sum without writing.

namespace cb2t {

// How a whole tile gets from registers to device memory: 0 each thread its own values, 1 through shared memory in stores of 16 bytes, 2 through shared memory by the copy engine
// (from compute capability 9.0 on).
#ifndef CB2T_STORE
#define CB2T_STORE 1
#endif
#if CB2T_STORE == 2 && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900)
#undef CB2T_STORE
#define CB2T_STORE 1
#endif

// Shared memory of a group: a codec's scratch while it decodes, then a tile of values on its way to device memory.
template <class COLUMN, u32 TILE_SIZE>
struct GroupMemory {
  static constexpr u32 STAGED_BYTES = CB2T_STORE == 0 ? 0 : TILE_SIZE * sizeof(typename COLUMN::Value);
  alignas(128) u8 bytes[larger(sizeof(typename COLUMN::template Scratch<TILE_SIZE>), STAGED_BYTES)];
};

// Calls visit(tile_index, values) for this group's share of the tiles that rows begin to end - 1 touch. All threads of the group; scratch is free inside visit.
template <class COLUMN, class G, u32 ITEMS, class VISIT>
__device__ __forceinline__ void for_each_tile(G group, u32 group_index, u32 group_count, ColumnView column, u64 begin, u64 end, u8* scratch, VISIT visit) {
  constexpr u32 TILE_SIZE = G::size * ITEMS;
  const u32 tile_end = static_cast<u32>((end + TILE_SIZE - 1) / TILE_SIZE);
  u32 tile_index = static_cast<u32>(begin / TILE_SIZE) + group_index;
  if (begin >= end || tile_index >= tile_end) return;
  TileEntry entry = column.tiles[tile_index];
  while (true) {
    // The next tile's place is asked for before this tile is decoded: one dependent load less a tile.
    const u32 next_index = tile_index + group_count;
    const TileEntry next_entry = next_index < tile_end ? column.tiles[next_index] : entry;
    typename COLUMN::Value values[ITEMS];
    COLUMN::decompress_tile(group, column, tile_index, entry, scratch, values);
    visit(tile_index, values);
    if (next_index >= tile_end) return;
    tile_index = next_index;
    entry = next_entry;
  }
}

// All threads of the group, `to` aligned to 16 bytes. Leaves with a barrier, since it uses staged.
template <class G, class V, u32 N>
__device__ __forceinline__ void store_whole_tile(G group, V* to, V* staged, const V (&values)[N]) {
#if CB2T_STORE == 0
#pragma unroll
  for (u32 i = 0; i < N; i++) __stcs(to + i * G::size + group.rank, values[i]);
#else
#if CB2T_STORE == 2
  // The engine may still be reading the tile before from `staged`.
  if (group.rank == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  group.sync();
#endif
#pragma unroll
  for (u32 i = 0; i < N; i++) staged[i * G::size + group.rank] = values[i];
#if CB2T_STORE == 2
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  group.sync();
  if (group.rank == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(static_cast<u32>(__cvta_generic_to_shared(staged))),
                 "r"(static_cast<u32>(G::size * N * sizeof(V)))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
#else
  group.sync();
  constexpr u32 CHUNKS = G::size * N * sizeof(V) / 16;
  const uint4* chunks = reinterpret_cast<const uint4*>(staged);
#pragma unroll
  for (u32 chunk = 0; chunk < CHUNKS; chunk += G::size) {
    if (CHUNKS % G::size == 0 || chunk + group.rank < CHUNKS) __stcs(reinterpret_cast<uint4*>(to) + chunk + group.rank, chunks[chunk + group.rank]);
  }
  group.sync();
#endif
#endif
}

// Rows begin to end - 1 of the column into out[0] to out[end - begin - 1]. Any number of thread blocks of THREADS threads; GROUP is THREADS, or 32.
template <class COLUMN, u32 GROUP, u32 ITEMS, u32 THREADS>
__device__ __forceinline__ void decode_to_memory(ColumnView column, u64 begin, u64 end, typename COLUMN::Value* out) {
  using V = typename COLUMN::Value;
  constexpr u32 TILE_SIZE = GROUP * ITEMS, GROUPS = THREADS / GROUP;
  __shared__ GroupMemory<COLUMN, TILE_SIZE> memory[GROUPS];
  const auto group = Group<GROUP>::of_this_thread();
  u8* scratch = memory[threadIdx.x / GROUP].bytes;
  V* row_zero = out - begin;
  const bool aligned = reinterpret_cast<u64>(row_zero) % 16 == 0;
  for_each_tile<COLUMN, Group<GROUP>, ITEMS>(
      group, blockIdx.x * GROUPS + threadIdx.x / GROUP, gridDim.x * GROUPS, column, begin, end, scratch, [&](u32 tile_index, const V(&values)[ITEMS]) {
        const u64 first = u64(tile_index) * TILE_SIZE;
        if (aligned && first >= begin && first + TILE_SIZE <= end) {
          store_whole_tile(group, row_zero + first, reinterpret_cast<V*>(scratch), values);
        } else {
#pragma unroll
          for (u32 i = 0; i < ITEMS; i++) {
            const u64 row = first + i * GROUP + group.rank;
            if (row >= begin && row < end) row_zero[row] = values[i];
          }
        }
      });
#if CB2T_STORE == 2
  if (group.rank == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
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

// Adds the values of rows begin to end - 1, zero-extended, to *sum, modulo 2^64.
template <class COLUMN, u32 GROUP, u32 ITEMS, u32 THREADS>
__device__ __forceinline__ void sum_values(ColumnView column, u64 begin, u64 end, u64* sum) {
  using V = typename COLUMN::Value;
  constexpr u32 TILE_SIZE = GROUP * ITEMS, GROUPS = THREADS / GROUP;
  __shared__ typename COLUMN::template Scratch<TILE_SIZE> memory[GROUPS];
  const auto group = Group<GROUP>::of_this_thread();
  u64 own = 0;
  for_each_tile<COLUMN, Group<GROUP>, ITEMS>(
      group, blockIdx.x * GROUPS + threadIdx.x / GROUP, gridDim.x * GROUPS, column, begin, end, memory[threadIdx.x / GROUP].bytes,
      [&](u32 tile_index, const V(&values)[ITEMS]) {
        const u64 first = u64(tile_index) * TILE_SIZE;
        if (first >= begin && first + TILE_SIZE <= end) {
          own += sum_of(values);
        } else {
#pragma unroll
          for (u32 i = 0; i < ITEMS; i++) {
            const u64 row = first + i * GROUP + group.rank;
            if (row >= begin && row < end) own += values[i];
          }
        }
      });
#pragma unroll
  for (u32 distance = LANES / 2; distance > 0; distance /= 2) own += __shfl_down_sync(ALL_LANES, own, distance);
  if (group.lane() == 0) atomicAdd(sum, own);
}

}  // namespace cb2t
