// The scores of a run's checkpoints over its tokens, as a table and as plots.
#pragma once

#include <string>
#include <vector>

#include "skein/base/text/json.h"

namespace skein {

// `results`: files of results (evaluate/results/results_json.h) with skein.run, in order of steps.
// Of each task or group with scores, one metric: acc_norm, else acc, else the first.
std::string checkpoint_curve(const std::vector<Json>& results);

}  // namespace skein
