#include "skein/train/run_inputs.h"

#include "skein/base/log.h"
#include "skein/compile/step_programs.h"

namespace skein {

RunInputs::RunInputs(const Config& config, bool tells)
    : config_(config), tokenizer_(load_tokenizer(config.data.tokenizer, "data.tokenizer")) {
  const std::string why = tells ? tokenizer_->why_not_exported() : "";
  if (!why.empty()) {
    log::warn(
        "{}: an export will not have this tokenizer, since transformers cannot give its ids: {}",
        config.data.tokenizer, why);
  }
  model_ = model_of(config, tokenizer_->vocab_size());
  if (model_.vocab_size < tokenizer_->vocab_size()) {
    fail(ErrorCode::kUsage,
         "the model's vocab_size is {}, the tokenizer {} has {} tokens: set model.vocab_size to at "
         "least that",
         model_.vocab_size, config.data.tokenizer, tokenizer_->vocab_size());
  }
  if (tokenizer_->bos_id() >= 0) model_.bos_token_id = tokenizer_->bos_id();
  if (tokenizer_->eos_id() >= 0) model_.eos_token_ids = {tokenizer_->eos_id()};
}

void RunInputs::open_corpora(const LoaderOptions& lanes) {
  training_ =
      std::make_unique<DataFeed>(config_.data.train, *tokenizer_, config_, model_.vocab_size);
  if (config_.data.validation.empty()) return;
  validation_ = std::make_unique<DataFeed>(config_.data.validation, *tokenizer_, config_,
                                           model_.vocab_size, "data.validation");
  validation_batches_ = std::make_unique<ValidationBatches>(
      validation_->context(), lanes.first_lane, lanes.end_lane, config_.validate.batches);
}

RunContent RunInputs::content() const {
  RunContent content;
  content.tokenizer = tokenizer_->content_hash();
  content.tokens = tokenizer_->vocab_size();
  content.train = corpus_fingerprint(training().source());
  if (validation_) content.validation = corpus_fingerprint(validation().source());
  return content;
}

}  // namespace skein
