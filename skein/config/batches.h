// The sizes of a run's batches and the number of its lanes, as the configuration says them.
//
// Errors  batch_ramp throws Error{kUsage} for a ramp that cannot be parsed; check_config does first
#pragma once

#include "skein/config/config.h"
#include "skein/data/lanes/batch_ramp.h"

namespace skein {

inline BatchRamp batch_ramp(const Config& config) {
  return BatchRamp::parse(config.batch.ramp, config.batch.global_sequences);
}

// Of a run that begins; one that continues has those of its checkpoint (num_lanes_in).
inline int64_t num_lanes(const Config& config) {
  return config.data.lanes > 0 ? config.data.lanes : config.batch.global_sequences;
}

}  // namespace skein
