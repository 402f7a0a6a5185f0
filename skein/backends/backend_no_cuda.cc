// The line `cuda` of backends.def in a build without CUDA: plans know how much memory the kernels
// of a GPU take.
#include "skein/backends/backend.h"
#include "skein/ops/cuda_rules.h"

namespace skein {

extern const Backend cuda_backend;
const Backend cuda_backend = {
    .kind = "cuda",
    .only_plans =
        "device.kind is 'cuda', and this build has no CUDA, so that it only plans for GPUs: "
        "install the CUDA 13 toolkit, see that nvcc is on the PATH and run `SKEIN_CUDA=ON "
        "scripts/build.sh`; or use device.kind = \"cpu\"",
    .num_devices = [] { return 0; },
    .has_own_memory = true,
    .kernels = [] { return cuda_rules(); },
};

}  // namespace skein
