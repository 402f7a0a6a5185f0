#include "skein/optim/learning_rate.h"

#include <cmath>
#include <numbers>

#include "skein/base/error.h"

namespace skein {
namespace {

// The share of the way from the floor up to the peak that is left after `progress` of the decay.
double decay_share(LearningRateDecay decay, double progress) {
  switch (decay) {
    case LearningRateDecay::kConstant:
      return 1;
    case LearningRateDecay::kLinear:
      return 1 - progress;
    case LearningRateDecay::kCosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * progress));
  }
  fail(ErrorCode::kInternal, "learning rate: unknown decay {}", static_cast<int>(decay));
}

}  // namespace

float LearningRateSchedule::at(int64_t step) const {
  if (step < 1) fail(ErrorCode::kInternal, "learning rate of step {}: steps count from 1", step);
  if (step <= warmup_steps) {
    return static_cast<float>(peak * static_cast<double>(step) / static_cast<double>(warmup_steps));
  }
  const int64_t decay_start = warmup_steps + constant_steps;
  if (decay == LearningRateDecay::kConstant || step <= decay_start) return static_cast<float>(peak);
  if (step - decay_start >= decay_steps) return static_cast<float>(floor);
  const double progress =
      static_cast<double>(step - decay_start) / static_cast<double>(decay_steps);
  return static_cast<float>(floor + (peak - floor) * decay_share(decay, progress));
}

}  // namespace skein
