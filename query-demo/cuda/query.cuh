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

// A set of integers from 0 on, as bits. words: address, number of words.
template <class KEY>
__device__ __forceinline__ bool in_set(const u64* words, KEY bit) {
  return bit / 32 < static_cast<KEY>(words[1]) && (__ldg(pointer<const u32>(words[0]) + bit / 32) >> (bit % 32) & 1);
}

// An address that stays in a register: the compiler would otherwise read its base from the arguments again for every row.
template <class T>
__device__ __forceinline__ const T* kept(const T* address) {
#if defined(__CUDA_ARCH__)
  asm("" : "+l"(address));
#endif
  return address;
}

// Tables of keys. A key's code is key - min of the domain, in 32 bits where both fit (KEY). Codes past the greatest that was inserted stand for it plus 1, of which there is no entry: so
// a key outside the domain finds nothing, and no load needs a test. words: entries, state, min.
template <class KEY>
struct Codes {
  const u64* words;
  KEY end;  // the greatest code that was inserted, plus 1

  __device__ __forceinline__ explicit Codes(const u64* words) : words(words), end(static_cast<KEY>(pointer<const State>(words[1])->end)) {}
  __device__ __forceinline__ KEY code(KEY key) const { return code(key, end); }
  __device__ __forceinline__ KEY code(KEY key, KEY last) const {
    const KEY code = key - static_cast<KEY>(words[2]);
    return code < last ? code : last;
  }
};

// `end`, but known only when the keys are: the compiler would else begin to look up the first before it has asked memory for the last, and wait many times instead of once.
template <u32 ITEMS, class KEY, class KEYS>
__device__ __forceinline__ KEY after_keys(KEY end, KEYS key) {
#if defined(__CUDA_ARCH__)
  KEY all = key(0);
#pragma unroll
  for (u32 i = 1; i < ITEMS; i++) all &= key(i);
  // 0, as no grid here has a third dimension, which the compiler cannot know.
  return end | (all & static_cast<KEY>(gridDim.z - 1));
#else
  return end;
#endif
}

// One bit a code.
template <class KEY>
struct BitTable : Codes<KEY> {
  using Codes<KEY>::Codes;

  // The rows that find an entry. EVERY: all rows are asked for, so there is no need to ask for few.
  template <u32 ITEMS, bool EVERY, class KEYS>
  __device__ __forceinline__ u32 has(u32 rows, KEYS key) const {
    const u32* bits = pointer<const u32>(this->words[0]);
    const KEY end = after_keys<ITEMS>(this->end, key);
    u32 found = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      const KEY code = this->code(key(i), end);
      const u32* from = kept(bits + code / 32);
      u32 word = 0;
      if (EVERY || (rows >> i & 1)) word = __ldg(from);
      found |= (word >> (code % 32) & 1) << i;
    }
    return rows & found;
  }
};

// Shared memory that a launch adds to what its kernel declares, up to 64 KiB of it here.
__device__ __forceinline__ u32* added_shared() {
#if defined(__CUDA_ARCH__)
  extern __shared__ u32 added[];
#else
  static u32 added[1 << 14];
#endif
  return added;
}

// The same bits, copied to shared memory by each thread block: there a look-up for any row costs less than asking whether the row is left.
template <class KEY>
struct NearBitTable : Codes<KEY> {
  const u32* bits;

  // All threads, which have a barrier to pass before the first look-up. `near` has room for the bits of the whole domain.
  __device__ __forceinline__ NearBitTable(const u64* words, u32* near) : Codes<KEY>(words), bits(near) {
    const u32* from = pointer<const u32>(words[0]);
    for (KEY word = threadIdx.x; word <= this->end / 32; word += blockDim.x) near[word] = from[word];
  }
  template <u32 ITEMS, bool, class KEYS>
  __device__ __forceinline__ u32 has(u32 rows, KEYS key) const {
    const KEY end = after_keys<ITEMS>(this->end, key);
    u32 found = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      const KEY code = this->code(key(i), end);
      found |= (bits[code / 32] >> (code % 32) & 1) << i;
    }
    return rows & found;
  }
};

// One entry a code; all ones where there is none.
template <class KEY, class ENTRY>
struct DirectTable : Codes<KEY> {
  using Codes<KEY>::Codes;
  static constexpr ENTRY ABSENT = static_cast<ENTRY>(~ENTRY(0));

  // The rows that find an entry, and what they find. All loads are asked for before the first is looked at.
  template <u32 ITEMS, bool EVERY, class KEYS, class E>
  __device__ __forceinline__ u32 find(u32 rows, KEYS key, E (&found)[ITEMS]) const {
    const ENTRY* entries = pointer<const ENTRY>(this->words[0]);
    const KEY end = after_keys<ITEMS>(this->end, key);
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      const ENTRY* from = kept(entries + this->code(key(i), end));
      found[i] = ABSENT;
      if (EVERY || (rows >> i & 1)) found[i] = __ldg(from);
    }
    return rows & where<ITEMS>([&](u32 i) { return found[i] != ABSENT; });
  }
  template <u32 ITEMS, bool EVERY, class KEYS>
  __device__ __forceinline__ u32 has(u32 rows, KEYS key) const {
    ENTRY found[ITEMS];
    return find<ITEMS, EVERY>(rows, key, found);
  }
};

// Slots are tried one after the other from here on. Multiplying spreads the codes; the highest bits are the slot.
struct Slots {
  u64 mask;
  u32 shift;

  __device__ __forceinline__ explicit Slots(u64 count) : mask(count - 1), shift(__clzll(static_cast<i64>(count - 1))) {}
  // Of the `attempt`-th try. There are at least two slots.
  __device__ __forceinline__ u64 slot(u64 stored, u32 attempt) const { return ((stored * 0x9e3779b97f4a7c15ull >> shift) + attempt) & mask; }
};
// Tries before a table counts as full: half full, the longest way is a few dozen.
constexpr u32 ATTEMPTS = 512;

// Linear probing: code + 1 in each slot, 0 where it is free. Two more words: keys, slots. NoEntry: existence only.
struct NoEntry {};
template <class KEY, class ENTRY>
struct HashTable : Codes<KEY> {
  using Codes<KEY>::Codes;

  template <u32 ITEMS, class KEYS, class FOUND>
  __device__ __forceinline__ u32 search(u32 rows, KEYS key, FOUND at) const {
    const u64* keys = pointer<const u64>(this->words[3]);
    const Slots slots(this->words[4]);
    u32 open = rows & where<ITEMS>([&](u32 i) { return this->code(key(i)) != this->end; }), found = 0;
    // A thread that has found all its rows waits for the others of its warp.
#pragma unroll 1
    for (u32 attempt = 0; open != 0 && attempt < ATTEMPTS; attempt++) {
#pragma unroll
      for (u32 i = 0; i < ITEMS; i++) {
        if (open >> i & 1) {
          const u64 wanted = u64(this->code(key(i))) + 1, slot = slots.slot(wanted, attempt), stored = __ldg(keys + slot);
          if (stored == wanted) {
            found |= 1u << i;
            at(i, slot);
          }
          if (stored == wanted || stored == 0) open &= ~(1u << i);
        }
      }
    }
    return found;
  }
  template <u32 ITEMS, bool, class KEYS, class E>
  __device__ __forceinline__ u32 find(u32 rows, KEYS key, E (&found)[ITEMS]) const {
    const ENTRY* entries = pointer<const ENTRY>(this->words[0]);
    return search<ITEMS>(rows, key, [&](u32 i, u64 slot) { found[i] = __ldg(entries + slot); });
  }
  template <u32 ITEMS, bool, class KEYS>
  __device__ __forceinline__ u32 has(u32 rows, KEYS key) const {
    return search<ITEMS>(rows, key, [](u32, u64) {});
  }
};

// The greatest code that a thread inserted, plus 1, until the end of the kernel.
struct Inserted {
  u64 end = 0;

  __device__ __forceinline__ void add(u64 code) { end = code + 1 > end ? code + 1 : end; }
  // All lanes of the warp.
  __device__ __forceinline__ void leave(State* state) { most_all(end, &state->end); }
};

// Builds. UNIQUE: a second row with the same key is reported. Codes are within the domain.
template <bool UNIQUE>
struct BitBuild {
  u32* bits;
  State* state;

  __device__ __forceinline__ BitBuild(const u64* words, State* state) : bits(pointer<u32>(words[0])), state(state) {}
  template <u32 ITEMS, class CODES>
  __device__ __forceinline__ void insert(u32 rows, CODES code, Inserted& inserted) {
    each<ITEMS>(rows, [&](u32 i) {
      const u64 own = code(i);
      const u32 bit = 1u << own % 32;
      inserted.add(own);
      // Where many rows have few keys, most find the bit set, and reading is cheaper.
      if (!UNIQUE && (bits[own / 32] & bit)) return;
      const u32 before = atomicOr(bits + own / 32, bit);
      if (UNIQUE && (before & bit)) state->raise(DUPLICATE);
    });
  }
};

template <class ENTRY, bool UNIQUE>
struct DirectBuild {
  ENTRY* entries;
  u32* seen;
  State* state;

  // words: entries, bits of the codes seen.
  __device__ __forceinline__ DirectBuild(const u64* words, State* state) : entries(pointer<ENTRY>(words[0])), seen(pointer<u32>(words[1])), state(state) {}
  template <u32 ITEMS, class CODES, class ENTRIES>
  __device__ __forceinline__ void insert(u32 rows, CODES code, ENTRIES entry, Inserted& inserted) {
    each<ITEMS>(rows, [&](u32 i) {
      const u64 own = code(i);
      inserted.add(own);
      entries[own] = static_cast<ENTRY>(entry(i));
      const u32 bit = 1u << own % 32, before = atomicOr(seen + own / 32, bit);
      if (UNIQUE && (before & bit)) state->raise(DUPLICATE);
    });
  }
};

// The rows' slots among `keys`, where a stored key is not 0. fresh(i, slot, whether the key is new) follows. The rows that found no room remain.
template <u32 ITEMS, class STORED, class FRESH>
__device__ __forceinline__ u32 claim(u32 open, Slots slots, u64* keys, STORED stored, FRESH fresh) {
#pragma unroll 1
  for (u32 attempt = 0; open != 0 && attempt < ATTEMPTS; attempt++) {
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      if (open >> i & 1) {
        const u64 own = stored(i), slot = slots.slot(own, attempt);
        u64 there = keys[slot];
        if (there == 0) there = atomicCAS(keys + slot, u64(0), own);
        if (there == 0 || there == own) {
          open &= ~(1u << i);
          fresh(i, slot, there == 0);
        }
      }
    }
  }
  return open;
}

template <class ENTRY, bool UNIQUE>
struct HashBuild {
  ENTRY* entries;
  u64* keys;
  Slots slots;
  State* state;

  // words: entries, keys, slots.
  __device__ __forceinline__ HashBuild(const u64* words, State* state) : entries(pointer<ENTRY>(words[0])), keys(pointer<u64>(words[1])), slots(words[2]), state(state) {}
  template <u32 ITEMS, class CODES, class ENTRIES>
  __device__ __forceinline__ void insert(u32 rows, CODES code, ENTRIES entry, Inserted& inserted) {
    const u32 open = claim<ITEMS>(rows, slots, keys, [&](u32 i) { return code(i) + 1; }, [&](u32 i, u64 slot, bool fresh) {
      inserted.add(code(i));
      entries[slot] = static_cast<ENTRY>(entry(i));
      if (UNIQUE && !fresh) state->raise(DUPLICATE);
    });
    if (open != 0) state->raise(FULL);
  }
  template <u32 ITEMS, class CODES>
  __device__ __forceinline__ void insert(u32 rows, CODES code, Inserted& inserted) {
    const u32 open = claim<ITEMS>(rows, slots, keys, [&](u32 i) { return code(i) + 1; }, [&](u32 i, u64, bool fresh) {
      inserted.add(code(i));
      if (UNIQUE && !fresh) state->raise(DUPLICATE);
    });
    if (open != 0) state->raise(FULL);
  }
};

// Where each row's group is: sums of code * stride.
template <class T, u32 ITEMS>
struct Indexes {
  T values[ITEMS];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) values[i] = 0;
  }
  // To the indexes of `rows`; those of rows that are gone may be anything.
  template <class CODES>
  __device__ __forceinline__ void add(u32, CODES code, T stride) {
    all<ITEMS>([&](u32 i) { values[i] += code(i) * stride; });
  }
  __device__ __forceinline__ T operator[](u32 i) const { return values[i]; }
};

// Those below 2^16, two in a register. A row that is gone could carry into its neighbour.
template <u32 ITEMS>
struct Indexes<u16, ITEMS> {
  u32 pairs[(ITEMS + 1) / 2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (u32 i = 0; i < (ITEMS + 1) / 2; i++) pairs[i] = 0;
  }
  template <class CODES>
  __device__ __forceinline__ void add(u32 rows, CODES code, u32 stride) {
    each<ITEMS>(rows, [&](u32 i) { pairs[i / 2] += code(i) * (i % 2 == 0 ? stride : stride << 16); });
  }
  __device__ __forceinline__ u32 operator[](u32 i) const { return i % 2 == 0 ? pairs[i / 2] & 0xffff : pairs[i / 2] >> 16; }
};

// Groups: words of 64 bits, to which rows are added or of which the greatest stays.

// In device memory. A word's place is its number * PLACE.
template <u32 PLACE>
struct GlobalGroups {
  struct Memory {};
  u64* words;

  __device__ __forceinline__ GlobalGroups(Memory&, u64* words) : words(words) {}
  __device__ __forceinline__ void add(u64 place, u64 value) { atomicAdd(words + place / PLACE, value); }
  // To a sum that is known to stay below 2^32.
  __device__ __forceinline__ void add_low(u64 place, u64 value) { add(place, value); }
  __device__ __forceinline__ void most(u64 place, u64 value) { atomicMax(words + place / PLACE, value); }
  template <u32 EACH, u64 MOST>
  __device__ __forceinline__ void leave(u32) {}
};

// Groups of a thread block, in shared memory until the end of the kernel. Few groups have several copies, for different lanes, so that rows of a warp do not wait for each other. A word's
// place is in bytes: word * COPIES * 8.
template <u32 WORDS, u32 COPIES>
struct SharedGroups {
  struct Memory {
    u64 words[WORDS * COPIES];
  };
  Memory& memory;
  u64* to;
  u32 own_copy;  // in bytes; on the device the address in shared memory

  // All threads. Leaves with a barrier. `to` is where the groups are added up in device memory.
  __device__ __forceinline__ SharedGroups(Memory& memory, u64* to) : memory(memory), to(to), own_copy(threadIdx.x % COPIES * 8) {
#if defined(__CUDA_ARCH__)
    own_copy += static_cast<u32>(__cvta_generic_to_shared(memory.words));
    asm("" : "+r"(own_copy));
#endif
    for (u32 word = threadIdx.x; word < WORDS * COPIES; word += blockDim.x) memory.words[word] = 0;
    __syncthreads();
  }
  // Adds to 32 bits, which is what there are atomics for, and returns what they were.
  __device__ __forceinline__ u32 add_half(u32 place, u32 value) {
#if defined(__CUDA_ARCH__)
    u32 before;
    asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(before) : "r"(own_copy + place), "r"(value) : "memory");
    return before;
#else
    u32* half = reinterpret_cast<u32*>(reinterpret_cast<u8*>(memory.words) + own_copy + place);
    return atomicAdd(half, value);
#endif
  }
  // The low half is added first; what it carries goes to the high one.
  __device__ __forceinline__ void add(u32 place, u32 value) {
    if (add_half(place, value) + value < value) add_half(place + 4, 1);
  }
  __device__ __forceinline__ void add(u32 place, u64 value) {
    const u32 low = static_cast<u32>(value), before = add_half(place, low);
    const u32 high = static_cast<u32>(value >> 32) + (before + low < low ? 1 : 0);
    if (high != 0) add_half(place + 4, high);
  }
  // To a sum that is known to stay below 2^32.
  __device__ __forceinline__ void add_low(u32 place, u32 value) {
#if defined(__CUDA_ARCH__)
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(own_copy + place), "r"(value) : "memory");
#else
    add_half(place, value);
#endif
  }
  __device__ __forceinline__ void most(u32 place, u64 value) {
    u64& word = memory.words[place / 8 + threadIdx.x % COPIES];
    if (word < value) atomicMax(&word, value);
  }
  // All threads, with a barrier first. Of EACH words a group, those of the set MOST keep the greatest.
  template <u32 EACH, u64 MOST>
  __device__ __forceinline__ void leave(u32 count) {
    __syncthreads();
    for (u32 word = threadIdx.x; word < count; word += blockDim.x) {
      const bool most = MOST >> (word % EACH) & 1;
      u64 whole = 0;
      for (u32 copy = 0; copy < COPIES; copy++) {
        const u64 part = memory.words[word * COPIES + (word + copy) % COPIES];
        whole = most ? greater(whole, part) : whole + part;
      }
      if (whole == 0) continue;
      if (most) {
        atomicMax(to + word, whole);
      } else {
        atomicAdd(to + word, whole);
      }
    }
  }
};

// Groups by index, in shared memory where USED bytes of a thread block's leave room for them.
template <u32 WORDS, u32 COPIES, u32 USED>
using DenseGroups = typename Either<WORDS * COPIES * 8 + USED <= SHARED_BYTES, SharedGroups<WORDS, COPIES>, GlobalGroups<COPIES * 8>>::Type;

// Groups by hash. A slot's key is a group's index + 1.
struct HashGroups {
  u64* keys;
  Slots slots;
  State* state;

  __device__ __forceinline__ HashGroups(u64 keys, u64 slots, State* state) : keys(pointer<u64>(keys)), slots(slots), state(state) {}
  // The group's slot in place of its index. Returns the rows that have one.
  template <u32 ITEMS>
  __device__ __forceinline__ u32 locate(u32 rows, Indexes<u64, ITEMS>& index) {
    const u32 open = claim<ITEMS>(rows, slots, keys, [&](u32 i) { return index[i] + 1; }, [&](u32 i, u64 slot, bool) { index.values[i] = slot; });
    if (open != 0) state->raise(FULL);
    return rows & ~open;
  }
};

// The groups that exist, one after the other: index, words. words: keys (0: a group's index is its place), words, slots, words a group, which of them tells that the group exists,
// where their number goes, where they go.
__device__ __forceinline__ void compact(const u64* words) {
  const u64* keys = pointer<const u64>(words[0]);
  const u64* groups = pointer<const u64>(words[1]);
  const u64 slots = words[2], each = words[3], presence = words[4];
  u64* count = pointer<u64>(words[5]);
  u64* records = pointer<u64>(words[6]);
  const u64 stride = u64(gridDim.x) * blockDim.x, rounded = (slots + LANES - 1) / LANES * LANES;
  for (u64 slot = u64(blockIdx.x) * blockDim.x + threadIdx.x; slot < rounded; slot += stride) {
    const bool exists = slot < slots && (keys != nullptr ? keys[slot] != 0 : groups[slot * each + presence] != 0);
    const u32 mates = __ballot_sync(ALL_LANES, exists), lane = threadIdx.x % LANES;
    if (mates == 0) continue;
    u64 first = 0;
    if (lane == 0) first = atomicAdd(count, u64(__popc(mates)));
    first = __shfl_sync(ALL_LANES, first, 0);
    if (!exists) continue;
    u64* record = records + (first + __popc(mates & ((1u << lane) - 1))) * (each + 1);
    record[0] = keys != nullptr ? keys[slot] - 1 : slot;
    for (u64 word = 0; word < each; word++) record[1 + word] = groups[slot * each + word];
  }
}

}  // namespace query
}  // namespace cb2t
