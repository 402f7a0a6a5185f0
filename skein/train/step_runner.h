// One training step over a global batch: micro-batches forward and backward, then the update.
#pragma once

#include <cstdint>

#include "skein/data/batch.h"
#include "skein/runtime/executor.h"
#include "skein/train/step_programs.h"

namespace skein {

struct StepResult {
  double loss = 0;       // mean over the label tokens of the global batch
  float grad_norm = 0;   // before clipping
  float param_norm = 0;  // after the update
};

class StepRunner {
 public:
  // Allocates and prepares everything; `programs` must outlive the runner.
  StepRunner(Device& device, const ProgramSet& programs, const StepSpec& spec);

  // `step` counts from 1. The batch holds a multiple of the micro-batch's sequences.
  StepResult train(const Batch& batch, int64_t step, float learning_rate);

  // The micro-batches alone: adds to the gradient sums and the sum of losses. `train` ends them.
  void accumulate(const Batch& batch);

  // Adds to the sum of losses; nothing else changes.
  struct LossSum {
    double loss = 0;
    int64_t num_tokens = 0;
    double mean() const { return num_tokens == 0 ? 0 : loss / static_cast<double>(num_tokens); }
  };
  void evaluate(const Batch& batch, LossSum& sum);

  Executor& executor() { return executor_; }
  const StepSpec& spec() const { return spec_; }

 private:
  int64_t num_micro_batches(const Batch& batch) const;
  void upload_micro_batch(const Batch& batch, int64_t index);
  double download_sum(const char* name) const;
  double take_loss_sum();

  StepSpec spec_;
  Executor executor_;
};

}  // namespace skein
