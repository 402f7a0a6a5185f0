// The lanes of a run in training: the batches that a rank reads from its own, and where all of them
// stand, for checkpoints.
//
// Ranks   of one data coordinate have the same lanes. save() and next() are collective if the batch
//         grows
// Errors  those of Loader; Error{kInvalid} for a checkpoint whose lanes do not fit the corpora
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "skein/data/lanes/loader.h"
#include "skein/train/start/prepared_run.h"

namespace skein {

class TrainingLanes {
 public:
  // `run` must outlive the lanes.
  explicit TrainingLanes(const PreparedRun& run);

  // Where lanes stand.
  struct Stand {
    std::vector<MixtureState> states;  // empty: at the beginning
    int64_t rows_taken = 0;
  };
  // In the checkpoint that the run begins with.
  Stand stored() const;
  // Reads the batches after `step`.
  void begin(int64_t step, const Stand& stand);
  // The batch of `step`, which follows that of the last call.
  const Batch& next(int64_t step, double* wait_seconds);
  // Stores where the lanes stand after `step`, the last one that was read.
  void save(int64_t step, TrainingState& state);

  int64_t rows() const { return rows_; }  // of the newest batch; 0: none was read
  // No step trains on these.
  const SkippedBatches& skipped() const { return skipped_; }
  void skip(int64_t first, int64_t last) { skipped_.add(first, last); }

 private:
  std::vector<MixtureState> exchange(std::span<const MixtureState> states,
                                     std::span<const int64_t> lanes) const;

  const PreparedRun& run_;
  const BatchRamp ramp_;
  SkippedBatches skipped_;
  std::unique_ptr<Loader> loader_;
  int64_t rows_ = 0;
};

}  // namespace skein
