// Memory that comes while threads go on, and takes no register: copies from global to shared
// memory, and prefetches.
//
// Threads  wait for copies of their own; those of others are seen behind a barrier after that
// Source   PTX ISA 9.0, "cp.async", "prefetch". In the emulation a copy ends at once
#pragma once

#include "skein/ops/cuda/device_cuda.h"

namespace skein::cuda {

#ifdef __CUDA_ARCH__
__device__ inline uint32_t shared_address(const void* data) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(data));
}
#endif

// Copies a pack, or stores zeros if not `inside`; then nothing is read. One that has not 16 bytes
// is copied at once.
template <int n, typename T>
__device__ void copy_pack(T* to, const T* from, bool inside) {
#ifdef __CUDA_ARCH__
  if constexpr (n * sizeof(T) == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)),
                   "r"(inside ? 16 : 0)
                 : "memory");
    return;
  }
#endif
  store_pack(to, inside ? load_pack<n>(from) : Pack<T, n>{});
}
// Copies 4 bytes.
template <typename T>
__device__ void copy_word(T* to, const T* from) {
  static_assert(sizeof(T) == 4);
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
               :
               : "r"(shared_address(to)), "l"(__cvta_generic_to_global(from))
               : "memory");
#else
  *to = *from;
#endif
}

// Ends a group of copies.
__device__ inline void commit_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Until this thread's copies have ended, but for those of its last `pending` groups.
template <int pending>
__device__ void wait_for_own_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// Has what lies there on its way to the L2 cache, where writes of all kernels are seen: so this may
// come before wait_for_previous_kernel().
__device__ inline void prefetch([[maybe_unused]] const void* global) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(global)));
#endif
}

}  // namespace skein::cuda
