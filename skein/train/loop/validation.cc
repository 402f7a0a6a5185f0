#include "skein/train/loop/validation.h"

#include <algorithm>
#include <map>
#include <numbers>

#include "skein/base/machine/clock.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/model/decoder.h"
#include "skein/train/loop/in_step.h"
#include "skein/train/start/consensus.h"

namespace skein {

Validation::Validation(PreparedRun& run, StepRunner& runner, const StopSignals& signals)
    : run_(run),
      runner_(runner),
      signals_(signals),
      best_(run.config.checkpoint.best_by, run.config.run.stop_after_worse) {}

// "before step 1, every 100 steps and at the end"
std::string Validation::times() const {
  std::vector<std::string> times;
  const int64_t every = run_.config.validate.every_steps;
  if (run_.config.validate.before_training && run_.beginning.step() == 0) {
    times.emplace_back("before step 1");
  }
  if (every > 0) times.push_back(every == 1 ? "every step" : fmt::format("every {} steps", every));
  if (every == 0 || run_.config.run.steps % every != 0) times.emplace_back("at the end");
  std::string text;
  for (size_t i = 0; i < times.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == times.size() ? " and " : ", ") + times[i];
  }
  return text;
}

// A rank counts its own lanes.
void Validation::agree(bool tells) {
  auto& sets = run_.inputs.validation_sets();
  if (sets.empty()) return;
  std::vector<int64_t> mine;
  for (RunInputs::ValidationSet& set : sets) {
    const Packer::Holding holding = set.batches.count(num_readers(run_.config));
    const bool counts = run_.layout.is_first_of_replica();  // others have the same lanes
    mine.insert(mine.end(),
                {holding.most_rows, counts ? holding.tokens : 0, holding.is_all ? 0 : 1});
  }
  const std::vector<int64_t> all = values_of_all(run_.world, mine);
  const int64_t length = run_.config.data.sequence_length;
  const double flops_per_token =
      training_flops_per_token(run_.inputs.model(), length) / 3;  // forward
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
    const int64_t rows = batches * run_.config.batch.global_sequences;
    const double seconds =
        flops_per_token * static_cast<double>(rows * length) / run_.ceiling_flops;
    log::info(
        "validation {}: {} {} tokens of {} in {}, at least {} each time (at the rate of "
        "large products)",
        run_.only_validates() ? "alone" : times(), cut == 0 ? "all" : "the first",
        format_count(static_cast<double>(tokens)), set.path, counted(batches, "batch", "batches"),
        format_short_duration(seconds));
  }
}

std::vector<Validated> Validation::validate(int64_t step) {
  std::vector<Validated> all;
  for (RunInputs::ValidationSet& set : run_.inputs.validation_sets()) {
    all.push_back(validate(step, set));
  }
  return all;
}

Validated Validation::validate(int64_t step, RunInputs::ValidationSet& set) {
  if (set.batches.num_batches() == 0) agree(false);
  const auto start = Clock::now();
  StepRunner::LossSum sum;
  run_batches(step, set, sum);
  const double seconds = seconds_since(start);
  const double bits_per_byte =
      sum.loss / std::numbers::ln2 / static_cast<double>(std::max<int64_t>(set.num_bytes, 1));
  if (run_.log) {
    run_.log->validation({.step = step,
                          .set = set.name,
                          .loss = sum.mean(),
                          .bits_per_byte = bits_per_byte,
                          .num_tokens = sum.num_tokens,
                          .seconds = seconds});
  }
  // Rank 0's, since all must decide alike.
  if (best_.is_watched()) {
    const double loss = sum_over_ranks(run_.world, run_.is_first() ? sum.mean() : 0);
    best_.observe(step, set.name, loss);
  }
  return {.set = set.name,
          .path = set.path,
          .loss = sum.mean(),
          .bits_per_byte = bits_per_byte,
          .num_labels = sum.num_tokens,
          .num_batches = set.batches.num_batches(),
          .is_all = set.is_all,
          .seconds = seconds};
}

// The first time, the tokens of a set that is not read to its end say how much text they are.
void Validation::run_batches(int64_t step, RunInputs::ValidationSet& set,
                             StepRunner::LossSum& sum) {
  const bool has_all_labels = set.is_all && run_.config.data.loss_on != "completion";
  if (has_all_labels) set.num_bytes = set.feed.corpus(0).num_bytes();
  const bool counts = set.num_bytes == 0;
  std::map<int64_t, std::vector<int32_t>> labels;  // by lane
  set.batches.rewind();
  while (const Batch* batch = set.batches.next()) {
    if (const int signal = signals_.requested(); run_.only_validates() && signal != 0) {
      fail(ErrorCode::kIo, "stopped by {} before the validation had ended", signal_name(signal));
    }
    in_step(step, *run_.device, [&] { runner_.evaluate(*batch, sum); });
    for (int64_t row = 0; counts && row < batch->sequences; ++row) {
      for (const int32_t label : batch->row(batch->labels, row)) {
        if (label != kNoLabel) labels[batch->lane(row)].push_back(label);
      }
    }
  }
  if (!counts) return;
  double num_bytes = 0;
  for (const auto& [lane, ids] : labels) {
    num_bytes += static_cast<double>(run_.inputs.tokenizer().decode(ids).size());
  }
  if (!run_.layout.is_first_of_replica()) num_bytes = 0;  // others have the same lanes
  set.num_bytes = static_cast<int64_t>(sum_over_ranks(run_.world, num_bytes));
}

}  // namespace skein
