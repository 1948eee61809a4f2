// As much of the CUDA runtime as examples/standalone needs, on the CPU: device memory is memory of exactly the length asked for, so that sanitizers see every access beyond it.
#pragma once

#include "shim.h"

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

inline const char* cudaGetErrorString(cudaError_t) { return "no memory"; }

inline cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return posix_memalign(memory, 256, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

struct dim3 {
  unsigned x;
  explicit dim3(unsigned x = 1) : x(x) {}
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
};

template <class... PARAMETERS, class... ARGUMENTS>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* launch, void (*kernel)(PARAMETERS...), ARGUMENTS... arguments) {
  shim::launch(launch->gridDim.x, launch->blockDim.x, 2, [=] { kernel(arguments...); });
  return cudaSuccess;
}
