#include "skein/runtime/device.h"

#include "skein/base/error.h"
#include "skein/runtime/cpu/cpu_device.h"
#include "skein/runtime/null/null_device.h"

namespace skein {

std::unique_ptr<Device> make_device(const DeviceOptions& options, KernelTable kernels) {
  if (options.kind == "cpu") {
    return std::make_unique<CpuDevice>(options.threads, std::move(kernels));
  }
  if (options.kind == "null") return std::make_unique<NullDevice>(std::move(kernels));
  fail(ErrorCode::kUnsupported,
       "device.kind is '{}', which this build does not have: expected cpu (or null, to plan)",
       options.kind);
}

}  // namespace skein
