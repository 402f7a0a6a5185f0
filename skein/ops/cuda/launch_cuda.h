// Starting kernels from the host: on the call's stream, with every error named.
//
// Errors  Error{kInternal} with the launch's geometry; the executor adds op, shapes and program
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "skein/base/machine/check_cuda.h"
#include "skein/base/machine/start_kernel_cuda.h"
#include "skein/ir/kernel.h"

namespace skein::cuda {

inline cudaStream_t stream_of(const KernelCall& call) {
  return static_cast<cudaStream_t>(call.stream);
}

// kernel<<<grid, block, memory>>>(args...) with bytes of shared memory, beside what the kernel
// declares (shared_memory_cuda.h). An empty grid starts nothing.
template <typename... Params>
void launch_with_memory(const KernelCall& call, dim3 grid, dim3 block, int memory,
                        void (*kernel)(Params...), std::type_identity_t<Params>... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (memory > 48 << 10) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, memory),
          "the shared memory of a kernel");
  }
  const cudaError_t error =
      start_kernel<Params...>(stream_of(call), grid, block, memory, kernel, args...);
  if (error != cudaSuccess) {
    fail(ErrorCode::kInternal, "{} ({}) at the launch of {} x {} x {} blocks of {} x {} threads",
         cudaGetErrorString(error), cudaGetErrorName(error), grid.x, grid.y, grid.z, block.x,
         block.y);
  }
}
// The same without such memory.
template <typename... Params>
void launch(const KernelCall& call, dim3 grid, dim3 block, void (*kernel)(Params...),
            std::type_identity_t<Params>... args) {
  launch_with_memory(call, grid, block, 0, kernel, args...);
}

// Blocks that cover `count` with `each`; kernels of one dim have up to 2^31 of them.
inline unsigned blocks_for(int64_t count, int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

// Blocks that run at the same time where a multiprocessor holds `each`: a grid for kernels that
// loop.
inline unsigned resident_blocks(int each) {
  return static_cast<unsigned>(device_attribute(cudaDevAttrMultiProcessorCount) * each);
}

// Bytes of shared memory that a launch may ask for: 227 KB on Hopper, 99 on some others.
inline int most_memory_of_block() {
  return device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

// Threads of blocks that cover `count` side by side, one each: whole warps, at most `most`.
inline unsigned threads_for(int64_t count, int64_t most) {
  return static_cast<unsigned>(count < most ? (count + 31) / 32 * 32 : most);
}

}  // namespace skein::cuda
