// What every codec's device half builds on: integer names, the group of threads that decodes a tile together, and the tile.
// Includes nothing. Order of the files in a program: prelude.cuh, packing.cuh, encoding.cuh, codec-*/cuda/*.cuh, column.cuh, then the kernels.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

namespace cb2t {

constexpr u32 LANES = 32;
constexpr u32 ALL_LANES = 0xffffffffu;

// The threads that decode one tile together. 32 threads are a warp, of which a thread block may have several; more than 32 are a whole thread block.
// Value i of a thread is the tile's position i * size + rank, for every codec and every width.
template <u32 SIZE>
struct Group {
  static constexpr u32 size = SIZE;
  static constexpr u32 warps = SIZE / LANES;
  u32 rank;

  static __device__ __forceinline__ Group of_this_thread() { return {threadIdx.x % SIZE}; }
  __device__ __forceinline__ u32 lane() const { return rank % LANES; }
  __device__ __forceinline__ u32 warp() const { return SIZE == LANES ? 0 : rank / LANES; }
  // Row of 32 neighbouring positions that holds value i of this thread.
  __device__ __forceinline__ u32 row(u32 i) const { return i * warps + warp(); }
  // All threads of the group.
  __device__ __forceinline__ void sync() const {
    if constexpr (SIZE == LANES) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
};

// One encoded tile. Its bytes are proven: nothing here or in a codec checks bounds. WHOLE: it has as many values as its group decodes, so code for it needs no tests.
template <bool WHOLE>
struct Tile {
  static constexpr bool whole = WHOLE;
  const u8* bytes;   // aligned to 16
  const u8* shared;  // what the block keeps for all its tiles
  u32 value_count;
};

// Keeps the compiler from moving what comes before it behind it, and the other way round. It asks memory for nothing: ptxas deletes the load, whose result nobody uses, once all is in its order.
__device__ __forceinline__ void keep_order(const u8* line) {
#if defined(__CUDA_ARCH__)
  u32 unused;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(unused) : "l"(line));
  (void)unused;
#else
  (void)line;
#endif
}

// Scratch of codecs that need none.
struct NoScratch {};

template <bool CONDITION, class THEN, class ELSE>
struct Either {
  using Type = THEN;
};
template <class THEN, class ELSE>
struct Either<false, THEN, ELSE> {
  using Type = ELSE;
};

}  // namespace cb2t
