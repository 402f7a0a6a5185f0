// A model with all that requests are answered with. It does not change: a model that is loaded
// again is another one, and requests keep the one that they began with.
//
// Numbers  computed in `engine.compute_dtype`: fp32 unless set, whatever the weights are stored as
// Errors   those of ModelSource, Tokenizer and TextEngine, naming the file
// Threads  several may call const functions at once
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/chat/chat_renderer.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "skein/infer/engine_memory.h"
#include "skein/infer/engine_replicas.h"
#include "skein/weights/model_source.h"

namespace skein {

struct ServedModelOptions {
  std::string path;  // a Hugging Face folder, a checkpoint or a run
  std::string name;  // that requests give
  // `max_positions`, of a text with its new tokens; 0: all that it is meant for.
  EngineOptions engine = {.cache_bytes = kUsualCacheBytes};
  int64_t replicas = 1;
};

class ServedModel {
 public:
  explicit ServedModel(const ServedModelOptions& options);

  const std::string& name() const { return options_.name; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  int64_t vocab_size() const { return source_.config().vocab_size; }
  int64_t max_length() const { return options_.engine.max_positions; }
  int64_t created() const { return created_; }  // seconds since 1970
  std::string path() const { return source_.path().string(); }
  bool ends_text(int32_t token) const;
  // Ids without a token, which are never drawn.
  std::span<const int32_t> never() const { return never_; }
  // What tokenizer_config.json names: bos_token, eos_token, unk_token, pad_token.
  const std::map<std::string, std::string>& special_tokens() const { return special_tokens_; }
  // Nullptr: the tokenizer has no chat template.
  const ChatRenderer* chat() const { return chat_ ? &*chat_ : nullptr; }

  // What its engine takes of a device with these kernels.
  EngineMemory memory(const KernelTable& kernels) const {
    return engine_memory(source_.config(), options_.engine, kernels);
  }
  std::unique_ptr<TextEngine> make_engine(Device& device, int64_t replica) const;

 private:
  ServedModelOptions options_;
  const ModelSource source_;
  const std::unique_ptr<Tokenizer> tokenizer_;
  int64_t created_ = 0;
  std::vector<int64_t> eos_ids_;
  std::vector<int32_t> never_;
  std::map<std::string, std::string> special_tokens_;
  std::optional<ChatRenderer> chat_;
};

}  // namespace skein
