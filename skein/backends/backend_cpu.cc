#include "skein/backends/backend.h"
#include "skein/ops/matmul/matmul_ceiling.h"
#include "skein/ops/ops.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/runtime/cpu/cpu_device.h"

namespace skein {

extern const Backend cpu_backend;
const Backend cpu_backend = {
    .kind = "cpu",
    .num_devices = [] { return 1; },
    .kernels = cpu_kernels,
    .make = [](const DeviceOptions& options, KernelTable kernels) -> std::unique_ptr<Device> {
      return std::make_unique<CpuDevice>(options.threads, std::move(kernels), cpu_kind());
    },
    .measure_ceiling = measure_matmul_ceiling_flops,
};

}  // namespace skein
