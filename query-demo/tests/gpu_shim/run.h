// Reads jobs from standard input, does their steps on the CPU, and writes what one buffer then holds: its length and its bytes.
// A job: the order of threads; the number of buffers, of each its length and whether its contents follow, and these; the number of steps, and these; which buffer is the result.

struct Kernel {
  void (*run)(const u64* words);
};
extern const Kernel KERNELS[];

static bool read_exactly(void* to, size_t bytes) { return bytes == 0 || std::fread(to, 1, bytes, stdin) == bytes; }
static u64 read_word() {
  u64 word;
  if (!read_exactly(&word, 8)) shim::fail("a job is cut off", 0);
  return word;
}

// Exactly `bytes` bytes, so that the sanitizer sees any access beyond, and poisoned.
static u8* allocate(u64 bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes == 0 ? 1 : bytes) != 0) shim::fail("no memory", 0);
  std::memset(memory, 0xA5, bytes);
  return static_cast<u8*>(memory);
}

int main() {
  u64 order;
  while (read_exactly(&order, 8)) {
    std::vector<u8*> buffers(read_word());
    std::vector<u64> lengths;
    for (u8*& buffer : buffers) {
      const u64 bytes = read_word(), follows = read_word();
      buffer = allocate(bytes);
      lengths.push_back(bytes);
      if (follows != 0 && !read_exactly(buffer, bytes)) shim::fail("a buffer is cut off", 0);
    }
    for (u64 steps = read_word(); steps > 0; steps--) {
      if (read_word() == 0) {
        const u64 buffer = read_word(), start = read_word(), end = read_word(), byte = read_word();
        std::memset(buffers[buffer] + start, static_cast<int>(byte), end - start);
        continue;
      }
      const u64 kernel = read_word(), blocks = read_word(), threads = read_word();
      std::vector<u64> words(read_word());
      for (u64& word : words) {
        const u64 buffer = read_word(), value = read_word();
        word = buffer == 0 ? value : reinterpret_cast<u64>(buffers[buffer - 1]) + value;
      }
      shim::launch(static_cast<unsigned>(blocks), static_cast<unsigned>(threads), order, [&] { KERNELS[kernel].run(words.data()); });
    }
    const u64 result = read_word();
    std::fwrite(&lengths[result], 1, 8, stdout);
    std::fwrite(buffers[result], 1, lengths[result], stdout);
    for (u8* buffer : buffers) std::free(buffer);
  }
  return 0;
}
