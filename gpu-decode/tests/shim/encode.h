// Reads columns from standard input, encodes each in two orders and writes the blocks to standard output: their number, then the length and the bytes of each.
// A column: seven u64 {kernel, values, tile size, tiles a block, codec id, order, sign}, the checksum's tables, then the values.

struct Kernel {
  unsigned value_bytes;
  void (*measure_tiles)(const cb2t::EncodeJob&, const void*, cb2t::TilePlan*);
  void (*lay_out_blocks)(const cb2t::EncodeJob&, cb2t::TilePlan*, cb2t::BlockPlan*);
  void (*write_tiles)(const cb2t::EncodeJob&, const void*, const cb2t::TilePlan*, const cb2t::BlockPlan*, const cb2t::ChecksumTables*, u8*);
  void (*write_headers)(const cb2t::EncodeJob&, const cb2t::BlockPlan*, const cb2t::ChecksumTables*, u8*);
};
extern const Kernel KERNELS[];
constexpr unsigned THREADS = 128, WARPS = THREADS / 32;

static bool read_exactly(void* to, size_t bytes) { return bytes == 0 || std::fread(to, 1, bytes, stdin) == bytes; }

static std::vector<u8> encode(const Kernel& kernel, const cb2t::EncodeJob& job, const std::vector<u8>& values, const cb2t::ChecksumTables& tables, u64 order) {
  std::vector<cb2t::TilePlan> tiles(job.tile_count);
  std::vector<cb2t::BlockPlan> blocks(job.block_count);
  u64 end = 0;
  shim::launch((job.tile_count + WARPS - 1) / WARPS, THREADS, order, [&] { kernel.measure_tiles(job, values.data(), tiles.data()); });
  shim::launch((job.block_count + WARPS - 1) / WARPS, THREADS, order, [&] { kernel.lay_out_blocks(job, tiles.data(), blocks.data()); });
  shim::launch(1, 32, order, [&] { cb2t::place_blocks(job, blocks.data(), &end); });
  // Exactly as long as the plans say, and poisoned.
  u8* out = static_cast<u8*>(std::aligned_alloc(64, end));
  std::memset(out, order == 0 ? 0xA5 : 0x5A, end);
  shim::launch(2, THREADS, order, [&] { kernel.write_tiles(job, values.data(), tiles.data(), blocks.data(), &tables, out); });
  shim::launch((job.block_count + WARPS - 1) / WARPS, THREADS, order, [&] { kernel.write_headers(job, blocks.data(), &tables, out); });
  std::vector<u8> written;
  const auto append = [&](const void* bytes, size_t count) { written.insert(written.end(), static_cast<const u8*>(bytes), static_cast<const u8*>(bytes) + count); };
  const u64 block_count = job.block_count;
  append(&block_count, 8);
  for (const cb2t::BlockPlan& block : blocks) {
    const u64 bytes = block.bytes;
    append(&bytes, 8);
    append(out + block.offset_bytes, bytes);
  }
  std::free(out);
  return written;
}

int main() {
  u64 header[7];
  static cb2t::ChecksumTables tables;
  while (read_exactly(header, sizeof header)) {
    const Kernel& kernel = KERNELS[header[0]];
    std::vector<u8> values(header[1] * kernel.value_bytes);
    if (!read_exactly(&tables, sizeof tables) || !read_exactly(values.data(), values.size())) shim::fail("a column is cut off", 0);
    const u32 tile_count = static_cast<u32>((header[1] + header[2] - 1) / header[2]), tiles_per_block = static_cast<u32>(header[3]);
    const cb2t::EncodeJob job = {header[1], static_cast<u32>(header[2]), tiles_per_block, tile_count, (tile_count + tiles_per_block - 1) / tiles_per_block,
                                 static_cast<u32>(header[4]), static_cast<u32>(header[5]), header[6]};
    const std::vector<u8> up = encode(kernel, job, values, tables, 0), down = encode(kernel, job, values, tables, 1);
    if (up != down) shim::fail("the order of threads makes a difference", 0);
    std::fwrite(up.data(), 1, up.size(), stdout);
  }
  return 0;
}
