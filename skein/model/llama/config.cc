#include "skein/model/llama/config.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "skein/base/error.h"

namespace skein {
namespace {

// Wide enough for any model of the family, narrow enough that no product below overflows.
constexpr int64_t kMaxSize = int64_t{1} << 20;
constexpr int64_t kMaxLayers = int64_t{1} << 14;
constexpr int64_t kMaxVocabulary = int64_t{1} << 28;
constexpr int64_t kMaxPosition = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxEosTokens = 64;

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text.replace(77, text.npos, "...");
  return text;
}

// Typed, range-checked reading of one JSON object; null counts as absent.
class Keys {
 public:
  Keys(const Json& object, std::string what, std::string prefix = "")
      : object_(object), what_(std::move(what)), prefix_(std::move(prefix)) {
    if (!object_.is_object()) {
      fail(ErrorCode::kInvalid, "{}: {} {}, expected a JSON object", what_,
           prefix_.empty() ? "found" : prefix_.substr(0, prefix_.size() - 1) + " is",
           shown(object_));
    }
  }

  const Json* find(const std::string& key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  [[noreturn]] void refuse(ErrorCode code, const std::string& key,
                           const std::string& expected) const {
    const Json* value = find(key);
    if (value == nullptr) {
      fail(ErrorCode::kNotFound, "{}: {}{} is missing, expected {}", what_, prefix_, key, expected);
    }
    fail(code, "{}: {}{} is {}, expected {}", what_, prefix_, key, shown(*value), expected);
  }

  int64_t integer(const std::string& key, int64_t low, int64_t high,
                  std::optional<int64_t> fallback = std::nullopt) const {
    const Json* value = find(key);
    if (value == nullptr && fallback) return *fallback;
    if (value == nullptr || !is_integer_in(*value, low, high)) {
      refuse(ErrorCode::kInvalid, key, fmt::format("an integer from {} to {}", low, high));
    }
    return value->get<int64_t>();
  }

  double number(const std::string& key, double low, double high,
                std::optional<double> fallback = std::nullopt) const {
    const Json* value = find(key);
    if (value == nullptr && fallback) return *fallback;
    const double found = value != nullptr && value->is_number() ? value->get<double>() : NAN;
    if (!(found >= low && found <= high)) {
      refuse(ErrorCode::kInvalid, key, fmt::format("a number from {} to {}", low, high));
    }
    return found;
  }

  bool boolean(const std::string& key, bool fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) refuse(ErrorCode::kInvalid, key, "true or false");
    return value->get<bool>();
  }

  std::string text(const std::string& key, const std::string& fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_string()) refuse(ErrorCode::kInvalid, key, "a string");
    return value->get<std::string>();
  }

  static bool is_integer_in(const Json& value, int64_t low, int64_t high) {
    if (!value.is_number_integer()) return false;
    if (value.is_number_unsigned() &&
        value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
      return false;
    }
    return value.get<int64_t>() >= low && value.get<int64_t>() <= high;
  }

  const std::string& what() const { return what_; }

 private:
  const Json& object_;
  std::string what_;
  std::string prefix_;
};

// What would compute something else than Skein does is refused rather than ignored.
void refuse_unsupported(const Keys& keys) {
  const auto only_text = [&](const char* key, const char* expected) {
    if (keys.text(key, expected) != expected) {
      keys.refuse(ErrorCode::kUnsupported, key, fmt::format("\"{}\"", expected));
    }
  };
  only_text("model_type", "llama");
  only_text("hidden_act", "silu");
  for (const char* key : {"quantization_config", "sliding_window"}) {
    if (keys.find(key) != nullptr) {
      keys.refuse(ErrorCode::kUnsupported, key, "null: Skein does not have this feature");
    }
  }
  if (keys.number("attention_dropout", 0, 1, 0.0) != 0) {
    keys.refuse(ErrorCode::kUnsupported, "attention_dropout", "0: Skein trains without dropout");
  }
  if (keys.number("partial_rotary_factor", 0, 1, 1.0) != 1) {
    keys.refuse(ErrorCode::kUnsupported, "partial_rotary_factor", "1: the whole head rotates");
  }
  if (keys.boolean("rope_interleaved", false)) {
    keys.refuse(ErrorCode::kUnsupported, "rope_interleaved", "false: halves rotate, not pairs");
  }
  if (const Json* architectures = keys.find("architectures")) {
    if (!architectures->is_array() ||
        (!architectures->empty() && architectures->front() != "LlamaForCausalLM")) {
      keys.refuse(ErrorCode::kUnsupported, "architectures", "[\"LlamaForCausalLM\"]");
    }
  }
}

void parse_sizes(const Keys& keys, std::optional<int64_t> default_vocab_size, LlamaConfig& config) {
  config.hidden_size = keys.integer("hidden_size", 1, kMaxSize);
  config.num_hidden_layers = keys.integer("num_hidden_layers", 1, kMaxLayers);
  config.num_attention_heads = keys.integer("num_attention_heads", 1, kMaxSize);
  config.intermediate_size = keys.integer("intermediate_size", 1, kMaxSize);
  config.vocab_size = keys.integer("vocab_size", 2, kMaxVocabulary, default_vocab_size);
  config.max_position_embeddings = keys.integer("max_position_embeddings", 1, kMaxPosition, 2048);

  const int64_t heads = config.num_attention_heads;
  if (config.hidden_size % heads != 0) {
    keys.refuse(ErrorCode::kInvalid, "num_attention_heads",
                fmt::format("a divisor of hidden_size {}", config.hidden_size));
  }
  config.num_key_value_heads = keys.integer("num_key_value_heads", 1, kMaxSize, heads);
  if (heads % config.num_key_value_heads != 0) {
    keys.refuse(ErrorCode::kInvalid, "num_key_value_heads",
                fmt::format("a divisor of num_attention_heads {}", heads));
  }
  config.head_dim = keys.integer("head_dim", 2, kMaxSize, config.hidden_size / heads);
  if (config.head_dim % 2 != 0) {
    fail(ErrorCode::kInvalid,
         "{}: head_dim is {} (hidden_size {} / num_attention_heads {} where it is not given), "
         "expected an even number: rotary embeddings turn pairs of dims",
         keys.what(), config.head_dim, config.hidden_size, heads);
  }
  if (config.head_dim > kMaxSize / heads) {
    fail(ErrorCode::kInvalid,
         "{}: num_attention_heads {} times head_dim {} is {}, expected at most {}", keys.what(),
         heads, config.head_dim, heads * config.head_dim, kMaxSize);
  }
}

RopeScaling parse_scaling(const Keys& rope, int64_t default_original) {
  RopeScaling scaling;
  const std::string key = rope.find("rope_type") != nullptr ? "rope_type" : "type";
  const std::string type = rope.text(key, "default");
  if (rope.number("partial_rotary_factor", 0, 1, 1.0) != 1) {
    rope.refuse(ErrorCode::kUnsupported, "partial_rotary_factor", "1: the whole head rotates");
  }
  if (type == "default") return scaling;
  if (type != "linear" && type != "llama3") {
    rope.refuse(ErrorCode::kUnsupported, key, "\"default\", \"linear\" or \"llama3\"");
  }
  scaling.factor = rope.number("factor", 1, 1e6);
  if (type == "linear") {
    scaling.kind = RopeScalingKind::kLinear;
    return scaling;
  }
  scaling.kind = RopeScalingKind::kLlama3;
  scaling.low_freq_factor = rope.number("low_freq_factor", 1e-6, 1e6);
  scaling.high_freq_factor = rope.number("high_freq_factor", 1e-6, 1e6);
  if (!(static_cast<float>(scaling.high_freq_factor - scaling.low_freq_factor) > 0)) {
    rope.refuse(ErrorCode::kInvalid, "high_freq_factor",
                fmt::format("more than low_freq_factor {}", scaling.low_freq_factor));
  }
  scaling.original_max_position_embeddings =
      rope.integer("original_max_position_embeddings", 1, kMaxPosition, default_original);
  return scaling;
}

void parse_rope(const Keys& keys, LlamaConfig& config) {
  constexpr double kMinTheta = 1, kMaxTheta = 1e15;
  config.rope_theta = keys.number("rope_theta", kMinTheta, kMaxTheta, 10000.0);
  const int64_t default_original = keys.integer("original_max_position_embeddings", 1, kMaxPosition,
                                                config.max_position_embeddings);
  std::optional<LlamaConfig> other;
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const Json* object = keys.find(name);
    if (object == nullptr) continue;
    const Keys rope(*object, keys.what(), std::string(name) + ".");
    const double theta = rope.number("rope_theta", kMinTheta, kMaxTheta, config.rope_theta);
    if (keys.find("rope_theta") != nullptr && theta != config.rope_theta) {
      rope.refuse(ErrorCode::kInvalid, "rope_theta",
                  fmt::format("{}, as rope_theta says; keep one of the two", config.rope_theta));
    }
    LlamaConfig found = config;
    found.rope_theta = theta;
    found.rope_scaling = parse_scaling(rope, default_original);
    if (other && (other->rope_theta != theta || other->rope_scaling != found.rope_scaling)) {
      keys.refuse(ErrorCode::kInvalid, name, "what rope_scaling says; keep one of the two");
    }
    other = found;
  }
  if (other) config = *other;
}

std::optional<int64_t> parse_token_id(const Keys& keys, const char* key, int64_t vocab_size) {
  // Older exports write -1 for "none".
  const int64_t id = keys.integer(key, -1, vocab_size - 1, -1);
  return id < 0 ? std::nullopt : std::optional<int64_t>(id);
}

std::vector<int64_t> parse_eos(const Keys& keys, int64_t vocab_size) {
  const Json* value = keys.find("eos_token_id");
  if (value == nullptr) return {};
  if (!value->is_array()) {
    const std::optional<int64_t> id = parse_token_id(keys, "eos_token_id", vocab_size);
    return id ? std::vector<int64_t>{*id} : std::vector<int64_t>{};
  }
  std::vector<int64_t> ids;
  for (const Json& id : *value) {
    if (!Keys::is_integer_in(id, 0, vocab_size - 1) || ids.size() == kMaxEosTokens) {
      keys.refuse(ErrorCode::kInvalid, "eos_token_id",
                  fmt::format("a token id below vocab_size {}, or a list of at most {} of them",
                              vocab_size, kMaxEosTokens));
    }
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

}  // namespace

LlamaConfig parse_llama_config(const Json& json, const std::string& what,
                               std::optional<int64_t> default_vocab_size) {
  const Keys keys(json, what);
  refuse_unsupported(keys);
  LlamaConfig config;
  parse_sizes(keys, default_vocab_size, config);
  config.rms_norm_eps = keys.number("rms_norm_eps", 1e-12, 1, 1e-6);
  config.initializer_range = keys.number("initializer_range", 0, 1, 0.02);
  config.tie_word_embeddings = keys.boolean("tie_word_embeddings", false);
  config.attention_bias = keys.boolean("attention_bias", false);
  config.mlp_bias = keys.boolean("mlp_bias", false);
  parse_rope(keys, config);
  config.bos_token_id = parse_token_id(keys, "bos_token_id", config.vocab_size);
  config.eos_token_ids = parse_eos(keys, config.vocab_size);
  config.pad_token_id = parse_token_id(keys, "pad_token_id", config.vocab_size);
  return config;
}

std::optional<DType> parse_hugging_face_dtype(const Json& json, const std::string& what) {
  const Keys keys(json, what);
  const std::string key = keys.find("dtype") != nullptr ? "dtype" : "torch_dtype";
  const std::string name = keys.text(key, "");
  if (name.empty()) return std::nullopt;
  if (name == "float32") return DType::kF32;
  if (name == "bfloat16") return DType::kBF16;
  keys.refuse(ErrorCode::kUnsupported, key,
              "\"float32\" or \"bfloat16\": save the model again as one of them, with transformers "
              "model.to(torch.bfloat16).save_pretrained(…)");
}

std::vector<std::string_view> llama_config_keys() {
  return {
      "hidden_size",       "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
      "head_dim",          "intermediate_size", "vocab_size",          "max_position_embeddings",
      "rms_norm_eps",      "rope_theta",        "rope_scaling",        "rope_parameters",
      "attention_bias",    "mlp_bias",          "tie_word_embeddings", "hidden_act",
      "initializer_range", "bos_token_id",      "eos_token_id",        "pad_token_id",
      "model_type"};
}

namespace {

Json rope_scaling_json(const RopeScaling& scaling) {
  switch (scaling.kind) {
    case RopeScalingKind::kNone:
      return nullptr;
    case RopeScalingKind::kLinear:
      // "type" is what transformers before 4.43 reads.
      return {{"type", "linear"}, {"rope_type", "linear"}, {"factor", scaling.factor}};
    case RopeScalingKind::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", scaling.factor},
              {"low_freq_factor", scaling.low_freq_factor},
              {"high_freq_factor", scaling.high_freq_factor},
              {"original_max_position_embeddings", scaling.original_max_position_embeddings}};
  }
  return nullptr;
}

Json optional_json(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(); }

}  // namespace

Json to_hugging_face_json(const LlamaConfig& config, DType dtype) {
  Json eos = config.eos_token_ids;
  if (config.eos_token_ids.size() < 2) {
    eos = config.eos_token_ids.empty() ? Json() : Json(config.eos_token_ids.front());
  }
  return {{"architectures", Json::array({"LlamaForCausalLM"})},
          {"attention_bias", config.attention_bias},
          {"attention_dropout", 0.0},
          {"bos_token_id", optional_json(config.bos_token_id)},
          {"eos_token_id", eos},
          {"head_dim", config.head_dim},
          {"hidden_act", "silu"},
          {"hidden_size", config.hidden_size},
          {"initializer_range", config.initializer_range},
          {"intermediate_size", config.intermediate_size},
          {"max_position_embeddings", config.max_position_embeddings},
          {"mlp_bias", config.mlp_bias},
          {"model_type", "llama"},
          {"num_attention_heads", config.num_attention_heads},
          {"num_hidden_layers", config.num_hidden_layers},
          {"num_key_value_heads", config.num_key_value_heads},
          {"pad_token_id", optional_json(config.pad_token_id)},
          {"pretraining_tp", 1},
          {"rms_norm_eps", config.rms_norm_eps},
          {"rope_scaling", rope_scaling_json(config.rope_scaling)},
          {"rope_theta", config.rope_theta},
          {"tie_word_embeddings", config.tie_word_embeddings},
          {"torch_dtype", dtype == DType::kBF16 ? "bfloat16" : "float32"},
          {"use_cache", true},
          {"vocab_size", config.vocab_size}};
}

}  // namespace skein
