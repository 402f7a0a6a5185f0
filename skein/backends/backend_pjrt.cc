#include "skein/backends/backend.h"
#include "skein/base/error.h"
#include "skein/ops/ops.h"
#include "skein/runtime/pjrt/hlo_dump.h"
#include "skein/runtime/pjrt/pjrt_aot_compiler.h"
#include "skein/runtime/pjrt/pjrt_device.h"

namespace skein {

namespace {

// A second process would use the devices of the first; those of a CPU are its own.
void require_own_devices(const PjrtProcess& process, const DeviceOptions& options) {
  const int64_t seen = process.client().num_devices();
  const bool is_first = options.index < options.num_together;
  if (is_first || seen <= options.num_together || process.client().platform_name() == "cpu") return;
  fail(ErrorCode::kUsage,
       "the PJRT plugin {} shows {} devices to each process, and this is not the first one here: "
       "expected launch.workers_per_process = {}, or an environment in which the plugin shows each "
       "process its own",
       options.pjrt_plugin, seen, seen);
}

}  // namespace

extern const Backend pjrt_backend;
const Backend pjrt_backend = {
    .kind = "pjrt",
    .num_devices = [] { return 0; },  // none without a plugin, which only a configuration names
    .compiles = true,
    .kernels = host_collectives,
    .make = [](const DeviceOptions& options, KernelTable kernels) -> std::unique_ptr<Device> {
      const int together = options.num_together;
      auto process = PjrtProcess::join({.plugin = options.pjrt_plugin,
                                        .num_devices = together > 1 ? together : 0,
                                        .first_device = options.index / together * together,
                                        .compiler = options.compiler},
                                       options.index / together);
      require_own_devices(*process, options);
      return std::make_unique<PjrtDevice>(std::move(process), options.index % together,
                                          std::move(kernels), stablehlo_rules(),
                                          options.compiler.executions_in_flight);
    },
    .make_aot_compiler = make_pjrt_aot_compiler,
    .hlo_module = dump_hlo,
};

}  // namespace skein
