// What tuple code looks up and builds: sets, and tables of keys by index or by hash. After query.cuh.

namespace cb2t {
namespace query {

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
  __device__ __forceinline__ KEY code(KEY key) const {
    const KEY code = key - static_cast<KEY>(words[2]);
    return code < end ? code : end;
  }
};

// Rows are found from the first on: each moves those before it down by one, which takes an instruction less than putting a bit in its place.

// The lowest bit of `bits` becomes the highest of `found`.
__device__ __forceinline__ u32 with_next(u32 found, u32 bits) { return __funnelshift_r(found, bits, 1); }
// After ITEMS rows.
template <u32 ITEMS>
__device__ __forceinline__ u32 in_place(u32 found) {
  return found >> (32 - ITEMS);
}

// One bit a code.
template <class KEY>
struct BitTable : Codes<KEY> {
  using Codes<KEY>::Codes;

  // The rows that find an entry. EVERY: all rows are asked for, so there is no need to ask for few.
  template <u32 ITEMS, bool EVERY, class KEYS>
  __device__ __forceinline__ u32 has(u32 rows, KEYS key) const {
    const u32* bits = pointer<const u32>(this->words[0]);
    u32 found = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      const KEY code = this->code(key(i));
      const u32* from = kept(bits + code / 32);
      u32 word = 0;
      if (EVERY || (rows >> i & 1)) word = __ldg(from);
      found = with_next(found, word >> (code % 32));
    }
    return rows & in_place<ITEMS>(found);
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
    u32 found = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      const KEY code = this->code(key(i));
      found = with_next(found, bits[code / 32] >> (code % 32));
    }
    return rows & in_place<ITEMS>(found);
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
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      const ENTRY* from = kept(entries + this->code(key(i)));
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

}  // namespace query
}  // namespace cb2t
