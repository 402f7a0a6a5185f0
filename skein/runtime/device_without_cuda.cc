#include "skein/base/error.h"
#include "skein/runtime/cuda_backend.h"

namespace skein {

int num_cuda_devices() { return 0; }

void expect_several_cuda_ranks() {}

std::unique_ptr<Device> make_cuda_device(const DeviceOptions&, KernelTable) {
  fail(ErrorCode::kUnsupported, "this build has no CUDA");
}

void start_cuda_copy(Device&, void*, const void*, int64_t) {
  fail(ErrorCode::kUnsupported, "this build has no CUDA");
}

int64_t used_cuda_bytes() { return 0; }

}  // namespace skein
