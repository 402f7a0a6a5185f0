// Validation: each set is read once, or up to validate.batches of it; and the best loss so far.
//
// Formula bits_per_byte  loss * labels / ln 2 / bytes of text: of a set that is read to its end
//         those of the corpus, as `skein score` has it; else those that the tokens with a label
//         spell
// Ranks   collective. All read as many rows as the fullest lane of any rank has
// Errors  those of the step that was validated; kIo if a signal stops a process that only
//         validates
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/train/loop/best_loss.h"
#include "skein/train/loop/signals.h"
#include "skein/train/loop/step_runner.h"
#include "skein/train/start/prepared_run.h"

namespace skein {

struct Validated {
  std::string set;   // the name of a data.validation_set; empty: data.validation
  std::string path;  // of the corpus
  double loss = 0;
  double bits_per_byte = 0;
  int64_t num_labels = 0;
  int64_t num_batches = 0;
  bool is_all = true;  // of the corpus
  double seconds = 0;
};

class Validation {
 public:
  // All must outlive the validation.
  Validation(PreparedRun& run, StepRunner& runner, const StopSignals& signals);

  // Agrees with all ranks on the rows to read. `tells`: says what a validation costs.
  void agree(bool tells);
  // The losses of all sets under the weights after `step`.
  std::vector<Validated> validate(int64_t step);
  bool has_sets() const { return !run_.inputs.validation_sets().empty(); }

  BestLoss& best() { return best_; }
  const BestLoss& best() const { return best_; }

 private:
  std::string times() const;
  Validated validate(int64_t step, RunInputs::ValidationSet& set);
  void run_batches(int64_t step, RunInputs::ValidationSet& set, StepRunner::LossSum& sum);

  PreparedRun& run_;
  StepRunner& runner_;
  const StopSignals& signals_;
  BestLoss best_;
};

}  // namespace skein
