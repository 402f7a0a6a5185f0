#include "skein/plan/planned_run.h"

#include "skein/base/error.h"

namespace skein {

PlannedRun::PlannedRun(const Config& config, const DecoderConfig& model, int64_t num_ranks)
    : config_(config), model_(model), layout_(parallel_layout(config, model, num_ranks, 0)) {
  check_token_split(config);
}

StepSpec PlannedRun::spec(const ParallelLayout& layout) const {
  return step_spec(config_, model_, layout);
}

StepSpec PlannedRun::spec_of_rank(int64_t rank) const {
  const int64_t num_ranks = layout_.mesh.num_ranks();
  if (rank < 0 || rank >= num_ranks) {
    fail(ErrorCode::kUsage, "--rank is {}: expected 0 to {}", rank, num_ranks - 1);
  }
  ParallelLayout layout = layout_;
  layout.rank = rank;
  return spec(layout);
}

int64_t PlannedRun::rank_of(int64_t stage, int64_t data_rank) const {
  ParallelLayout first = layout_;
  first.rank = stage * first.mesh.num_ranks() / first.mesh.size("pp");
  return first.at_data_rank(data_rank).rank;
}

StepSpec PlannedRun::spec_of(int64_t stage, int64_t data_rank) const {
  return spec_of_rank(rank_of(stage, data_rank));
}

}  // namespace skein
