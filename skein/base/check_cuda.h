// Turns errors of the CUDA runtime into this program's errors.
#pragma once

#include <cuda_runtime.h>

#include "skein/base/error.h"

namespace skein::cuda {

// Throws Error{kNoSpace | kInternal} if `error` is one; `what` names the failed operation.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const bool no_memory = error == cudaErrorMemoryAllocation;
  fail(no_memory ? ErrorCode::kNoSpace : ErrorCode::kInternal, "{}: {} ({})", what,
       cudaGetErrorString(error), cudaGetErrorName(error));
}

}  // namespace skein::cuda
