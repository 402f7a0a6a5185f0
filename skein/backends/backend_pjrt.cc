#include "skein/backends/backend.h"
#include "skein/ops/ops.h"
#include "skein/runtime/pjrt/pjrt_device.h"

namespace skein {

extern const Backend pjrt_backend;
const Backend pjrt_backend = {
    .kind = "pjrt",
    .num_devices = [] { return 0; },  // none without a plugin, which only a configuration names
    .compiles = true,
    .kernels = [] { return KernelTable(); },
    .make = [](const DeviceOptions& options, KernelTable kernels) -> std::unique_ptr<Device> {
      return std::make_unique<PjrtDevice>(PjrtOptions{.plugin = options.pjrt_plugin},
                                          std::move(kernels), stablehlo_rules());
    },
};

}  // namespace skein
