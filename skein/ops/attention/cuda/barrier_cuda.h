// Internal to the attention kernels of Hopper: a barrier in shared memory, where some threads
// arrive and go on, and others wait for them.
//
// Source  PTX ISA 9.0, "mbarrier"
#pragma once

#include <cstdint>

#include "skein/ops/attention/cuda/warpgroup_cuda.h"

namespace skein::attention_cuda {

struct Barrier {
  uint64_t state;

  // One thread; others may use it after __syncthreads(). A round ends when `warps` have arrived.
  __device__ void init(int warps) {
#ifdef SKEIN_CUDA_EMULATED
    cuda_emulation::init_barrier(this, warps);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :
                 : "r"(warpgroup::address_of(this)), "r"(warps)
                 : "memory");
#endif
  }
  // A whole warp: what its lanes wrote is seen by threads that waited.
  __device__ void arrive() {
    __syncwarp();
    if (threadIdx.x % warpSize != 0) return;
#ifdef SKEIN_CUDA_EMULATED
    cuda_emulation::arrive_at_barrier(this);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                 :
                 : "r"(warpgroup::address_of(this))
                 : "memory");
#endif
  }
  // Until round 0, 1, ... has ended. Nobody may be two rounds behind: only its parity counts.
  __device__ void wait(int round) {
#ifdef SKEIN_CUDA_EMULATED
    cuda_emulation::wait_at_barrier(this, round % 2);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile(
        "{.reg .pred ended;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
        "@!ended bra again;}"
        :
        : "r"(warpgroup::address_of(this)), "r"(round & 1)
        : "memory");
#endif
  }
};

}  // namespace skein::attention_cuda
