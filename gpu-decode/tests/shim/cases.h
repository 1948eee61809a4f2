// Reads cases from standard input and runs each in several orders: decodes into poisoned memory that is exactly large enough, sums, and compares with the values given.
// A case: seven u64 {kernel, bytes, tiles, shared offsets, begin, end, tiles a group}, then the column's bytes, its tile entries, its shared offsets, and the values expected.

struct Kernel {
  const char* name;
  unsigned threads, group, tile_size, value_bytes;
  void (*tiles)(cb2t::ColumnView, u32, u32, u32, void*);
  void (*rows)(cb2t::ColumnView, u64, u64, void*);
  void (*sum_tiles)(cb2t::ColumnView, u32, u32, u32, u64*);
  void (*sum_rows)(cb2t::ColumnView, u64, u64, u64*);
};
extern const Kernel KERNELS[];
extern const u64 KERNEL_COUNT;

struct Case {
  const Kernel& kernel;
  cb2t::ColumnView column;
  u64 begin, end;
  u32 tiles_per_group;

  u64 groups(u64 tiles) const {
    const u64 groups_per_block = kernel.threads / kernel.group;
    return (tiles + groups_per_block - 1) / groups_per_block;
  }
  bool is_whole_tiles() const { return begin % kernel.tile_size == 0 && end % kernel.tile_size == 0; }
  u32 first_tile() const { return static_cast<u32>(begin / kernel.tile_size); }
  u32 tile_end() const { return static_cast<u32>((end + kernel.tile_size - 1) / kernel.tile_size); }

  void decode(bool whole_tiles, u64 order, void* out) const {
    if (whole_tiles) {
      const u64 shares = (tile_end() - first_tile() + tiles_per_group - 1) / tiles_per_group;
      shim::launch(groups(shares), kernel.threads, order, [&] { kernel.tiles(column, first_tile(), tile_end(), tiles_per_group, out); });
    } else {
      shim::launch(groups(tile_end() - first_tile()), kernel.threads, order, [&] { kernel.rows(column, begin, end, out); });
    }
  }
  void sum(bool whole_tiles, u64 order, u64* partial_sums) const {
    if (whole_tiles) {
      const u64 shares = (tile_end() - first_tile() + tiles_per_group - 1) / tiles_per_group;
      shim::launch(groups(shares), kernel.threads, order, [&] { kernel.sum_tiles(column, first_tile(), tile_end(), tiles_per_group, partial_sums); });
    } else {
      shim::launch(groups(tile_end() - first_tile()), kernel.threads, order, [&] { kernel.sum_rows(column, begin, end, partial_sums); });
    }
  }
};

static bool read_exactly(void* to, size_t bytes) { return bytes == 0 || std::fread(to, 1, bytes, stdin) == bytes; }

// Exactly `bytes` bytes, so that the sanitizer sees any access beyond.
template <class T>
static T* read_array(u64 count) {
  void* memory = std::aligned_alloc(16, (count * sizeof(T) + 15) / 16 * 16);
  if (memory == nullptr || !read_exactly(memory, count * sizeof(T))) shim::fail("a case is cut off", 0);
  return static_cast<T*>(memory);
}

static u64 expected_sum(const u8* values, u64 count, unsigned value_bytes) {
  u64 sum = 0;
  for (u64 i = 0; i < count; i++) {
    u64 value = 0;
    std::memcpy(&value, values + i * value_bytes, value_bytes);
    sum += value;
  }
  return sum;
}

static bool agrees(const Case& one, bool whole_tiles, const u8* expected) {
  const u64 count = one.end - one.begin, bytes = count * one.kernel.value_bytes;
  for (u64 order = 0; order < 3; order++) {
    u8* out = static_cast<u8*>(std::aligned_alloc(16, (bytes + 15) / 16 * 16));
    std::memset(out, order % 2 == 0 ? 0xA5 : 0x5A, bytes);
    one.decode(whole_tiles, order, out);
    const bool same = std::memcmp(out, expected, bytes) == 0;
    std::free(out);
    if (!same) return false;
  }
  u64 partial_sums[cb2t::PARTIAL_SUMS] = {}, sum = 0;
  one.sum(whole_tiles, 2, partial_sums);
  for (u64 partial : partial_sums) sum += partial;
  return sum == expected_sum(expected, count, one.kernel.value_bytes);
}

int main() {
  u64 header[7], ran = 0;
  while (read_exactly(header, sizeof header)) {
    if (header[0] >= KERNEL_COUNT) shim::fail("no such kernel", 0);
    const Kernel& kernel = KERNELS[header[0]];
    u8* bytes = read_array<u8>(header[1]);
    auto* tiles = read_array<cb2t::TileEntry>(header[2]);
    u32* shared = read_array<u32>(header[3]);
    u8* expected = read_array<u8>((header[5] - header[4]) * kernel.value_bytes);
    const Case one = {kernel, {bytes, tiles, shared}, header[4], header[5], static_cast<u32>(header[6])};
    // Whole tiles go both ways.
    if (!agrees(one, false, expected) || (one.is_whole_tiles() && !agrees(one, true, expected))) {
      std::printf("case %llu differs: kernel %s, rows %llu to %llu\n", ran, kernel.name, one.begin, one.end);
      return 1;
    }
    std::free(bytes);
    std::free(tiles);
    std::free(shared);
    std::free(expected);
    ran++;
  }
  std::printf("%llu cases agree\n", ran);
  return 0;
}
