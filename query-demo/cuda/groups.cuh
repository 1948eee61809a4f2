// Where tuple code aggregates: rows' indexes, groups in device or shared memory, and their collection. After tables.cuh.

namespace cb2t {
namespace query {

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
