// The learning rate of a step: linear warm-up, a constant stretch, a decay, and a floor held after
// it.
//
// Formula  t = step (1 is the first update), W = warmup, C = constant, D = decay steps
//            t <= W              peak * t / W
//            t <= W + C          peak
//            t <  W + C + D      floor + (peak - floor) * shape((t - W - C) / D)
//            otherwise           floor
//          shape(x) = (1 + cos(pi x)) / 2 for kCosine, 1 - x for kLinear. kConstant stays at the
//          peak after the warm-up: C, D and floor do not matter.
//          The three phases follow one another: the floor is reached at step W + C + D.
// Units    steps are optimizer updates; computed in double and rounded once to the float that the
//          update uses and the metrics show.
// Source   Megatron-LM's warm-up and decay evaluated at num_steps = t; equal to torch's LambdaLR
//          with transformers' cosine (and warmup-stable-decay) factors at last_epoch = t.
#pragma once

#include <cstdint>

namespace skein {

enum class LearningRateDecay { kConstant, kLinear, kCosine };

struct LearningRateSchedule {
  LearningRateDecay decay = LearningRateDecay::kCosine;
  double peak = 0;
  double floor = 0;
  int64_t warmup_steps = 0;
  int64_t constant_steps = 0;
  int64_t decay_steps = 0;

  // The rate of update `step`, which counts from 1.
  float at(int64_t step) const;
};

}  // namespace skein
