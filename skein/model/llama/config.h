// The sizes and constants of a Llama, and the Hugging Face `config.json` that they come from.
//
// Reads    the older spelling (rope_theta, rope_scaling, torch_dtype) and that of transformers 5
//          (rope_parameters, dtype); a key that is absent or null has transformers' default, but
//          for token ids, which are then none.
// Writes   the older spelling, which transformers 4 and 5 load alike.
// Errors   parse_llama_config throws Error{kInvalid | kNotFound} for a value that cannot be, and
//          Error{kUnsupported} for a feature that Skein does not have; each names file, key, value
//          found and value expected. Every size is bounded, so that the element count of a model
//          times 64 bytes fits an int64_t.
// Source   transformers, configuration_llama.py and modeling_rope_utils.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/json.h"
#include "skein/tensor/dtype.h"

namespace skein {

enum class RopeScalingKind : uint8_t { kNone, kLinear, kLlama3 };

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1;                             // linear, llama3
  double low_freq_factor = 1;                    // llama3
  double high_freq_factor = 4;                   // llama3
  int64_t original_max_position_embeddings = 0;  // llama3

  bool operator==(const RopeScaling&) const = default;
};

struct LlamaConfig {
  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate_size = 0;
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 2048;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000;
  RopeScaling rope_scaling;
  bool tie_word_embeddings = false;
  bool attention_bias = false;  // on q, k, v and o
  bool mlp_bias = false;        // on gate, up and down
  double initializer_range = 0.02;
  std::optional<int64_t> bos_token_id;
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> pad_token_id;

  int64_t query_size() const { return num_attention_heads * head_dim; }
  int64_t key_value_size() const { return num_key_value_heads * head_dim; }
  bool operator==(const LlamaConfig&) const = default;
};

// `what` names the source in errors: a path, or "[model]" for keys written inline. Where the object
// has no vocab_size, `default_vocab_size` (the tokenizer's) is taken; without either it is an
// error.
LlamaConfig parse_llama_config(const Json& json, const std::string& what,
                               std::optional<int64_t> default_vocab_size = std::nullopt);

// What config.json says that its tensors are stored as ("bfloat16", "float32"); nothing where it
// does not say. Refuses another name.
std::optional<DType> parse_hugging_face_dtype(const Json& json, const std::string& what);

// The keys that parse_llama_config understands, for checking and suggesting inline keys.
std::vector<std::string_view> llama_config_keys();

// `dtype` is what the exported tensors are stored as (kF32 or kBF16).
Json to_hugging_face_json(const LlamaConfig& config, DType dtype);

}  // namespace skein
