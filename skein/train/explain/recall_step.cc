#include "skein/train/explain/recall_step.h"

#include <algorithm>
#include <limits>

#include "skein/base/text/log.h"
#include "skein/data/lanes/packer.h"
#include "skein/record/files/event_fields.h"
#include "skein/record/files/jsonl.h"

namespace skein {

RecalledStep recall_step(const RunPast& past, const SkippedBatches& skipped, int64_t step,
                         Asked asked, const CheckpointReader* from) {
  int64_t at = from == nullptr ? 0 : from->state().step;
  const size_t last = past.start_of(step);
  size_t start = past.start_of(at + 1);
  RecalledStep recalled;
  Json lanes = from == nullptr ? Json() : from->state().lanes;
  const std::string whose = from == nullptr ? "the run" : from->path().string();
  int64_t rows = from == nullptr ? 0 : rows_taken_in(lanes, skipped.batch_of(at), whose);
  while (past.change_within(start + 1, last, Asked::kTokens) != nullptr) {
    while (past.change_within(start + 1, start + 1, Asked::kTokens) == nullptr) ++start;
    const auto opened = past.opened(start, Asked::kTokens);
    const Mixture& mixture = opened->inputs.training();
    if (!lanes.is_null()) recalled.states = lanes_from_json(lanes, mixture, whose);
    Packer packer(mixture, {.sequences = opened->config.batch.global_sequences, .taken = rows},
                  recalled.states, num_readers(opened->config));
    const int64_t changes_after = past.last_step(start);
    packer.skip(
        1,
        batch_ramp(opened->config).rows(skipped.batch_of(at) + 1, skipped.batch_of(changes_after)));
    rows = packer.taken();
    packer.states(recalled.states);
    lanes = lanes_to_json(mixture, recalled.states);
    at = changes_after;
    ++start;
  }
  recalled.opened = past.opened(last, asked);
  recalled.states_batch = skipped.batch_of(at);
  recalled.states_rows = rows;
  recalled.last_step = past.last_step(last);
  if (!lanes.is_null()) {
    recalled.states = lanes_from_json(lanes, recalled.opened->inputs.training(), whose);
  }
  const std::string differences = past.differences(last, asked);
  if (!differences.empty()) log::info("step {} was trained with {}", step, differences);
  return recalled;
}

RecalledStep foresee_step(const RunPast& past, const SkippedBatches& skipped, int64_t step) {
  RecalledStep recalled;
  recalled.opened = past.now();
  recalled.last_step = std::numeric_limits<int64_t>::max();
  const auto from = past.checkpoint_before(std::numeric_limits<int64_t>::max() - 1, false);
  if (from) {
    recalled.states =
        lanes_from_json(from->state().lanes, past.now()->inputs.training(), from->path().string());
    recalled.states_batch = skipped.batch_of(from->state().step);
    recalled.states_rows =
        rows_taken_in(from->state().lanes, recalled.states_batch, from->path().string());
  }
  const int64_t last = from ? from->state().step : 1;
  const std::string differences = past.differences(past.start_of(last), Asked::kTokens);
  if (!differences.empty()) {
    log::info(
        "step {} is yet to come: this is what the configuration at hand would read from step {} "
        "on, if run.accept_changes allows it; that step was trained with {}",
        step, last, differences);
  }
  return recalled;
}

std::optional<int64_t> newest_step(const fs::path& run) {
  constexpr size_t kEndBytes = 1 << 20;
  std::optional<int64_t> newest;
  for_each_json_line(
      run / "metrics.jsonl",
      [&](const Json& json) { newest = std::max(newest.value_or(0), integer_or(json, "step", 0)); },
      kEndBytes);
  return newest;
}

}  // namespace skein
