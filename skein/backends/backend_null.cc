#include "skein/backends/backend.h"
#include "skein/ops/ops.h"
#include "skein/runtime/null/null_device.h"

namespace skein {

extern const Backend null_backend;
const Backend null_backend = {
    .kind = "null",
    .num_devices = [] { return 1; },
    .kernels = cpu_kernels,  // only for their scratch sizes
    .make = [](const DeviceOptions&, KernelTable kernels) -> std::unique_ptr<Device> {
      return std::make_unique<NullDevice>(std::move(kernels));
    },
};

}  // namespace skein
