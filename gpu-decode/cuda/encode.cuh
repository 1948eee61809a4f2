// Bodies of the kernels that encode a column in device memory as blocks, byte for byte as the host does. A warp encodes a tile, and ITEMS values a lane are its size.
// What a codec brings for it: choose_metadata, tile_words, encode_tile and the EncodeScratch that the last needs (codec-flbp/cuda/flbp.cuh is the template).
//   measure_tiles   every tile's length and statistics
//   lay_out_blocks  where tiles lie in their block, the blocks' lengths and statistics
//   place_blocks    where blocks lie in the output
//   write_tiles     tiles and their entries in the blocks' tables
//   write_headers   headers, with the checksum over header and tables

namespace cb2t {

// What measure_tiles finds; lay_out_blocks adds offset_bytes.
struct TilePlan {
  u64 min, max;        // by the column's order
  u64 least, greatest;  // unsigned: equal where the tile has one value only
  u32 bytes;
  u32 offset_bytes;  // within the block
};

struct BlockPlan {
  u64 offset_bytes;  // within the output
  u64 min, max;
  u64 constant;
  u32 bytes;
  u32 is_constant;
};

// The column and how it is to be stored. `sign` is the bit that makes unsigned comparison the column's order: 0 for unsigned.
struct EncodeJob {
  u64 value_count;
  u32 tile_size, tiles_per_block;
  u32 tile_count, block_count;
  u32 codec_id, order;
  u64 sign;
};

constexpr u32 MAX_BLOCK_BYTES = 1u << 31;
constexpr u64 TOO_LONG_BYTES = 1ull << 48;

__device__ __forceinline__ u32 padded(u32 bytes) { return (bytes + 15) / 16 * 16; }

// The tables of a block with `tiles` tiles, each behind the one before.
template <class V>
struct BlockTables {
  u32 offsets, checksums, minima, maxima, end;

  __device__ __forceinline__ BlockTables(const EncodeJob& job, u32 tiles) {
    const u32 statistics = job.order == 0 ? 0 : padded(tiles * sizeof(V));
    offsets = 64;
    checksums = offsets + padded((tiles + 1) * 4);
    minima = checksums + padded(tiles * 4);
    maxima = minima + statistics;
    end = maxima + statistics;
  }
};

__device__ __forceinline__ u32 tiles_of_block(const EncodeJob& job, u32 block) {
  const u32 first = block * job.tiles_per_block;
  return job.tile_count - first < job.tiles_per_block ? job.tile_count - first : job.tiles_per_block;
}

__device__ __forceinline__ u32 values_of_tile(const EncodeJob& job, u32 tile) {
  const u64 left = job.value_count - u64(tile) * job.tile_size;
  return left < job.tile_size ? static_cast<u32>(left) : job.tile_size;
}

// Positions past the tile's values hold its first value.
template <class V, u32 ITEMS>
__device__ __forceinline__ void load_tile(const EncodeJob& job, const V* values, u32 tile, u32 lane, V (&loaded)[ITEMS]) {
  const V* first = values + u64(tile) * job.tile_size;
  const u32 value_count = values_of_tile(job, tile);
#pragma unroll
  for (u32 i = 0; i < ITEMS; i++) {
    const u32 position = i * LANES + lane;
    loaded[i] = first[position < value_count ? position : 0];
  }
}

template <class CODEC, class V, u32 ITEMS, u32 THREADS>
__device__ __forceinline__ void measure_tiles(const EncodeJob& job, const V* values, TilePlan* tiles) {
  const auto group = Group<LANES>::of_this_thread();
  const u32 tile = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
  if (tile >= job.tile_count) return;
  V loaded[ITEMS];
  load_tile(job, values, tile, group.rank, loaded);
  const Range<V> ordered = warp_range<V>(loaded, static_cast<V>(job.sign)), as_unsigned = warp_range<V>(loaded, 0);
  const u32 value_count = values_of_tile(job, tile);
  const auto metadata = CODEC::choose_metadata(group, loaded, value_count);
  const u32 bytes = padded(CODEC::tile_words(metadata, value_count) * 4);
  if (group.rank == 0) tiles[tile] = {ordered.min, ordered.max, as_unsigned.min, as_unsigned.max, bytes, 0};
}

// A warp a block.
template <class V, u32 THREADS>
__device__ __forceinline__ void lay_out_blocks(const EncodeJob& job, TilePlan* tiles, BlockPlan* blocks) {
  const u32 lane = threadIdx.x % LANES, block = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
  if (block >= job.block_count) return;
  const u32 tile_count = tiles_of_block(job, block);
  TilePlan* own = tiles + u64(block) * job.tiles_per_block;
  u64 offset_bytes = BlockTables<V>(job, tile_count).end;
  u64 min = own[0].min ^ job.sign, max = own[0].max ^ job.sign, least = own[0].least, greatest = own[0].greatest;
  for (u32 first = 0; first < tile_count; first += LANES) {
    const u32 tile = first + lane;
    u32 bytes = 0;
    if (tile < tile_count) {
      bytes = own[tile].bytes;
      const u64 tile_min = own[tile].min ^ job.sign, tile_max = own[tile].max ^ job.sign;
      min = tile_min < min ? tile_min : min;
      max = tile_max > max ? tile_max : max;
      least = own[tile].least < least ? own[tile].least : least;
      greatest = own[tile].greatest > greatest ? own[tile].greatest : greatest;
    }
    const u64 before = offset_bytes + sum_before(lane, bytes);
    if (tile < tile_count) own[tile].offset_bytes = static_cast<u32>(before);
    offset_bytes = __shfl_sync(ALL_LANES, before + bytes, LANES - 1);
  }
  const u64 only_least[1] = {least}, only_greatest[1] = {greatest}, only_min[1] = {min}, only_max[1] = {max};
  const u64 block_least = warp_range<u64>(only_least, 0).min, block_greatest = warp_range<u64>(only_greatest, 0).max;
  const u64 block_min = warp_range<u64>(only_min, 0).min ^ job.sign, block_max = warp_range<u64>(only_max, 0).max ^ job.sign;
  if (lane == 0) {
    const u32 is_constant = block_least == block_greatest;
    const u32 bytes = is_constant ? 64 : offset_bytes <= MAX_BLOCK_BYTES ? static_cast<u32>(offset_bytes) : MAX_BLOCK_BYTES + 1;
    blocks[block] = {0, job.order == 0 ? 0 : block_min, job.order == 0 ? 0 : block_max, is_constant ? block_least : 0, bytes, is_constant};
  }
}

// One warp. Blocks begin at multiples of 64; `end` becomes the output's length, at least TOO_LONG_BYTES where a block would be too long: then nothing may be written.
__device__ __forceinline__ void place_blocks(const EncodeJob& job, BlockPlan* blocks, u64* end) {
  const u32 lane = threadIdx.x % LANES;
  u64 offset_bytes = 0;
  for (u32 first = 0; first < job.block_count; first += LANES) {
    const u32 block = first + lane;
    const u64 wanted = block < job.block_count ? blocks[block].bytes : 0;
    const u64 bytes = wanted <= MAX_BLOCK_BYTES ? (wanted + 63) / 64 * 64 : TOO_LONG_BYTES;
    const u64 before = offset_bytes + sum_before(lane, bytes);
    if (block < job.block_count) blocks[block].offset_bytes = before;
    offset_bytes = __shfl_sync(ALL_LANES, before + bytes, LANES - 1);
  }
  if (lane == 0) *end = offset_bytes;
}

// CRC-32 by a warp, for memory of whole words. The checksum's register is a polynomial modulo the generator, and what a word adds to it is multiplied by x^32 for itself and each
// word behind. So each lane takes every 32nd word and multiplies what it has by x^1024 from one to the next, by four look-ups; at the end lane l's sum is multiplied by
// x^(32 (32 - l)), and the sum over the lanes is the register.
struct ChecksumTables {
  u32 times_1024[4][256];  // the product of each byte of the register with x^1024
  u32 to_end[32];          // x^(32 (32 - l)) for lane l
};

__device__ __forceinline__ u32 polynomial_product(u32 left, u32 right) {
  u32 product = 0;
#pragma unroll 8
  for (u32 bit = 0; bit < 32; bit++) {
    product ^= left & 0x80000000u ? right : 0;
    left <<= 1;
    right = right >> 1 ^ (right & 1 ? 0xEDB88320u : 0);
  }
  return product;
}

// All lanes of the warp. word(i) is the i-th of `count` words, count > 0.
template <class WORD>
__device__ __forceinline__ u32 warp_checksum(u32 lane, const ChecksumTables& tables, u32 count, WORD word) {
  // In front of the words stand zeros, so that the last word is lane 31's.
  const u32 rows = (count + LANES - 1) / LANES, before = rows * LANES - count;
  u32 sum = 0;
  for (u32 row = 0; row < rows; row++) {
    const u32 place = row * LANES + lane;
    u32 own = place >= before ? word(place - before) : 0;
    if (place == before) own ^= 0xffffffffu;
    sum = tables.times_1024[0][sum & 0xff] ^ tables.times_1024[1][sum >> 8 & 0xff] ^ tables.times_1024[2][sum >> 16 & 0xff] ^ tables.times_1024[3][sum >> 24] ^ own;
  }
  sum = polynomial_product(sum, tables.to_end[lane]);
#pragma unroll
  for (u32 distance = LANES / 2; distance > 0; distance /= 2) sum ^= __shfl_xor_sync(ALL_LANES, sum, distance);
  return ~sum;
}

// All threads; ends with a barrier.
__device__ __forceinline__ void load_tables(const ChecksumTables* from, ChecksumTables& tables) {
  for (u32 i = threadIdx.x; i < sizeof(ChecksumTables) / 4; i += blockDim.x) reinterpret_cast<u32*>(&tables)[i] = reinterpret_cast<const u32*>(from)[i];
  __syncthreads();
}

// The grid may be smaller than the tiles: a warp takes every so many.
template <class CODEC, class V, u32 ITEMS, u32 THREADS>
__device__ __forceinline__ void write_tiles(const EncodeJob& job, const V* values, const TilePlan* tiles, const BlockPlan* blocks, const ChecksumTables* checksum_tables, u8* out) {
  using G = Group<LANES>;
  __shared__ ChecksumTables tables;
  __shared__ typename CODEC::template EncodeScratch<G, ITEMS> scratch[THREADS / LANES];
  load_tables(checksum_tables, tables);
  const G group = G::of_this_thread();
  const u32 warps = gridDim.x * (THREADS / LANES);
  for (u32 tile = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES; tile < job.tile_count; tile += warps) {
    const u32 block = tile / job.tiles_per_block, in_block = tile % job.tiles_per_block, tile_count = tiles_of_block(job, block);
    if (blocks[block].is_constant) continue;
    u8* block_bytes = out + blocks[block].offset_bytes;
    const TilePlan plan = tiles[tile];
    u32* words = reinterpret_cast<u32*>(block_bytes + plan.offset_bytes);
    const u32 value_count = values_of_tile(job, tile);
    V loaded[ITEMS];
    load_tile(job, values, tile, group.rank, loaded);
    const auto metadata = CODEC::choose_metadata(group, loaded, value_count);
    const u32 word_count = CODEC::tile_words(metadata, value_count);
    CODEC::encode_tile(group, metadata, loaded, value_count, scratch[threadIdx.x / LANES], words);
    if (group.rank < plan.bytes / 4 - word_count) words[word_count + group.rank] = 0;
    group.sync();
    const u32 checksum = warp_checksum(group.rank, tables, plan.bytes / 4, [=](u32 i) { return words[i]; });
    const BlockTables<V> at(job, tile_count);
    const bool last = in_block + 1 == tile_count;
    if (group.rank == 0) {
      reinterpret_cast<u32*>(block_bytes + at.offsets)[in_block] = plan.offset_bytes;
      reinterpret_cast<u32*>(block_bytes + at.checksums)[in_block] = checksum;
      if (job.order != 0) {
        reinterpret_cast<V*>(block_bytes + at.minima)[in_block] = static_cast<V>(plan.min);
        reinterpret_cast<V*>(block_bytes + at.maxima)[in_block] = static_cast<V>(plan.max);
      }
      if (last) reinterpret_cast<u32*>(block_bytes + at.offsets)[tile_count] = blocks[block].bytes;
    }
    if (last) {
      // The padding behind each table, at most 15 bytes.
      const u32 ends[4] = {at.offsets + (tile_count + 1) * 4, at.checksums + tile_count * 4, at.minima + tile_count * u32(sizeof(V)), at.maxima + tile_count * u32(sizeof(V))};
      const u32 tables_after[4] = {at.checksums, at.minima, at.maxima, at.end};
#pragma unroll
      for (u32 table = 0; table < 4; table++) {
        if (ends[table] + group.rank < tables_after[table] && (table < 2 || job.order != 0)) block_bytes[ends[table] + group.rank] = 0;
      }
    }
  }
}

// A warp a block, after write_tiles.
template <class V, u32 THREADS>
__device__ __forceinline__ void write_headers(const EncodeJob& job, const BlockPlan* blocks, const ChecksumTables* checksum_tables, u8* out) {
  __shared__ ChecksumTables tables;
  load_tables(checksum_tables, tables);
  const u32 lane = threadIdx.x % LANES, block = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
  if (block >= job.block_count) return;
  const BlockPlan plan = blocks[block];
  const u32 tile_count = tiles_of_block(job, block);
  const u64 first_value = u64(block) * job.tiles_per_block * job.tile_size, left = job.value_count - first_value;
  const u64 most = u64(job.tiles_per_block) * job.tile_size;
  const u32 value_count = static_cast<u32>(left < most ? left : most);
  u32* words = reinterpret_cast<u32*>(out + plan.offset_bytes);
  const u32 header[15] = {0x42324243u,
                          (plan.is_constant ? 0 : job.codec_id) << 16,
                          static_cast<u32>(8 * sizeof(V)) << 8 | job.order << 16,
                          job.tile_size,
                          value_count,
                          plan.is_constant ? 0 : tile_count,
                          0,
                          plan.bytes,
                          static_cast<u32>(plan.min),
                          static_cast<u32>(plan.min >> 32),
                          static_cast<u32>(plan.max),
                          static_cast<u32>(plan.max >> 32),
                          static_cast<u32>(plan.constant),
                          static_cast<u32>(plan.constant >> 32),
                          0};
#pragma unroll
  for (u32 i = 0; i < 15; i++) {
    if (lane == i) words[i] = header[i];
  }
  __syncwarp();
  const u32 table_words = plan.is_constant ? 0 : (BlockTables<V>(job, tile_count).end - 64) / 4;
  const u32 checksum = warp_checksum(lane, tables, 15 + table_words, [=](u32 i) { return words[i < 15 ? i : i + 1]; });
  if (lane == 0) words[15] = checksum;
}

}  // namespace cb2t
