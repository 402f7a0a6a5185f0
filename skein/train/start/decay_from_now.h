// `skein train RUN --decay-from-now [STEPS]`: from the newest checkpoint on, the learning rate
// decays from the peak to the floor.
//
// Formula  after step s of a schedule that is at its peak: constant_steps = s - warmup_steps and
//          decay_steps = STEPS, so that all rates up to step s are what they were. A `constant`
//          schedule becomes `linear`
// Again    the same command goes on with the decay that it began
// Errors   Error{kUsage} where there is no checkpoint; where the schedule warms up still, or has
//          another decay behind it; where the run ends before the decay does
#pragma once

#include <string>
#include <vector>

#include "skein/config/config.h"

namespace skein {

// The settings ("optimizer.key=value") that make it so, which are set in `config` as well. `steps`:
// 0: those that are left of run.steps.
std::vector<std::string> decay_from_now(Config& config, int64_t steps);

}  // namespace skein
