// The line `pjrt` of backends.def in a build without the header of PJRT: it only plans.
#include "skein/backends/backend.h"
#include "skein/ops/ops.h"

namespace skein {

extern const Backend pjrt_backend;
const Backend pjrt_backend = {
    .kind = "pjrt",
    .only_plans =
        "device.kind is 'pjrt', and this build has no PJRT: run `scripts/setup.sh`, which "
        "unpacks the header that it needs, and `scripts/build.sh`",
    .num_devices = [] { return 0; },
    .compiles = true,
    .kernels = host_collectives,
};

}  // namespace skein
