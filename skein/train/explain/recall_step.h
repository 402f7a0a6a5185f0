// The configuration of a step of a run, what it reads, and its lanes, ready to be read from.
//
// Cost    tokenizing from the newest checkpoint before the step, or from the beginning
// Errors  as RunPast
#pragma once

#include <memory>
#include <vector>

#include "skein/config/batches.h"
#include "skein/data/lanes/skipped_batches.h"
#include "skein/train/explain/run_past.h"

namespace skein {

struct RecalledStep {
  std::shared_ptr<const OpenedRun> opened;
  std::vector<MixtureState> states;  // of all lanes, after `states_batch`; none: their beginnings
  int64_t states_batch = 0;
  int64_t states_rows = 0;  // that the batches up to it took together
  int64_t last_step = 0;    // until which the configuration is the same

  // The rows that batches take before this one.
  int64_t rows_before(int64_t batch) const {
    return states_rows + batch_ramp(opened->config).rows(states_batch + 1, batch - 1);
  }
};

// Of a step that was trained. `from`: a checkpoint before it; null: the beginning. Logs how the
// configuration differs from the one at hand.
RecalledStep recall_step(const RunPast& past, const SkippedBatches& skipped, int64_t step,
                         Asked asked, const CheckpointReader* from);

// Of a step that is yet to come: as the run would go on with the configuration at hand.
RecalledStep foresee_step(const RunPast& past, const SkippedBatches& skipped, int64_t step);

// The newest step in metrics.jsonl, also where the run went back since; nothing: it has none.
std::optional<int64_t> newest_step(const fs::path& run);

}  // namespace skein
