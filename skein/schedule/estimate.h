// How long programs take on hardware that is described by two rates: each step of a program takes
// the longer of its arithmetic and its memory traffic.
//
// Formula  seconds = sum over steps of max(flops / flops_per_s, bytes / bytes_per_s)
// Source   Williams, Waterman, Patterson, "Roofline", CACM 2009
#pragma once

#include "skein/ir/program.h"

namespace skein {

struct HardwareRates {
  double flops_per_s = 0;  // measured large matrix product, in the compute dtype
  double bytes_per_s = 0;  // measured copy: bytes read and written
};

double estimate_seconds(const Program& program, const HardwareRates& rates);

struct TrainingEstimate {
  double step_seconds = 0;
  double flops_per_step = 0;  // executed, recomputation included
};

// `forward` and `backward` once a micro-batch, `update` once a step.
TrainingEstimate estimate_step(const ProgramSet& programs, int64_t num_micro_batches,
                               const HardwareRates& rates);

}  // namespace skein
