// Errors of the CUDA runtime as errors of this program.
#pragma once

#include <cuda_runtime.h>

#include "skein/base/error.h"

namespace skein::cuda {

// Throws Error{kNoSpace | kInternal} naming `what`, which failed.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const bool no_memory = error == cudaErrorMemoryAllocation;
  fail(no_memory ? ErrorCode::kNoSpace : ErrorCode::kInternal, "{}: {} ({})", what,
       cudaGetErrorString(error), cudaGetErrorName(error));
}

}  // namespace skein::cuda
