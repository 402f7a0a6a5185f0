#include "skein/schedule/estimate.h"

#include <algorithm>

namespace skein {

double estimate_seconds(const Program& program, const HardwareRates& rates) {
  double seconds = 0;
  for (const Step& step : program.steps) {
    const auto bytes = static_cast<double>(step.cost.bytes_read + step.cost.bytes_written);
    seconds += std::max(step.cost.flops / rates.flops_per_s, bytes / rates.bytes_per_s);
  }
  return seconds;
}

TrainingEstimate estimate_step(const ProgramSet& programs, int64_t num_micro_batches,
                               const HardwareRates& rates) {
  TrainingEstimate estimate;
  for (const Program& program : programs.programs) {
    const bool each_micro_batch = program.name == "forward" || program.name == "backward";
    if (!each_micro_batch && program.name != "update") continue;
    const double times = each_micro_batch ? static_cast<double>(num_micro_batches) : 1.0;
    estimate.step_seconds += times * estimate_seconds(program, rates);
    for (const Step& step : program.steps) estimate.flops_per_step += times * step.cost.flops;
  }
  return estimate;
}

}  // namespace skein
