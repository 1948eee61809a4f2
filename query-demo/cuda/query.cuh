// What generated tuple code is made of: the tiles of a pipeline, its inputs wherever they are placed, the rows that are left, tables of keys, groups.
// A thread holds ITEMS rows of a tile: row i is position i * Group::size + rank. `rows` has bit i where row i is left. Loops over rows are unrolled, so that arrays are registers.

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;

namespace cb2t {
namespace query {

// What can go wrong in a pipeline. The host then takes no result.
constexpr u64 STATISTICS = 1, DUPLICATE = 2, FULL = 4;

// What a pipeline leaves beside its table or groups. Begins as zeros.
struct State {
  u64 flags;
  u64 end;  // of a table: the greatest code that was inserted, plus 1

  __device__ __forceinline__ void raise(u64 flag) { atomicOr(&flags, flag); }
};

template <class T>
__device__ __forceinline__ T* pointer(u64 word) {
  return reinterpret_cast<T*>(word);
}

// Adds `bit` to `rows` if `holds`. A product with 1, as the compiler cannot know, goes to the unit that multiplies; the other, for integers and logic, has most of the work.
__device__ __forceinline__ void add_if(u32& rows, bool holds, u32 bit) {
#if defined(__CUDA_ARCH__)
  asm("{\n.reg .pred holds;\nsetp.ne.u32 holds, %1, 0;\n@holds mad.lo.u32 %0, %2, %3, %0;\n}" : "+r"(rows) : "r"(static_cast<u32>(holds)), "r"(gridDim.z), "r"(bit));
#else
  if (holds) rows |= bit;
#endif
}

// The rows among the first ITEMS bits for which `holds`; asked of all rows, so `holds` must do no harm to values of rows that are gone.
template <u32 ITEMS, class PREDICATE>
__device__ __forceinline__ u32 where(PREDICATE holds) {
  u32 rows = 0;
#pragma unroll
  for (u32 i = 0; i < ITEMS; i++) {
    add_if(rows, holds(i), 1u << i);
  }
  return rows;
}

// As `where`, asked only of `rows`: for what reads memory.
template <u32 ITEMS, class PREDICATE>
__device__ __forceinline__ u32 where_left(u32 rows, PREDICATE holds) {
#pragma unroll
  for (u32 i = 0; i < ITEMS; i++) {
    if (rows >> i & 1) {
      if (!holds(i)) rows &= ~(1u << i);
    }
  }
  return rows;
}

// `rows` without those that contradict the file's statistics, which are reported.
template <u32 ITEMS, class PREDICATE>
__device__ __forceinline__ u32 proven(State* state, u32 rows, PREDICATE holds) {
  const u32 good = rows & where<ITEMS>(holds);
  if (good != rows) state->raise(STATISTICS);
  return good;
}

// Calls work(i) for each of `rows`.
template <u32 ITEMS, class WORK>
__device__ __forceinline__ void each(u32 rows, WORK work) {
#pragma unroll
  for (u32 i = 0; i < ITEMS; i++) {
    if (rows >> i & 1) work(i);
  }
}

// Calls work(i) for all rows: what is computed for rows that are gone is not used.
template <u32 ITEMS, class WORK>
__device__ __forceinline__ void all(WORK work) {
#pragma unroll
  for (u32 i = 0; i < ITEMS; i++) work(i);
}

// All threads of the group, which is a warp or the thread block: whether any of them has a row left.
template <class G>
__device__ __forceinline__ bool any(G, u32 rows) {
  if constexpr (G::size == LANES) {
    return __any_sync(ALL_LANES, rows != 0);
  } else {
    return __syncthreads_or(rows != 0);
  }
}

// All lanes of the warp: their values become part of one word in device memory.
__device__ __forceinline__ void add_all(u64 value, u64* word) {
#pragma unroll
  for (u32 distance = LANES / 2; distance > 0; distance /= 2) value += __shfl_down_sync(ALL_LANES, value, distance);
  if (threadIdx.x % LANES == 0 && value != 0) atomicAdd(word, value);
}
__device__ __forceinline__ void most_all(u64 value, u64* word) {
#pragma unroll
  for (u32 distance = LANES / 2; distance > 0; distance /= 2) {
    const u64 other = __shfl_down_sync(ALL_LANES, value, distance);
    value = other > value ? other : value;
  }
  if (threadIdx.x % LANES == 0 && value != 0) atomicMax(word, value);
}

__device__ __forceinline__ u64 greater(u64 left, u64 right) { return left > right ? left : right; }

// The tiles that a group takes, one after the other: all of the column, or those of a list. While one is worked on, the next is known and its entries are on their way.
template <class G, u32 THREADS>
struct Tiles {
  static constexpr u32 GROUPS = THREADS / G::size;
  const TileEntry* entries;
  const u32* list;
  u32 position, end;
  u32 tile, following;  // the tile at `position`, and the one behind it
  u32 value_count;      // of `tile`

  // words: list or 0, number of tiles; then the first input's.
  __device__ __forceinline__ Tiles(const u64* words, const u64* input)
      : entries(pointer<const TileEntry>(input[1])), list(pointer<const u32>(words[0])), position(blockIdx.x * GROUPS + threadIdx.x / G::size),
        end(static_cast<u32>(words[1])), tile(number(position)), following(number(position + stride())), value_count(0) {
    if (left()) value_count = entries[tile].value_count();
  }
  static __device__ __forceinline__ u32 stride() { return gridDim.x * GROUPS; }
  __device__ __forceinline__ bool left() const { return position < end; }
  __device__ __forceinline__ u32 number(u32 place) const { return list == nullptr || place >= end ? place : list[place]; }
  __device__ __forceinline__ void next() {
    position += stride();
    tile = following;
    following = number(position + stride());
    if (left()) value_count = entries[tile].value_count();
  }
  // What an input knows of the tile before it is loaded. `words` are its three arguments.
  template <class INPUT>
  __device__ __forceinline__ typename INPUT::At at(const u64* words) const {
    typename INPUT::At at{};
    if (left()) at = INPUT::at(words, tile);
    return at;
  }
  // This thread's rows of the tile: all ITEMS but in a tile that was padded.
  template <u32 ITEMS>
  __device__ __forceinline__ u32 rows(G group) const {
    const u32 own = (value_count + G::size - 1 - group.rank) / G::size;
    return own == 0 ? 0 : ALL_LANES >> (LANES - own);
  }
};

// Inputs. Tuple code sees values by row, whatever they lie in: load(), by all threads of the group, then [i]. `words` are the input's three arguments. Where a later step needs the values of the
// tile again it says again(): registers are what a thread has least of, and what was decoded a moment ago is near.

__device__ __forceinline__ ColumnView view(const u64* words) { return {pointer<const u8>(words[0]), pointer<const TileEntry>(words[1]), pointer<const u32>(words[2])}; }

// Decoded into registers.
template <class COLUMN, class G, u32 ITEMS>
struct InRegisters {
  using V = typename COLUMN::Value;
  struct Place {};
  using At = TileEntry;
  V values[ITEMS];

  static __device__ __forceinline__ At at(const u64* words, u32 tile) { return view(words).tiles[tile]; }
  __device__ __forceinline__ void load(G group, const u64* words, u32 tile, At at, u8* scratch, Place&) {
    COLUMN::template decompress_tile<true>(group, view(words), tile, at, scratch, values);
  }
  __device__ __forceinline__ void again(G group, const u64* words, u32 tile, At at, u8* scratch, Place& place) { load(group, words, tile, at, scratch, place); }
  __device__ __forceinline__ V operator[](u32 i) const { return values[i]; }
};

// Decoded into memory that the group has for one tile, shared or global. A thread reads only what it wrote; the barrier is there for the memory's sake: values come from it.
template <class COLUMN, class G, u32 ITEMS>
struct InMemory {
  using V = typename COLUMN::Value;
  struct Place {
    V values[G::size * ITEMS];
  };
  using At = TileEntry;
  const V* own;

  static __device__ __forceinline__ At at(const u64* words, u32 tile) { return view(words).tiles[tile]; }
  __device__ __forceinline__ void load(G group, const u64* words, u32 tile, At at, u8* scratch, Place& place) {
    V values[ITEMS];
    COLUMN::template decompress_tile<true>(group, view(words), tile, at, scratch, values);
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) place.values[i * G::size + group.rank] = values[i];
    group.sync();
    own = place.values + group.rank;
  }
  __device__ __forceinline__ void again(G group, const u64*, u32, At, u8*, Place& place) { own = place.values + group.rank; }
  __device__ __forceinline__ V operator[](u32 i) const { return own[i * G::size]; }
};

// Decoded by another kernel before: whole columns of values, tile after tile.
template <class VALUE, class G, u32 ITEMS>
struct Decoded {
  using V = VALUE;
  struct Place {};
  struct At {};
  V values[ITEMS];

  static __device__ __forceinline__ At at(const u64*, u32) { return {}; }
  __device__ __forceinline__ void load(G group, const u64* words, u32 tile, At, u8*, Place&) {
    const V* from = pointer<const V>(words[0]) + u64(tile) * (G::size * ITEMS) + group.rank;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) values[i] = __ldcs(from + i * G::size);
  }
  __device__ __forceinline__ void again(G group, const u64* words, u32 tile, At at, u8* scratch, Place& place) { load(group, words, tile, at, scratch, place); }
  __device__ __forceinline__ V operator[](u32 i) const { return values[i]; }
};

template <class G, u32 ITEMS, class... COLUMNS>
__device__ constexpr u32 scratch_bytes() {
  u32 bytes = 16;
  ((bytes = larger(bytes, static_cast<u32>(sizeof(typename COLUMNS::template Scratch<G, ITEMS>)))), ...);
  return bytes;
}

// Bytes of shared memory that a thread block can have.
constexpr u32 SHARED_BYTES = 48 << 10;

// Threads of a thread block, at most MOST, in which each group's BYTES of shared memory leave some for more.
template <class G, u32 MOST, u32 BYTES>
__device__ constexpr u32 fitting_threads() {
  u32 threads = MOST;
  while (threads > G::size && threads / G::size * BYTES > SHARED_BYTES * 3 / 4) threads /= 2;
  return threads;
}

// Shared memory of a thread block: each group's scratch for decoding, and its places.
template <class PLACES, u32 SCRATCH_BYTES, u32 GROUPS>
struct SharedPlaces {
  struct OfGroup {
    alignas(16) u8 scratch[SCRATCH_BYTES];
    PLACES places;
  };
  OfGroup groups[GROUPS];

  __device__ __forceinline__ u8* scratch(u32 group) { return groups[group].scratch; }
  __device__ __forceinline__ PLACES& places(u32 group, u64) { return groups[group].places; }
};

// The same with the places in device memory, at `stage`: as many as the grid has groups.
template <class PLACES, u32 SCRATCH_BYTES, u32 GROUPS>
struct StagedPlaces {
  struct OfGroup {
    alignas(16) u8 scratch[SCRATCH_BYTES];
  };
  OfGroup groups[GROUPS];

  __device__ __forceinline__ u8* scratch(u32 group) { return groups[group].scratch; }
  __device__ __forceinline__ PLACES& places(u32 group, u64 stage) { return pointer<PLACES>(stage)[blockIdx.x * GROUPS + group]; }
};

}  // namespace query
}  // namespace cb2t
