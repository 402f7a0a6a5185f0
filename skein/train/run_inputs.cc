#include "skein/train/run_inputs.h"

#include "skein/base/log.h"
#include "skein/base/lost_pages.h"
#include "skein/base/units.h"
#include "skein/compile/step_programs.h"
#include "skein/objects/object_url.h"

namespace skein {

RunInputs::RunInputs(const Config& config, bool tells)
    : config_(config),
      tells_(tells),
      tokenizer_(load_tokenizer(config.data.tokenizer, "data.tokenizer")) {
  const std::string why = tells ? tokenizer_->why_not_exported() : "";
  if (!why.empty()) {
    log::warn(
        "{}: an export will not have this tokenizer, since transformers cannot give its ids: {}",
        config.data.tokenizer, why);
  }
  if (tells && tokenizer_->eos_id() < 0) {
    log::warn(
        "{}: no token ends a text, so documents follow each other without one; `eos_token` in "
        "tokenizer_config.json, beside tokenizer.json, names it",
        config.data.tokenizer);
  }
  model_ = model_of(config, tokenizer_->vocab_size());
  if (tokenizer_->bos_id() >= 0) model_.bos_token_id = tokenizer_->bos_id();
  if (tokenizer_->eos_id() >= 0) model_.eos_token_ids = {tokenizer_->eos_id()};
}

void RunInputs::open_corpora(const RowShare& share, int64_t lanes) {
  const auto cache = std::make_shared<ObjectCache>(config_.data.cache_bytes);
  training_.emplace(*tokenizer_, config_, model_.vocab_size, cache, lanes);
  if (tells_) {
    const int64_t sequences = config_.batch.global_sequences;
    warn_of_small_cache(
        lanes_of_rows(training().options().global_sequences, sequences, share.rows(sequences)));
  }
  const auto add = [&](const DataSource& source, const char* key) {
    validation_sets_.emplace_back(source, key, *tokenizer_, config_, model_.vocab_size, share,
                                  cache, training().options().global_sequences);
  };
  if (!config_.data.validation.empty()) add({config_.data.validation, 1, ""}, "data.validation");
  for (const DataSource& set : config_.data.validation_set) add(set, "data.validation_set");
}

// What lanes have asked for ahead must still be there when they come to it.
void RunInputs::warn_of_small_cache(int64_t num_lanes) const {
  int64_t needed = 0;
  for (size_t i = 0; i < training().parts().size(); ++i) {
    if (!is_object_url(training_corpus(i).path())) continue;
    needed += num_lanes * Lane::ahead_bytes(training().corpus(i));
  }
  if (needed <= config_.data.cache_bytes) return;
  log::warn(
      "data.cache_bytes is {}: {} lanes of this worker read up to {} ahead, so that text is "
      "fetched more than once: expected at least {}",
      config_.data.cache_bytes, num_lanes, format_bytes(needed), needed);
}

void RunInputs::check_unchanged() {
  const auto check = [this](const Corpus& corpus) {
    const std::string moved = corpus.check_unchanged();
    if (moved.empty() || !told_moved_.insert(&corpus).second) return;
    log::warn(
        "{} while the run reads it: the run goes on with the text that it opened; its next start "
        "needs that text in the place of the corpus {}",
        moved, corpus.path().string());
  };
  require_no_lost_pages();
  for (size_t i = 0; i < training().parts().size(); ++i) check(training_corpus(i));
  for (const ValidationSet& set : validation_sets_) check(set.feed.corpus(0));
}

RunContent RunInputs::content() const {
  RunContent content;
  content.tokenizer = tokenizer_->content_hash();
  content.tokens = tokenizer_->vocab_size();
  for (const Mixture::Part& part : training().parts()) {
    const CorpusFingerprint text = corpus_fingerprint(part.context->source());
    if (config_.data.source.empty()) {
      content.train = text;
    } else {
      content.sources.push_back({part.name, part.weight, text});
    }
  }
  if (!config_.data.validation.empty()) {
    content.validation =
        corpus_fingerprint(validation_sets_.front().feed.mixture().corpus(0).source());
  }
  require_no_lost_pages();
  return content;
}

}  // namespace skein
