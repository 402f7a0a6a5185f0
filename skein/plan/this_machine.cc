#include "skein/plan/this_machine.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>

#include "skein/base/machine/cores.h"
#include "skein/compile/step_programs.h"
#include "skein/ops/matmul/matmul_ceiling.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/runtime/copy_rate.h"

namespace skein {
namespace {

constexpr int64_t kLargestNode = 1024;

MatmulRate measured(DType dtype) {
  const MatmulCeiling ceiling = measure_matmul_ceiling(dtype, 0.3);
  return {ceiling.own, ceiling.flops()};
}

// Only a plan without described hardware asks for it.
int64_t memory_of_gpu(const Config& config) {
  try {
    return training_device(config)->own_memory().value().total_bytes;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported && error.code() != ErrorCode::kUsage) throw;
    fail(error.code(),
         "{}; or plan for machines that are described: [plan] hardware, or --hardware FILE.toml "
         "(configs/hardware)",
         error.what());
  }
}

}  // namespace

WorkerCores share_cores(const Config& config, int64_t workers) {
  const int64_t cores = num_cores();
  const int64_t threads =
      config.device.threads > 0 ? config.device.threads : std::max<int64_t>(1, cores / workers);
  return {threads, std::clamp<int64_t>(cores / threads, 1, workers)};
}

Hardware this_machine_unmeasured(const Config& config, int64_t ranks) {
  limit_cpu_kind(config.device.cpu);
  Hardware hardware;
  hardware.name = "this machine";
  hardware.devices_per_node = std::min(ranks, kLargestNode);
  hardware.unified_memory = !planned_backend(config).has_own_memory;
  hardware.concurrent_devices = share_cores(config, hardware.devices_per_node).concurrent;
  if (hardware.unified_memory) {
    hardware.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) /
                            hardware.devices_per_node;
  }
  hardware.bf16 = hardware.f32 = {1e12, 1e12};
  hardware.memory_bytes_per_s = 1e10;
  hardware.launch_s = 2e-6;
  hardware.intra_node = {2e9, 10e-6};  // through the host's memory
  hardware.inter_node = {1.0e9, 100e-6};
  hardware.overlap = 0;
  return hardware;
}

Hardware describe_this_machine(const Config& config, int64_t ranks) {
  Hardware hardware = this_machine_unmeasured(config, ranks);
  hardware.name =
      "this machine's products and copies, measured now; other ops and links are assumed, and "
      "measured by --calibrate";
  if (!hardware.unified_memory) {
    hardware.name = "this machine's GPU, with the speed of its CPU: --hardware FILE gives times";
    hardware.memory_bytes = memory_of_gpu(config);
  }
  omp_set_num_threads(static_cast<int>(share_cores(config, hardware.devices_per_node).threads));
  const bool f32 = compute_dtype(parse_precision(config.precision.mode)) == DType::kF32;
  hardware.f32 = hardware.bf16 = {};
  (f32 ? hardware.f32 : hardware.bf16) = measured(f32 ? DType::kF32 : DType::kBF16);
  hardware.memory_bytes_per_s = measure_copy_bytes_per_s(0.05);
  return hardware;
}

}  // namespace skein
