#include <cuda_runtime.h>

#include "skein/base/check_cuda.h"
#include "skein/runtime/cuda_backend.h"

namespace skein {

void start_cuda_copy(Device& device, void* to, const void* from, int64_t bytes) {
  cuda::check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                              static_cast<cudaStream_t>(device.stream())),
              "a copy within the device");
}

int64_t used_cuda_bytes() {
  size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<int64_t>(total - free);
}

}  // namespace skein
