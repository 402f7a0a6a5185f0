// What the evaluations of [[evaluate]] take.
//
// Formula  seconds_each  step_seconds x rows / global_sequences / 3: forward is a third of a step's
//                        work without recomputation
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/config/config.h"

namespace skein {

struct PlannedEvaluation {
  std::string tasks;
  int64_t every_steps = 0;  // 0: at the end alone
  int64_t num_documents = 0, num_texts = 0, num_tokens = 0;
  int64_t num_rows = 0;  // whole batches
  int64_t times = 0;     // in the run
  double seconds_each = 0;
  std::string unknown;  // why nothing is known of it; "": it is
};

// Reads the tasks and their data, and tokenizes what they ask.
std::vector<PlannedEvaluation> plan_evaluations(const Config& config, double step_seconds);

}  // namespace skein
