// Shared memory whose size the launch says (launch_with_memory()): more than the 48 KB that a
// kernel may declare.
#pragma once

#include <cuda_runtime.h>

namespace skein::cuda {

// The first of `count` T. The same for every thread of the block; T says its own alignment. Nothing
// is constructed.
template <typename T>
__device__ T& dynamic_memory([[maybe_unused]] size_t count = 1) {
#ifdef SKEIN_CUDA_EMULATED
  return *static_cast<T*>(cuda_emulation::dynamic_memory(count * sizeof(T)));
#else
  extern __shared__ __align__(1024) unsigned char dynamic_bytes[];
  static_assert(alignof(T) <= 1024);
  return *reinterpret_cast<T*>(dynamic_bytes);
#endif
}

}  // namespace skein::cuda
