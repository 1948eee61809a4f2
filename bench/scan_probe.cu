// How many warps a multiprocessor needs to read four packed columns one after the other, as a scan does: nvcc -std=c++17 -O3 -arch=sm_90 -o scan_probe bench/scan_probe.cu && ./scan_probe
// Columns of 4, 6, 16 and 24 bits, 600 M rows in tiles of 1024 with headers of 16 bytes. A warp loads a column's words of a tile, waits for all, does as much arithmetic as filters would, votes, and goes to the next.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef unsigned int u32;
typedef unsigned long long u64;

#define CHECK(call)                                                \
  do {                                                             \
    const cudaError_t error = (call);                              \
    if (error != cudaSuccess) {                                    \
      std::printf("%s: %s\n", #call, cudaGetErrorString(error));   \
      std::exit(1);                                                \
    }                                                              \
  } while (0)

constexpr u32 ALL = 0xffffffffu, TILES = 586000;
constexpr u32 WIDTHS[4] = {4, 6, 16, 24};

struct Columns {
  const unsigned char* bytes[4];
};

template <u32 WIDTH>
__device__ __forceinline__ u32 column(const unsigned char* bytes, u32 tile, u32 lane, u32 sum) {
  const unsigned char* own = bytes + u64(tile) * (WIDTH * 128 + 16);
  const uint4 header = __ldg(reinterpret_cast<const uint4*>(own));
  u32 words[WIDTH], all = header.x;
#pragma unroll
  for (u32 k = 0; k < WIDTH; k++) words[k] = __ldcs(reinterpret_cast<const u32*>(own + 16) + k * 32 + lane);
#pragma unroll
  for (u32 k = 0; k < WIDTH; k++) all &= words[k];
  // 0, but known only when all words are.
  sum += all & (gridDim.z - 1);
#pragma unroll
  for (u32 k = 0; k < WIDTH; k++) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) sum = (sum ^ words[k]) * 0x9e3779b1u + (words[k] >> (i + 1));
  }
  return sum;
}

// THREADS a multiprocessor; with 0, a grid that has a warp for every tile.
template <u32 THREADS>
__global__ void __launch_bounds__(THREADS == 0 ? 128 : THREADS, 1) scan(Columns columns, u32* out) {
  const u32 lane = threadIdx.x % 32, warps = blockDim.x / 32;
  u32 sum = 0;
  for (u32 tile = blockIdx.x * warps + threadIdx.x / 32; tile < TILES; tile += gridDim.x * warps) {
    sum = column<4>(columns.bytes[0], tile, lane, sum);
    if (!__any_sync(ALL, sum != 0x12345)) continue;
    sum = column<6>(columns.bytes[1], tile, lane, sum);
    if (!__any_sync(ALL, sum != 0x12345)) continue;
    sum = column<16>(columns.bytes[2], tile, lane, sum);
    if (!__any_sync(ALL, sum != 0x12345)) continue;
    sum = column<24>(columns.bytes[3], tile, lane, sum);
  }
  // Never true in all likelihood, but the compiler cannot know.
  if (sum == 0x1234567) *out = sum;
}

template <u32 THREADS>
void measure(const char* name, Columns columns, u32* out, u32 multiprocessors) {
  const u32 block = THREADS == 0 ? 128 : THREADS, blocks = THREADS == 0 ? (TILES + 3) / 4 : multiprocessors;
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<float> all;
  for (int run = 0; run < 13; run++) {
    CHECK(cudaEventRecord(begin));
    scan<THREADS><<<blocks, block>>>(columns, out);
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    all.push_back(milliseconds);
  }
  std::sort(all.begin(), all.end());
  double bytes = 0;
  for (u32 width : WIDTHS) bytes += double(TILES) * (width * 128 + 16);
  std::printf("%-32s %.3f ms, %.0f GB/s\n", name, all[all.size() / 2], bytes / all[all.size() / 2] / 1e6);
}

int main() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  const u32 multiprocessors = static_cast<u32>(device.multiProcessorCount);
  Columns columns;
  for (u32 index = 0; index < 4; index++) {
    const size_t bytes = size_t(TILES) * (WIDTHS[index] * 128 + 16);
    unsigned char* memory = nullptr;
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMemset(memory, 0x5a + static_cast<int>(index), bytes));
    columns.bytes[index] = memory;
  }
  u32* out = nullptr;
  CHECK(cudaMalloc(&out, sizeof(u32)));
  measure<512>("16 warps a multiprocessor", columns, out, multiprocessors);
  measure<640>("20 warps", columns, out, multiprocessors);
  measure<768>("24 warps", columns, out, multiprocessors);
  measure<1024>("32 warps", columns, out, multiprocessors);
  measure<0>("as many as fit, a tile a warp", columns, out, multiprocessors);
  return 0;
}
