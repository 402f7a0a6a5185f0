// Starting kernels so that one is ready when the one ahead of it on the stream ends ("programmatic
// dependent launch"): its blocks begin meanwhile, and wait. That hides part of a launch, which
// counts where kernels take some microseconds, as of small models (docs/gpu.md, "Measured").
//
// Rule    every thread of a kernel that is started here calls wait_for_previous_kernel(), first of
//         all unless it says why: before it nothing may be read or written that another kernel
//         writes or reads. The emulation ends a program whose kernels do not call it.
// Errors  those of the launch, for the caller
// Source  CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization"; PTX ISA,
//         griddepcontrol. From compute capability 9.0 on
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "skein/base/machine/environment.h"
#include "skein/base/text/log.h"

namespace skein::cuda {

#ifndef SKEIN_CUDA_ARCHITECTURES
#define SKEIN_CUDA_ARCHITECTURES 90
#endif

// Behind it all that was enqueued ahead has ended, and what it wrote is seen. The next kernel's
// blocks may come now, where there is room for them.
__device__ inline void wait_for_previous_kernel() {
#ifdef SKEIN_CUDA_EMULATED
  cuda_emulation::note_wait_for_previous_kernel();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// SKEIN_EARLY_STARTS=off in the environment tells a fault of these starts from one of a kernel.
inline bool starts_early() {
  static const bool result = [] {
    int device = 0, major = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess) {
      return false;  // the launch says why
    }
    // Kernels that were built for other GPUs do not wait.
    if (is_switched_on("SKEIN_EARLY_STARTS")) return SKEIN_CUDA_ARCHITECTURES >= 90 && major >= 9;
    log::warn("SKEIN_EARLY_STARTS=off: a kernel is started when the one before it has ended");
    return false;
  }();
  return result;
}

// kernel<<<grid, block, memory, stream>>>(args...)
template <typename... Params>
cudaError_t start_kernel(cudaStream_t stream, dim3 grid, dim3 block, int memory,
                         void (*kernel)(Params...), std::type_identity_t<Params>... args) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = static_cast<size_t>(memory);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = starts_early() ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, args...);
}

}  // namespace skein::cuda
