#include "skein/config/worker_processes.h"

#include <numeric>

#include "skein/base/error.h"

namespace skein {

int64_t workers_per_process(const Config& config) {
  const int64_t workers = config.launch.workers, asked = config.launch.workers_per_process;
  if (config.device.kind != "pjrt") {
    if (asked <= 1) return 1;
    fail(ErrorCode::kUsage,
         "launch.workers_per_process is {} and device.kind \"{}\": expected 1; only with \"pjrt\" "
         "a process has several workers",
         asked, config.device.kind);
  }
  if (asked > 0 && workers % asked != 0) {
    fail(ErrorCode::kUsage,
         "launch.workers_per_process is {}, which does not divide launch.workers, {}: each worker "
         "has a device of its own, and every process as many",
         asked, workers);
  }
  if (asked > 0) return asked;
  const ParallelConfig& parallel = config.parallel;
  if (parallel.pipeline == 1) return workers;
  return std::gcd(workers, parallel.tensor * parallel.context);
}

int64_t worker_processes(const Config& config) {
  return config.launch.workers / workers_per_process(config);
}

}  // namespace skein
