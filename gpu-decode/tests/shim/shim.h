// Runs CUDA C++ as plain C++ on one CPU thread, for tests. The threads of a thread block are fibres. A fibre runs until it waits at a barrier or in a warp's collective call; which
// runs next is the order's choice, so code that lacks a barrier sees stale values in one order or another. Sanitizers watch every access.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sys/mman.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__
// One thread block runs at a time.
#define __shared__ static

struct uint2 {
  unsigned int x, y;
};
struct alignas(16) uint4 {
  unsigned int x, y, z, w;
};

namespace shim {

struct Index {
  unsigned int x;
};

constexpr unsigned WARP = 32;
constexpr size_t STACK_BYTES = 256 << 10;

[[noreturn]] inline void fail(const char* what, unsigned thread) {
  std::fprintf(stderr, "shim: %s (thread %u)\n", what, thread);
  std::abort();
}

// Where a set of threads meets: all of them arrive before any goes on.
struct Meeting {
  unsigned expected = 0, arrived = 0;
  uint64_t generation = 0;
  const char* call = nullptr;
};

struct Warp {
  Meeting meeting;
  // What the lanes bring to a collective call. Two sets in turn: a lane can be at most one call ahead of another.
  uint64_t brought[2][WARP];
};

struct Fibre {
  Index thread;
  bool done = false;
  const Meeting* waits_for = nullptr;
  uint64_t waits_since = 0;
  void* stack = nullptr;
#if defined(__x86_64__)
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
#endif
};

struct State {
  std::vector<Fibre> fibres;
  std::vector<Warp> warps;
  Meeting block;
  // What threads bring to a vote of the whole thread block. Two in turn, as for warps.
  bool votes[2];
  Fibre scheduler;
  Fibre* current = nullptr;
  const std::function<void()>* kernel = nullptr;
  const void* scheduler_stack = nullptr;
  size_t scheduler_stack_bytes = 0;
  Index block_index, block_dim, grid_dim;
};
inline State state;

#if defined(__x86_64__)
extern "C" void shim_switch(void** from, void* to);
asm(R"(
.text
.globl shim_switch
.type shim_switch,@function
shim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size shim_switch, .-shim_switch
)");
#endif

inline void switch_to(Fibre& from, Fibre& to, bool last = false) {
#if defined(__SANITIZE_ADDRESS__)
  const bool to_scheduler = &to == &state.scheduler;
  __sanitizer_start_switch_fiber(last ? nullptr : &from.fake_stack, to_scheduler ? state.scheduler_stack : to.stack, to_scheduler ? state.scheduler_stack_bytes : STACK_BYTES);
#else
  (void)last;
#endif
#if defined(__x86_64__)
  shim_switch(&from.stack_pointer, to.stack_pointer);
#else
  swapcontext(&from.context, &to.context);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

inline void begin() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &state.scheduler_stack, &state.scheduler_stack_bytes);
#endif
  (*state.kernel)();
  state.current->done = true;
  switch_to(*state.current, state.scheduler, true);
  std::abort();
}

inline void prepare(Fibre& fibre) {
  if (fibre.stack == nullptr) {
    fibre.stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fibre.stack == MAP_FAILED) fail("no memory for a stack", 0);
  }
#if defined(__x86_64__)
  // Six registers, the address to return to, and one word so that the stack is aligned as after a call.
  void** top = reinterpret_cast<void**>(static_cast<char*>(fibre.stack) + STACK_BYTES) - 8;
  std::memset(top, 0, 8 * sizeof(void*));
  top[6] = reinterpret_cast<void*>(&begin);
  fibre.stack_pointer = top;
#else
  getcontext(&fibre.context);
  fibre.context.uc_stack.ss_sp = fibre.stack;
  fibre.context.uc_stack.ss_size = STACK_BYTES;
  makecontext(&fibre.context, reinterpret_cast<void (*)()>(&begin), 0);
#endif
}

inline void meet(Meeting& meeting, const char* call) {
  Fibre& self = *state.current;
  if (meeting.arrived > 0 && std::strcmp(meeting.call, call) != 0) fail("threads meet in different calls", self.thread.x);
  meeting.call = call;
  if (++meeting.arrived == meeting.expected) {
    meeting.arrived = 0;
    meeting.generation++;
    return;
  }
  self.waits_for = &meeting;
  self.waits_since = meeting.generation;
  switch_to(self, state.scheduler);
  self.waits_for = nullptr;
}

inline Warp& warp() { return state.warps[state.current->thread.x / WARP]; }

// All lanes bring a value; each gets all of them.
template <class T>
const uint64_t* exchange(unsigned mask, T value, const char* call) {
  if (mask != 0xffffffffu) fail("only calls of the whole warp are supported", state.current->thread.x);
  static_assert(sizeof(T) <= 8);
  Warp& own = warp();
  uint64_t* brought = own.brought[own.meeting.generation % 2];
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  brought[state.current->thread.x % WARP] = bits;
  meet(own.meeting, call);
  return brought;
}

template <class T>
T from_lane(const uint64_t* brought, unsigned lane) {
  T value;
  std::memcpy(&value, &brought[lane], sizeof(T));
  return value;
}

inline uint64_t random(uint64_t& seed) {
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return seed >> 33;
}

// Runs the kernel's thread blocks one after the other. Order 0: lowest thread first; 1: highest first; else at random.
inline void launch(unsigned blocks, unsigned threads, uint64_t order, const std::function<void()>& kernel) {
  if (threads % WARP != 0) fail("thread blocks are whole warps", threads);
  state.kernel = &kernel;
  state.grid_dim = {blocks};
  state.block_dim = {threads};
  if (state.fibres.size() < threads) state.fibres.resize(threads);
  uint64_t seed = order;
  for (unsigned block = 0; block < blocks; block++) {
    state.block_index = {block};
    state.block = Meeting{threads, 0, 0, nullptr};
    state.warps.assign(threads / WARP, Warp{});
    for (Warp& warp : state.warps) warp.meeting.expected = WARP;
    for (unsigned thread = 0; thread < threads; thread++) {
      Fibre& fibre = state.fibres[thread];
      fibre.thread = {thread};
      fibre.done = false;
      fibre.waits_for = nullptr;
      prepare(fibre);
    }
    while (true) {
      // Each pass runs every thread that can run, in the order's sequence.
      bool any = false, all_done = true;
      const unsigned offset = order > 1 ? static_cast<unsigned>(random(seed) % threads) : 0;
      const bool down = order == 1 || (order > 1 && random(seed) % 2 == 0);
      for (unsigned step = 0; step < threads; step++) {
        const unsigned place = (step + offset) % threads;
        Fibre& fibre = state.fibres[down ? threads - 1 - place : place];
        if (fibre.done) continue;
        all_done = false;
        if (fibre.waits_for != nullptr && fibre.waits_for->generation == fibre.waits_since) continue;
        any = true;
        state.current = &fibre;
        switch_to(state.scheduler, fibre);
      }
      if (all_done) break;
      if (!any) fail("threads wait at a barrier that others never reach", 0);
    }
  }
}

}  // namespace shim

#define threadIdx (shim::state.current->thread)
inline const shim::Index &blockIdx = shim::state.block_index, &blockDim = shim::state.block_dim, &gridDim = shim::state.grid_dim;

inline void __syncthreads() { shim::meet(shim::state.block, "__syncthreads"); }
inline int __syncthreads_or(int predicate) {
  shim::Meeting& block = shim::state.block;
  bool& vote = shim::state.votes[block.generation % 2];
  if (block.arrived == 0) vote = false;
  vote |= predicate != 0;
  shim::meet(block, "__syncthreads_or");
  return vote;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { shim::exchange(mask, 0, "__syncwarp"); }

template <class T>
T __shfl_sync(unsigned mask, T value, unsigned lane) {
  return shim::from_lane<T>(shim::exchange(mask, value, "__shfl_sync"), lane % shim::WARP);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance) {
  const unsigned lane = threadIdx.x % shim::WARP;
  return shim::from_lane<T>(shim::exchange(mask, value, "__shfl_up_sync"), lane >= distance ? lane - distance : lane);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance) {
  const unsigned lane = threadIdx.x % shim::WARP;
  return shim::from_lane<T>(shim::exchange(mask, value, "__shfl_down_sync"), lane + distance < shim::WARP ? lane + distance : lane);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, unsigned bits) {
  const unsigned lane = threadIdx.x % shim::WARP;
  return shim::from_lane<T>(shim::exchange(mask, value, "__shfl_xor_sync"), (lane ^ bits) % shim::WARP);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const uint64_t* brought = shim::exchange(mask, predicate != 0, "__ballot_sync");
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < shim::WARP; lane++) ballot |= (brought[lane] != 0 ? 1u : 0u) << lane;
  return ballot;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == 0xffffffffu; }
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  const uint64_t* brought = shim::exchange(mask, value, "__reduce_or_sync");
  unsigned all = 0;
  for (unsigned lane = 0; lane < shim::WARP; lane++) all |= static_cast<unsigned>(brought[lane]);
  return all;
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }
inline int __clzll(long long bits) { return bits == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(bits)); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}

inline long long __double_as_longlong(double value) {
  long long bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

template <class T>
T __ldg(const T* from) { return *from; }
template <class T>
T __ldcs(const T* from) { return *from; }
template <class T>
void __stcs(T* to, T value) { *to = value; }

// Fibres change only where they wait, so a plain update is atomic.
template <class T>
T atomicAdd(T* to, T value) { T old = *to; *to = static_cast<T>(old + value); return old; }
template <class T>
T atomicOr(T* to, T value) { T old = *to; *to = static_cast<T>(old | value); return old; }
template <class T>
T atomicMin(T* to, T value) { T old = *to; if (value < old) *to = value; return old; }
template <class T>
T atomicMax(T* to, T value) { T old = *to; if (value > old) *to = value; return old; }
template <class T>
T atomicCAS(T* to, T expected, T value) { T old = *to; if (old == expected) *to = value; return old; }
