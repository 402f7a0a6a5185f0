#include "skein/train/step_rows.h"

#include <algorithm>
#include <limits>

#include "skein/config/run_skips.h"

namespace skein {

StepRows::StepRows(const Config& config) : config_(config), skipped_(skipped_by_run(config)) {
  if (RunPast::is_of(config)) {
    past_.emplace(config);
    newest_step_ = std::max(newest_step(config.run.dir).value_or(0), past_->newest_checkpoint());
    return;
  }
  own_tokenizer_ = load_tokenizer(config.data.tokenizer, "data.tokenizer");
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
  for (const Mixture::Part& part : mixture_->parts()) {
    if (!part.name.empty()) names.push_back(part.name);
  }
  return names;
}

void StepRows::prepare(int64_t step, int64_t first_lane, int64_t end_lane) {
  int64_t sequence_length = config_.data.sequence_length;
  if (past_) {
    packer_.reset();  // it reads what recalled_ holds
    const bool is_past = step <= newest_step_;
    const auto from = is_past ? past_->checkpoint_before(step - 1, false) : nullptr;
    recalled_ = is_past ? recall_step(*past_, skipped_, step, Asked::kTokens, from.get())
                        : foresee_step(*past_, skipped_, step);
    if (is_past) recalled_.last_step = std::min(recalled_.last_step, newest_step_);
    tokenizer_ = &recalled_.opened->inputs.tokenizer();
    mixture_ = &recalled_.opened->inputs.training();
    sequence_length = recalled_.opened->config.data.sequence_length;
  }
  packer_.emplace(*mixture_, first_lane, end_lane, recalled_.states);
  read_batches_ = recalled_.states_batch;
  batch_.emplace(first_lane, end_lane - first_lane, sequence_length);
}

void StepRows::read(int64_t step, int64_t first_lane, int64_t end_lane) {
  if (end_lane == 0) end_lane = config_.batch.global_sequences;
  if (!packer_ || step > recalled_.last_step) prepare(step, first_lane, end_lane);
  const int64_t batch = skipped_.batch_of(step);
  packer_->skip(batch - read_batches_ - 1);
  packer_->fill(*batch_, &segments_);
  read_batches_ = batch;
  batch_->step = step;
}

}  // namespace skein
