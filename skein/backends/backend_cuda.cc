#include "skein/backends/backend.h"
#include "skein/comm/nccl/nccl_communicator.h"
#include "skein/ops/ops.h"
#include "skein/runtime/cuda/cuda_device.h"

namespace skein {

extern const Backend cuda_backend;
const Backend cuda_backend = {
    .kind = "cuda",
    .num_devices = num_cuda_devices,
    .has_own_memory = true,
    .kernels = cuda_kernels,
    .make = [](const DeviceOptions& options, KernelTable kernels) -> std::unique_ptr<Device> {
      return std::make_unique<CudaDevice>(options, std::move(kernels));
    },
    .make_world = make_nccl_world,
    .expect_several_ranks = expect_several_cuda_ranks,
    .chosen_algorithms = chosen_algorithms,
    .adopt_algorithms = adopt_algorithms,
};

}  // namespace skein
