// Internal to the attention kernels of Hopper: whether they can run here. Only files that are
// compiled for Hopper's own instructions include it.
#pragma once

#include "skein/base/check_cuda.h"

namespace skein::attention_cuda::warpgroup {

// Errors  Error{kUnsupported} where the build or the GPU does not have the instructions
inline void check_device() {
#if !defined(SKEIN_WGMMA) && !defined(SKEIN_CUDA_EMULATED)
  fail(ErrorCode::kUnsupported,
       "SKEIN_ATTENTION=wgmma, but this build has no kernels for it: build with "
       "SKEIN_CUDA_ARCHITECTURES=90, or unset SKEIN_ATTENTION");
#endif
  int device = 0, major = 0, minor = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  cuda::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
              "the compute capability");
  cuda::check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
              "the compute capability");
  if (major != 9 || minor != 0) {
    fail(ErrorCode::kUnsupported,
         "SKEIN_ATTENTION=wgmma, but GPU {} has compute capability {}.{}: only 9.0 has these "
         "instructions; unset SKEIN_ATTENTION",
         device, major, minor);
  }
}

}  // namespace skein::attention_cuda::warpgroup
