// One training step over a global batch: the micro-batches of this rank, forward and backward in
// the order of the pipeline's schedule, then the update.
//
// With several ranks every method is collective: all ranks call it, each with its own lanes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "skein/base/exact_sum.h"
#include "skein/compile/program_runs.h"
#include "skein/compile/step_programs.h"
#include "skein/data/batch.h"
#include "skein/runtime/executor.h"

namespace skein {

// Of all ranks, and the same on all of them.
struct StepResult {
  double loss = 0;               // mean over the label tokens of the global batch
  int64_t num_label_tokens = 0;  // of the global batch
  float grad_norm = 0;           // before clipping
  float param_norm = 0;          // after the update
  bool stops = false;            // a rank asked to stop
  double progress = 0;           // Batch::progress of all lanes together
};

class StepRunner {
 public:
  // Allocates and prepares everything; `programs` and `communicators` must outlive the runner.
  StepRunner(Device& device, const ProgramSet& programs, const StepSpec& spec,
             const Communicators* communicators = nullptr);
  ~StepRunner();
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  // Starts a step; `step` counts from 1. The batch holds this rank's lanes, in order, and is free
  // again on return. Up to the device's depth() steps may be under way. `asks_to_stop` is called as
  // late as it can still reach all ranks with this step.
  using AsksToStop = std::function<bool()>;
  void start(
      const Batch& batch, int64_t step, float learning_rate,
      const AsksToStop& asks_to_stop = [] { return false; });
  // The result of the oldest step under way; waits for it.
  StepResult finish();
  int64_t num_under_way() const { return started_ - finished_; }
  StepResult train(const Batch& batch, int64_t step, float learning_rate) {
    start(batch, step, learning_rate);
    return finish();
  }

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
  // What a step leaves on the device, copied to the host behind it.
  struct Outcome {
    std::array<double, exact_sum::kBins> loss_sum;
    std::array<double, exact_sum::kBins> param_norm_squared;
    std::array<double, kNumReports> reports;
    float grad_norm;
    int32_t num_label_tokens;
    int64_t event;
  };

  void check_batch(const Batch& batch) const;
  void upload_micro_batch(const Batch& batch, int64_t index);
  double take_loss_sum();
  int64_t global_label_tokens(const Batch& batch) const;
  using Reports = std::array<double, kNumReports>;
  void report(const Reports& reports);
  void collect(const Batch& batch, const Reports& reports, Outcome& outcome);
  static int64_t outcome_bytes(const Device& device);

  StepSpec spec_;
  Executor executor_;
  Outcome* outcomes_ = nullptr;  // depth() of them, in memory that the device copies to
  int64_t started_ = 0, finished_ = 0;
  std::vector<ProgramRun> order_;  // of a training step, up to the update
  std::vector<Task> tasks_;        // of evaluation: the forwards among them
  // Rows of a micro-batch that this rank holds, over its context axis; empty: all, in order.
  std::vector<int64_t> rows_;
  std::vector<int32_t> picked_;
  int64_t uploaded_ = -1;  // the micro-batch whose inputs the device has
};

}  // namespace skein
