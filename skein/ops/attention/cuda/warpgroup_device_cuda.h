// Internal to the attention kernels of Hopper: whether they can run here. Only files that are
// compiled for Hopper's own instructions include it.
#pragma once

#include "skein/base/error.h"
#include "skein/ops/attention/cuda/attention_cuda.h"

namespace skein::attention_cuda::warpgroup {

constexpr int kCapability = 90;  // no other one has these instructions

// Whether the build and the GPU have the instructions; without a GPU, as `skein plan` may be, the
// build decides.
inline bool are_there() {
#ifdef SKEIN_WGMMA
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) {
    return compute_capability() == kCapability;
  }
  static_cast<void>(cudaGetLastError());
  return true;
#else
  return false;
#endif
}

// Errors  Error{kUnsupported} where they do not
inline void check_device() {
#if !defined(SKEIN_WGMMA) && !defined(SKEIN_CUDA_EMULATED)
  fail(ErrorCode::kUnsupported,
       "SKEIN_ATTENTION=wgmma, but this build has no kernels for it: build with "
       "SKEIN_CUDA_ARCHITECTURES=90, or unset SKEIN_ATTENTION");
#endif
  const int found = compute_capability();
  if (found == kCapability) return;
  fail(ErrorCode::kUnsupported,
       "SKEIN_ATTENTION=wgmma, but the GPU has compute capability {}.{}: only 9.0 has these "
       "instructions; unset SKEIN_ATTENTION",
       found / 10, found % 10);
}

}  // namespace skein::attention_cuda::warpgroup
