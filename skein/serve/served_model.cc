#include "skein/serve/served_model.h"

#include <algorithm>
#include <ctime>

#include "skein/weights/generation_defaults.h"
#include "skein/weights/source_tokenizer.h"

namespace skein {
ServedModel::ServedModel(const ServedModelOptions& options)
    : options_(options),
      source_(options.path),
      tokenizer_(tokenizer_of(source_)),
      created_(std::time(nullptr)),
      eos_ids_(generation_defaults(source_).eos_ids) {
  options_.engine.max_positions = engine_positions(source_.config(), options.engine.max_positions);
  for (int32_t id = 0; id < vocab_size(); ++id) {
    if (!tokenizer_->has_token(id)) never_.push_back(id);
  }
  special_tokens_ = special_tokens_of(source_.tokenizer());
  if (auto source = own_chat_template(source_.tokenizer())) {
    chat_.emplace(ChatOptions{.source = std::move(*source), .finds_spans = false});
  }
}

bool ServedModel::ends_text(int32_t token) const {
  return std::find(eos_ids_.begin(), eos_ids_.end(), token) != eos_ids_.end();
}

std::unique_ptr<TextEngine> ServedModel::make_engine(Device& device, int64_t replica) const {
  return std::make_unique<TextEngine>(source_, device,
                                      options_of_replica(options_.engine, replica));
}

}  // namespace skein
