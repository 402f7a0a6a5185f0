#include "skein/train/start/run_inputs.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "skein/base/files/lost_pages.h"
#include "skein/base/machine/cores.h"
#include "skein/base/text/foreign_keys.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/compile/step_programs.h"
#include "skein/data/corpus/completions.h"
#include "skein/data/learn/special_text.h"
#include "skein/objects/url.h"

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
  if (tells) warn_of(*tokenizer_);
  model_ = model_of(config, tokenizer_->vocab_size());
  if (tells) warn_of_unknown_keys();
  const bool keeps_bos = !config.model.init_from.empty() && model_.bos_token_id;
  if (tokenizer_->bos_id() >= 0 && !keeps_bos) model_.bos_token_id = tokenizer_->bos_id();
  name_ends_of_text(tokenizer_->eos_id());
}

// The model keeps the ids that its config.json names, of which the tokenizer's is one as a rule.
void RunInputs::name_ends_of_text(int64_t eos_id) {
  std::vector<int64_t>& ids = model_.eos_token_ids;
  if (eos_id < 0 || std::find(ids.begin(), ids.end(), eos_id) != ids.end()) return;
  if (config_.model.init_from.empty() || ids.empty()) {
    ids = {eos_id};
  } else if (tells_) {
    log::warn(
        "{}: token {} ends a document, and eos_token_id of the model is {}: the checkpoints and "
        "exports of this run keep the model's",
        config_.data.tokenizer, eos_id, fmt::join(ids, ", "));
  }
}

// Of model.init_from the source itself says it.
void RunInputs::warn_of_unknown_keys() const {
  const std::string& file = config_.model.hf_config;
  if (file.empty()) return;
  const std::string line = unknown_keys_text(file, model_.unknown_keys);
  if (!line.empty()) log::warn("{}", line);
}

void RunInputs::open_corpora(const RowShare& share, int64_t lanes) {
  const auto cache = std::make_shared<ObjectCache>(config_.data.cache_bytes);
  training_.emplace(*tokenizer_, config_, model_.vocab_size, cache, lanes);
  if (const auto& mask = training().corpus(0).mask()) model_.mask_token_id = mask->mask_id();
  if (tells_) {
    const int64_t sequences = config_.batch.global_sequences;
    warn_of_special_text();
    check_completions();
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

void RunInputs::warn_of_special_text() const {
  if (config_.data.special_tokens == "parse") return;
  for (size_t i = 0; i < training().parts().size(); ++i) {
    const SpecialText found = find_special_text(training_corpus(i), *tokenizer_);
    if (found.documents == 0) continue;
    log::warn(
        "{}: {} of {} documents spell a special token of the tokenizer, such as {} in document {}: "
        "they are trained as its characters; data.special_tokens = \"parse\" makes them that token",
        training_corpus(i).path().string(), found.documents,
        found.looked_at == training_corpus(i).num_documents()
            ? fmt::format("{}", found.looked_at)
            : fmt::format("the first {}", found.looked_at),
        found.example, found.document);
  }
}

// A corpus none of whose documents has a label would train on nothing, with a loss of 0.
void RunInputs::check_completions() const {
  if (config_.data.loss_on != "completion") return;
  for (size_t i = 0; i < training().parts().size(); ++i) {
    const Corpus& corpus = training_corpus(i);
    const Completions found = find_completions(corpus);
    const std::string missing = missing_completions_text(found, corpus);
    if (missing.empty()) continue;
    if (found.without == found.looked_at) {
      fail(ErrorCode::kUsage, "{}: data.loss_on is \"completion\", and {}", corpus.path().string(),
           missing);
    }
    log::warn("{}: {}", corpus.path().string(), missing);
  }
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
        "{} while the run reads it: the run continues with the text that it opened; its next start "
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
  const bool reads_spans = config_.data.loss_on == "completion";
  for (const Mixture::Source& part : training().parts()) {
    const CorpusFingerprint text = corpus_fingerprint(part.context->source(), reads_spans);
    if (config_.data.source.empty()) {
      content.train = text;
    } else {
      content.sources.push_back({part.name, part.weight, text});
    }
  }
  if (!config_.data.validation.empty()) {
    content.validation =
        corpus_fingerprint(validation_sets_.front().feed.mixture().corpus(0).source(), reads_spans);
  }
  require_no_lost_pages();
  return content;
}

int num_readers(const Config& config) {
  const int64_t cores = num_cores();
  return static_cast<int>(std::min(cores, config.batch.global_sequences));
}

}  // namespace skein
