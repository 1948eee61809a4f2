// Reads cases from standard input and runs each in several orders: decodes into poisoned memory that is exactly large enough, sums, and compares with the values given.
// A case: seven u64 {kernel, bytes, tiles, shared offsets, begin, end, thread blocks}, then the column's bytes, its tile entries, its shared offsets, and the values expected.

struct Kernel {
  const char* name;
  unsigned threads, value_bytes;
  void (*decode)(cb2t::ColumnView, u64, u64, void*);
  void (*sum)(cb2t::ColumnView, u64, u64, u64*);
};
extern const Kernel KERNELS[];
extern const u64 KERNEL_COUNT;

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

static bool run_case(const u64 (&header)[7]) {
  const u64 begin = header[4], end = header[5], count = end - begin;
  const Kernel& kernel = KERNELS[header[0]];
  u8* bytes = read_array<u8>(header[1]);
  auto* tiles = read_array<cb2t::TileEntry>(header[2]);
  u32* shared = read_array<u32>(header[3]);
  u8* expected = read_array<u8>(count * kernel.value_bytes);
  const cb2t::ColumnView column = {bytes, tiles, shared};
  bool same = true;
  for (u64 order = 0; order < 3 && same; order++) {
    u8* out = static_cast<u8*>(std::aligned_alloc(16, (count * kernel.value_bytes + 15) / 16 * 16));
    std::memset(out, order % 2 == 0 ? 0xA5 : 0x5A, count * kernel.value_bytes);
    shim::launch(header[6], kernel.threads, order, [&] { kernel.decode(column, begin, end, out); });
    same = std::memcmp(out, expected, count * kernel.value_bytes) == 0;
    std::free(out);
  }
  if (same && kernel.sum != nullptr) {
    u64 sum = 0;
    shim::launch(header[6], kernel.threads, 2, [&] { kernel.sum(column, begin, end, &sum); });
    same = sum == expected_sum(expected, count, kernel.value_bytes);
  }
  std::free(bytes);
  std::free(tiles);
  std::free(shared);
  std::free(expected);
  return same;
}

int main() {
  u64 header[7], ran = 0;
  while (read_exactly(header, sizeof header)) {
    if (header[0] >= KERNEL_COUNT) shim::fail("no such kernel", 0);
    if (!run_case(header)) {
      std::printf("case %llu differs: kernel %s, rows %llu to %llu\n", ran, KERNELS[header[0]].name, header[4], header[5]);
      return 1;
    }
    ran++;
  }
  std::printf("%llu cases agree\n", ran);
  return 0;
}
