#include "skein/runtime/device.h"

#include "skein/base/error.h"
#include "skein/runtime/cpu/cpu_device.h"
#include "skein/runtime/cuda_backend.h"
#include "skein/runtime/null/null_device.h"

namespace skein {

std::unique_ptr<Device> make_device(const DeviceOptions& options, KernelTable kernels) {
  if (options.kind == "cpu") {
    return std::make_unique<CpuDevice>(options.threads, std::move(kernels));
  }
  if (options.kind == "cuda") return make_cuda_device(options, std::move(kernels));
  if (options.kind == "null") return std::make_unique<NullDevice>(std::move(kernels));
  fail(ErrorCode::kUnsupported, "device.kind is '{}': expected cpu, cuda (or null, to plan)",
       options.kind);
}

void expect_several_ranks() { expect_several_cuda_ranks(); }

bool has_cuda() { return num_cuda_devices() > 0; }

}  // namespace skein
