// Validation: each set is read once, or up to validate.batches of it.
#include <algorithm>
#include <utility>

#include "skein/base/machine/clock.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/model/decoder.h"
#include "skein/train/loop/in_step.h"
#include "skein/train/loop/trainer.h"
#include "skein/train/start/consensus.h"

namespace skein {

// "before step 1, every 100 steps and at the end"
std::string Trainer::validation_times() const {
  std::vector<std::string> times;
  const int64_t every = config_.validate.every_steps;
  if (config_.validate.before_training && beginning_->step() == 0) {
    times.emplace_back("before step 1");
  }
  if (every > 0) times.push_back(every == 1 ? "every step" : fmt::format("every {} steps", every));
  if (every == 0 || config_.run.steps % every != 0) times.emplace_back("at the end");
  std::string text;
  for (size_t i = 0; i < times.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == times.size() ? " and " : ", ") + times[i];
  }
  return text;
}

// A rank counts its own lanes, and all read as many rows as the fullest lane of any has. Says what
// a validation costs.
void Trainer::agree_on_validation(bool tells) {
  auto& sets = inputs_->validation_sets();
  if (sets.empty()) return;
  std::vector<int64_t> mine;
  for (RunInputs::ValidationSet& set : sets) {
    const Packer::Holding holding = set.batches.count(num_readers(config_));
    const bool counts = layout_.is_first_of_replica();  // others have the same lanes
    mine.insert(mine.end(),
                {holding.most_rows, counts ? holding.tokens : 0, holding.is_all ? 0 : 1});
  }
  const std::vector<int64_t> all = values_of_all(world_, mine);
  const double flops_per_token =
      training_flops_per_token(inputs_->model(), config_.data.sequence_length) / 3;  // forward
  size_t at = 0;
  for (RunInputs::ValidationSet& set : sets) {
    int64_t most_rows = 0, tokens = 0, cut = 0;
    for (size_t i = at; i < all.size(); i += mine.size()) {
      most_rows = std::max(most_rows, all[i]);
      tokens += all[i + 1];
      cut += all[i + 2];
    }
    at += 3;
    set.batches.set_rows_of_lane(most_rows);
    set.is_all = cut == 0;
    if (!tells) continue;
    const int64_t batches = set.batches.num_batches();
    const int64_t rows = batches * config_.batch.global_sequences;
    const double seconds =
        flops_per_token * static_cast<double>(rows * config_.data.sequence_length) / ceiling_flops_;
    log::info(
        "validation {}: {} {} tokens of {} in {} batch{}, at least {} each time (at the rate of "
        "large products)",
        only_validates_ ? "alone" : validation_times(), cut == 0 ? "all" : "the first",
        format_count(static_cast<double>(tokens)), set.path, batches, batches == 1 ? "" : "es",
        format_short_duration(seconds));
  }
}

void Trainer::validate() {
  for (RunInputs::ValidationSet& set : inputs_->validation_sets()) validate(set);
}

Trainer::Validated Trainer::validate(RunInputs::ValidationSet& set) {
  if (set.batches.num_batches() == 0) agree_on_validation(false);
  const auto start = Clock::now();
  StepRunner::LossSum sum;
  set.batches.rewind();
  while (const Batch* batch = set.batches.next()) {
    if (const int signal = signals_.requested(); only_validates_ && signal != 0) {
      fail(ErrorCode::kIo, "stopped by {} before the validation had ended", signal_name(signal));
    }
    in_step(step_, *device_, [&] { runner_->evaluate(*batch, sum); });
  }
  const double seconds = seconds_since(start);
  if (log_) log_->validation(step_, set.name, sum.mean(), sum.num_tokens, seconds);
  // Rank 0's, since all must decide alike.
  if (best_.is_watched()) {
    best_.observe(step_, set.name, sum_over_ranks(world_, is_first() ? sum.mean() : 0));
  }
  leave_out(seconds_since(start));
  return {set.name,   set.path, sum.mean(), sum.num_tokens, set.batches.num_batches(),
          set.is_all, seconds};
}

std::vector<Trainer::Validated> Trainer::validate_all() {
  std::vector<Validated> all;
  for (RunInputs::ValidationSet& set : inputs_->validation_sets()) all.push_back(validate(set));
  return all;
}

}  // namespace skein
