// Sums a column of a cb2t file in a kernel of its own: how a CUDA program that knows nothing of Rust reads the format, with the codecs' own device code.
//
//   nvcc -std=c++17 -O3 -arch=native -o sum_column sum_column.cu && ./sum_column FILE.cb2t [COLUMN, counted from 0]
//
// SPEC.md in format-spec/ says what the bytes mean. Before the device reads anything, magic numbers, versions, checksums and all offsets and lengths are checked (column_of_file.h);
// whatever is wrong ends the program with 1 and a message. Left out, and refused where met: columns of several nodes or buffers (lists, structs, strings, decimals), nulls, floats of 16
// bits, tiles of 512 values, and codecs without device code. Left out entirely: the schema, so columns have numbers and no names; reserved bytes; and the proof that a tile's own
// header agrees with its bytes (Codec::check_tile). A checksum proves that a file is as it was written, not that its writer meant well: let `cb2t verify` look at files of strangers.

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../../cuda/prelude.cuh"
#include "../../cuda/packing.cuh"
#include "../../cuda/encoding.cuh"
#include "../../../codec-plain/cuda/plain.cuh"
#include "../../../codec-flbp/cuda/flbp.cuh"
#include "../../../codec-rfor/cuda/rfor.cuh"
#include "../../../codec-dfor/cuda/dfor.cuh"
#include "../../../codec-alp/cuda/alp.cuh"
#include "../../../codec-dict/cuda/dict.cuh"
#include "../../cuda/column.cuh"
#include "column_of_file.h"

constexpr u32 ITEMS = TILE_SIZE / 32, WARPS = 4;

// In the order of the ids in SPEC.md section 8. Codec alp is for 32 and 64 bits only: column_of_file.h lets nothing else pass.
template <class V>
using Column = cb2t::Column<V, true, cb2t::ConstantBlock<V, 0, 0>, codec::plain<V, 0, 0>, codec::flbp<V, 0, 0>, codec::rfor<V, 0, 0>, codec::dfor<V, 0, 0>,
                            typename cb2t::Either<sizeof(V) >= 4, codec::alp<V, 0, 0>, cb2t::ConstantBlock<V, 0, 0>>::Type, codec::dict<V, 0, 0>>;

struct Sums {
  u64 whole;    // modulo 2^64
  double real;  // of floats
};

// A warp a tile: decodes it into registers and adds them up.
template <class V>
__global__ void __launch_bounds__(32 * WARPS) sum_tiles(cb2t::ColumnView column, u32 tile_count, u32 order, Sums* sums) {
  using G = cb2t::Group<32>;
  __shared__ typename Column<V>::template Scratch<G, ITEMS> scratch[WARPS];
  const u32 tile = blockIdx.x * WARPS + threadIdx.x / 32;
  if (tile >= tile_count) return;
  const G group = G::of_this_thread();
  const cb2t::TileEntry entry = column.tiles[tile];
  V values[ITEMS];
  Column<V>::template decompress_tile<false>(group, column, tile, entry, scratch[threadIdx.x / 32].bytes, values);
  Sums own = {0, 0};
#pragma unroll
  for (u32 i = 0; i < ITEMS; i++) {
    if (i * 32 + group.rank >= entry.value_count()) continue;
    if (order == FLOAT) {
      if constexpr (sizeof(V) >= 4) {
        typename cb2t::Either<sizeof(V) == 8, double, float>::Type value;
        memcpy(&value, &values[i], sizeof value);
        own.real += value;
      }
    } else {
      const u64 sign = order == SIGNED ? 1ull << (8 * sizeof(V) - 1) : 0;
      own.whole += (values[i] ^ sign) - sign;
    }
  }
  atomicAdd(&sums->whole, own.whole);
  atomicAdd(&sums->real, own.real);
}

static void require(cudaError_t status) {
  if (status != cudaSuccess) refuse("CUDA: %s", cudaGetErrorString(status));
}

template <class T>
static T* to_device(const T* from, u64 count) {
  void* memory = nullptr;
  require(cudaMalloc(&memory, count * sizeof(T)));
  require(cudaMemcpy(memory, from, count * sizeof(T), cudaMemcpyHostToDevice));
  return static_cast<T*>(memory);
}

template <class V>
static Sums sum(const Upload& upload) {
  Sums sums = {0, 0};
  Sums* device_sums = to_device(&sums, 1);
  const cb2t::ColumnView column = {to_device(upload.bytes.data(), upload.bytes.size()), to_device(upload.tiles.data(), upload.tiles.size()),
                                   to_device(upload.shared_offsets_16.data(), upload.shared_offsets_16.size())};
  const u32 tile_count = static_cast<u32>(upload.tiles.size());
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3((tile_count + WARPS - 1) / WARPS);
  launch.blockDim = dim3(32 * WARPS);
  require(cudaLaunchKernelEx(&launch, sum_tiles<V>, column, tile_count, upload.order, device_sums));
  require(cudaMemcpy(&sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));
  return sums;
}

int main(int count, char** arguments) {
  if (count < 2) refuse("FILE.cb2t [COLUMN]");
  std::FILE* file = std::fopen(arguments[1], "rb");
  if (file == nullptr) refuse("cannot open %s", arguments[1]);
  std::vector<u8> bytes;
  u8 piece[1 << 16];
  while (const size_t read = std::fread(piece, 1, sizeof piece, file)) bytes.insert(bytes.end(), piece, piece + read);
  std::fclose(file);

  char* end = nullptr;
  const u64 index = count > 2 ? std::strtoull(arguments[2], &end, 10) : 0;
  if (end != nullptr && (end == arguments[2] || *end != 0)) refuse("%s is no number of a column", arguments[2]);
  const Upload upload = read_column({bytes.data(), bytes.size()}, index);
  Sums sums = {0, 0};
  if (upload.value_bits == 8) sums = sum<u8>(upload);
  if (upload.value_bits == 16) sums = sum<u16>(upload);
  if (upload.value_bits == 32) sums = sum<u32>(upload);
  if (upload.value_bits == 64) sums = sum<u64>(upload);
  std::printf("%llu values, sum ", upload.value_count);
  if (upload.order == FLOAT) {
    std::printf("%.17g\n", sums.real);
  } else if (upload.order == SIGNED) {
    std::printf("%lld\n", static_cast<long long>(sums.whole));
  } else {
    std::printf("%llu\n", sums.whole);
  }
  return 0;
}
