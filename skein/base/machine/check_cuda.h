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

// Of the current device.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, attribute, device), "an attribute of the GPU");
  return value;
}

}  // namespace skein::cuda
