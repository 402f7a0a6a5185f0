#include "skein/train/explain/step_rows.h"

#include <algorithm>
#include <limits>

#include "skein/base/error.h"
#include "skein/config/run/skips.h"

namespace skein {

StepRows::StepRows(const Config& config) : config_(config), skipped_(skipped_by_run(config)) {
  if (RunPast::is_of(config)) {
    past_.emplace(config);
    newest_step_ = std::max(newest_step(config.run.dir).value_or(0), past_->newest_checkpoint());
    return;
  }
  own_tokenizer_ = load_tokenizer(config.data.tokenizer, "data.tokenizer");
  warn_of(*own_tokenizer_);
  feed_ = std::make_unique<DataFeed>(*own_tokenizer_, config, own_tokenizer_->vocab_size());
  tokenizer_ = own_tokenizer_.get();
  mixture_ = &feed_->mixture();
  recalled_.last_step = std::numeric_limits<int64_t>::max();
}

const Corpus& StepRows::corpus(size_t part) const {
  return feed_ ? feed_->corpus(part) : recalled_.opened->inputs.training_corpus(part);
}

std::vector<std::string> StepRows::sources() const {
  std::vector<std::string> names;
  for (const Mixture::Source& part : mixture_->parts()) {
    if (!part.name.empty()) names.push_back(part.name);
  }
  return names;
}

void StepRows::prepare(int64_t step) {
  packer_.reset();  // it reads what recalled_ holds
  if (!past_) return;
  const bool is_past = step <= newest_step_;
  const auto from = is_past ? past_->checkpoint_before(step - 1, false) : nullptr;
  recalled_ = is_past ? recall_step(*past_, skipped_, step, Asked::kTokens, from.get())
                      : foresee_step(*past_, skipped_, step);
  if (is_past) recalled_.last_step = std::min(recalled_.last_step, newest_step_);
  tokenizer_ = &recalled_.opened->inputs.tokenizer();
  mixture_ = &recalled_.opened->inputs.training();
}

void StepRows::read(int64_t step, int64_t lane) {
  const bool begins = mixture_ == nullptr || batch_ == std::nullopt || step > recalled_.last_step;
  if (begins) prepare(step);
  const Config& config = past_ ? recalled_.opened->config : config_;
  const BatchRamp ramp = batch_ramp(config);
  const int64_t batch = skipped_.batch_of(step), sequences = ramp.size(batch);
  const int64_t first_row =
      recalled_.states_rows + ramp.rows(recalled_.states_batch + 1, batch - 1);
  batch_.emplace(0, sequences, config.data.sequence_length);
  if (lane >= 0) {
    read_lane(lane, first_row, sequences);
  } else {
    read_all(first_row, begins);
  }
  batch_->step = step;
}

void StepRows::read_all(int64_t first_row, bool begins) {
  const int64_t sequences = batch_->sequences;
  if (begins || !packer_ || packed_sequences_ != sequences) {
    int64_t rows = recalled_.states_rows;
    std::vector<MixtureState> states = recalled_.states;
    if (!begins && packer_) {
      rows = packer_->taken();
      packer_->states(states);
    }
    packer_.emplace(*mixture_, Packer::Rows{{}, sequences, rows}, states, num_readers(config_));
    packed_sequences_ = sequences;
  }
  packer_->skip(1, first_row - packer_->taken());
  packer_->fill(*batch_, &segments_);
}

// By a packer that reads one row of the lane at a time.
void StepRows::read_lane(int64_t lane, int64_t first_row, int64_t sequences) {
  const int64_t lanes = mixture_->options().global_sequences;
  const auto rows_of_lane = [&](int64_t taken) { return (taken + lanes - 1 - lane) / lanes; };
  const int64_t first = rows_of_lane(first_row),
                count = rows_of_lane(first_row + sequences) - first;
  if (lane >= lanes || count == 0) {
    fail(ErrorCode::kUsage, "--lane {}: the step has {} rows, of lanes {} to {} of {}", lane,
         sequences, first_row % lanes, (first_row + sequences - 1) % lanes, lanes);
  }
  const int64_t read = rows_of_lane(recalled_.states_rows);
  Packer packer(*mixture_, Packer::Rows{{lane, lane + 1, lanes}, lanes, read * lanes},
                recalled_.states);
  packer.skip(first - read);
  Batch row(lane, 1, batch_->sequence_length);
  batch_.emplace(lane, count, row.sequence_length);
  std::vector<RowSegment> segments;
  segments_.clear();
  for (int64_t i = 0; i < count; ++i) {
    packer.fill(row, &segments);
    std::copy(row.tokens.begin(), row.tokens.end(),
              batch_->tokens.begin() + i * row.sequence_length);
    for (RowSegment& segment : segments) {
      segment.row = i;
      segments_.push_back(segment);
    }
  }
}

}  // namespace skein
