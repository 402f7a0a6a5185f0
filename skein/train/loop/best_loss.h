// The validation loss that checkpoint.best_by names, over a run: the best so far, and how many
// validations in a row came without a new best.
//
// Formula  a validation is a new best where its loss, as a float, is below all before it
// Kept     in every checkpoint's manifest, so that it goes on with the run
// Threads  every rank observes the same losses
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "skein/base/text/json.h"

namespace skein {

class BestLoss {
 public:
  // `name`: checkpoint.best_by; empty: nothing is watched. `most_worse`: run.stop_after_worse.
  BestLoss(std::string name, int64_t most_worse)
      : name_(std::move(name)), most_worse_(most_worse) {}

  // What a checkpoint holds of it; of another name, or null: it begins.
  void go_on_from(const Json& json);
  // Null where nothing is watched. With the losses of `step`, if it was validated.
  Json to_json(int64_t step) const;

  bool is_watched() const { return !name_.empty(); }
  // The loss of a validation set after `step`; "" names the set of data.validation.
  void observe(int64_t step, const std::string& set, double loss);
  bool is_new_best(int64_t step) const { return best_ && best_->step == step; }
  // Whether the run ends: so many validations in a row were no new best.
  bool ends_run() const { return most_worse_ > 0 && worse_ >= most_worse_; }
  std::string why() const;  // it ends, for people

  struct Best {
    int64_t step;
    float loss;
  };
  const std::optional<Best>& best() const { return best_; }
  const std::string& name() const { return name_; }
  int64_t worse() const { return worse_; }

 private:
  const std::string name_;
  const int64_t most_worse_;
  std::optional<Best> best_;
  int64_t worse_ = 0;
  int64_t step_ = -1;  // of the newest validation
  Json losses_;
};

}  // namespace skein
