// A run as its plan sees it: the layout, derived once, and the programs' spec of each rank.
//
// Errors    Error{kUsage}, the same as training: layouts that do not fit model, batch or ranks
// Lifetime  `config` and `model` must outlive it
#pragma once

#include <cstdint>

#include "skein/compile/parallel.h"
#include "skein/compile/step_programs.h"
#include "skein/config/config.h"
#include "skein/model/decoder.h"

namespace skein {

class PlannedRun {
 public:
  PlannedRun(const Config& config, const DecoderConfig& model, int64_t num_ranks);

  const ParallelLayout& layout() const { return layout_; }  // of rank 0

  // Throws Error{kUsage} naming --rank if the run has no such rank.
  StepSpec spec_of_rank(int64_t rank) const;

  // The rank that is the first of its stage on every axis but "dp", and its spec.
  int64_t rank_of(int64_t stage, int64_t data_rank) const;
  StepSpec spec_of(int64_t stage, int64_t data_rank) const;

 private:
  StepSpec spec(const ParallelLayout& layout) const;

  const Config& config_;
  const DecoderConfig& model_;
  ParallelLayout layout_;
};

}  // namespace skein
