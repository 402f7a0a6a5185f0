// How a model's folder says that its embeddings are made: the files of sentence-transformers.
//
// modules.json                      Transformer, then Pooling, then perhaps Normalize; any other
//                                   module is refused by name
// 1_Pooling/config.json             pooling_mode: cls, lasttoken, mean or max; of older versions
//                                   one of pooling_mode_cls_token, …
// sentence_bert_config.json         max_seq_length
// config_sentence_transformers.json prompts, default_prompt_name, similarity_fn_name,
//                                   truncate_dim
// A folder without modules.json says nothing: the caller must.
//
// Errors   Error{kInvalid | kUnsupported} naming the file and what was expected
// Source   sentence-transformers 6.2
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "skein/base/files/file.h"
#include "skein/embed/pooling.h"

namespace skein {

struct EmbeddingSpec {
  Pooling pooling = Pooling::kMean;
  bool normalize = false;
  bool include_prompt = true;         // its tokens count for the pooling
  int64_t max_tokens = 0;             // 0: as many as the model takes
  int64_t dim = 0;                    // the first elements alone; 0: all
  std::string similarity = "cosine";  // cosine, dot, euclidean or manhattan
  std::map<std::string, std::string> prompts;
  std::string default_prompt;  // its name; empty: none
};

// Of a folder; nullopt where it has no modules.json. `hidden_size`: the model's.
std::optional<EmbeddingSpec> read_embedding_spec(const fs::path& folder, int64_t hidden_size);

}  // namespace skein
