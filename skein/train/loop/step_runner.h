// One training step over a global batch: this rank's micro-batches, forward and backward in the
// order of the pipeline schedule, then the update.
//
// With several ranks every method is collective: all ranks call it, each with its own rows. Their
// number, and so that of micro-batches, may be another one in each step, up to those of the spec.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "skein/base/machine/clock.h"
#include "skein/base/numbers/exact_sum.h"
#include "skein/compile/program_runs.h"
#include "skein/compile/step_programs.h"
#include "skein/data/lanes/batch.h"
#include "skein/runtime/executor.h"

namespace skein {

// What ranks were asked for: to go on, to stop for another machine to come in, or to stop for good,
// which goes before the other.
enum class Stop : uint8_t { kNo, kRegroup, kYes };

// What a rank tells the others of its copies of the state in memory (train/loop/memory_saver.h).
struct CopyReport {
  bool is_whole = false;  // the newest one
  double copy_us = 0;
  double step_us = 0;
};

// What a rank tells the others in a step.
struct StepReport {
  Stop stop = Stop::kNo;
  CopyReport copy;
};

// Over all ranks, and the same on each of them.
struct StepResult {
  double loss = 0;               // mean over the label tokens of the global batch
  int64_t num_label_tokens = 0;  // of the global batch
  float grad_norm = 0;           // before clipping
  float param_norm = 0;          // after the update
  Stop stop = Stop::kNo;         // the most that any rank was asked for
  std::vector<double> progress;  // the sums of Batch::progress over all ranks' lanes
  bool copied = false;           // the newest copy of the state in memory is whole on all ranks
  double copy_us = 0;            // sums over all ranks
  double step_us = 0;
  Clock::time_point ended_at;  // of this rank's device, which may be before finish() was called
};

class StepRunner {
 public:
  // Allocates and prepares everything; `programs` and `communicators` must outlive the runner.
  StepRunner(Device& device, const ProgramSet& programs, const StepSpec& spec,
             const Communicators* communicators = nullptr);
  ~StepRunner();
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  // Starts a step; `step` counts from 1. The batch holds this rank's lanes, in order, and may be
  // reused on return. Up to Device::depth() steps may be under way. `tells` is called just
  // before the update, the last moment at which its answer reaches all ranks with this step's
  // all-reduce.
  using Tells = std::function<StepReport()>;
  void start(
      const Batch& batch, int64_t step, float learning_rate,
      const Tells& tells = [] { return StepReport(); });
  // Waits for the oldest step under way and returns its result.
  StepResult finish();
  int64_t num_under_way() const { return started_ - finished_; }
  StepResult train(const Batch& batch, int64_t step, float learning_rate) {
    start(batch, step, learning_rate);
    return finish();
  }

  // Runs the micro-batches only, which add to the gradient sums and the loss sum. start() continues
  // with the update.
  void accumulate(const Batch& batch);

  // Adds a batch's losses to `sum`; changes neither weights nor gradients.
  struct LossSum {
    double loss = 0;
    int64_t num_tokens = 0;
    double mean() const { return num_tokens == 0 ? 0 : loss / static_cast<double>(num_tokens); }
  };
  void evaluate(const Batch& batch, LossSum& sum) { evaluate(batch, sum, {}); }
  // `at`: the place of the label in the rows of the batch.
  using TakeTokenLoss = std::function<void(int64_t at, float loss)>;
  // The same, and `take` gets the loss of each label, on one of the ranks that have it. The spec
  // has token_losses.
  void evaluate(const Batch& batch, LossSum& sum, const TakeTokenLoss& take);

  Executor& executor() { return executor_; }
  const Executor& executor() const { return executor_; }
  const StepSpec& spec() const { return spec_; }

 private:
  using Reports = std::array<double, kNumReports - 1 + kMaxCorpora>;  // those that there are

  // The results of a step, copied to the host asynchronously after its update.
  struct Outcome {
    std::array<double, exact_sum::kBins> loss_sum;
    std::array<double, exact_sum::kBins> param_norm_squared;
    Reports reports;
    float grad_norm;
    int32_t num_label_tokens;
    int64_t event;
  };

  int64_t micro_batches_of(const Batch& batch) const;
  void suit_step_to(const Batch& batch);
  void suit_evaluation_to(const Batch& batch);
  void give_micro_batch(const Batch& batch, int64_t index, int64_t slot);
  DataFacts upload_rows(const Batch& batch, int64_t first_row, int64_t slot);
  void forget_uploads();
  double take_loss_sum();
  bool answers_for_token_losses() const;
  void take_token_losses(const Batch& batch, int64_t micro_batch, const TakeTokenLoss& take);
  int64_t global_label_tokens(const Batch& batch) const;
  int64_t report_bytes() const;
  void report(const Reports& reports);
  void collect(const Batch& batch, const Reports& reports, Outcome& outcome);
  static int64_t outcome_bytes(const Device& device);

  StepSpec spec_;  // with the micro-batches of the newest training step
  Executor executor_;
  Outcome* outcomes_ = nullptr;  // Device::depth() of them, in host memory
  int64_t started_ = 0, finished_ = 0;
  const ProgramSet& programs_;
  bool is_one_program_;            // compile/whole_step.h
  std::vector<ProgramRun> order_;  // programs of a training step, without the update
  // The schedule of an evaluation, of which the forward tasks are run, and its micro-batches.
  std::vector<Task> tasks_;
  int64_t evaluated_micro_batches_ = 0;
  // Token rows of a micro-batch that this rank holds under context parallelism; empty: all, in
  // order.
  std::vector<int64_t> rows_;
  std::vector<int32_t> picked_;
  Batch empty_;  // the rows of an empty micro-batch
  // The micro-batch whose inputs are on the device.
  struct Uploaded {
    int64_t micro_batch = -1;  // -1: none
    DataFacts facts = {};
  };
  std::vector<Uploaded> uploaded_;  // by slot; one where inputs have none
};

}  // namespace skein
