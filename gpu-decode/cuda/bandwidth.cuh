// What the device's memory can do, to measure against: reading alone. Copying and filling are the driver's own.

extern "C" __global__ void __launch_bounds__(256) read_all(const uint4* words, u64 count, u64* out) {
  u32 all = 0;
  const u64 stride = u64(gridDim.x) * blockDim.x;
  u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * stride < count; i += 4 * stride) {
    const uint4 a = __ldcs(words + i), b = __ldcs(words + i + stride), c = __ldcs(words + i + 2 * stride), d = __ldcs(words + i + 3 * stride);
    all ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
  }
  for (; i < count; i += stride) all ^= words[i].x ^ words[i].y ^ words[i].z ^ words[i].w;
  // Never true for what is measured, but the compiler cannot know.
  if (all == 0x12345678) atomicAdd(out, 1ull);
}
