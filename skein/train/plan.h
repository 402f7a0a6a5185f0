// `skein plan`: exact bytes and predicted time, before anything is allocated. The bytes come from
// the very programs that training runs.
#pragma once

#include <string>

#include "skein/base/json.h"
#include "skein/ir/program.h"
#include "skein/schedule/estimate.h"
#include "skein/train/config.h"
#include "skein/train/step_programs.h"

namespace skein {

struct Plan {
  int64_t ranks = 1;
  int64_t num_parameters = 0;
  ArenaBytes arena_bytes{};
  int64_t snapshot_bytes = 0;  // host memory that saving needs
  int64_t loader_bytes = 0;    // batches made ahead
  TrainingEstimate estimate;
  double tokens_per_second = 0;
  double model_flops_utilization = 0;

  int64_t total_bytes() const;
};

Plan make_plan(const Config& config, const LlamaConfig& model, const KernelTable& kernels,
               const HardwareRates& rates);

// The same with the model that the configuration names, for this machine's measured rates.
Plan make_plan(const Config& config);

OrderedJson plan_to_json(const Plan& plan);
std::string plan_to_text(const Plan& plan);

}  // namespace skein
