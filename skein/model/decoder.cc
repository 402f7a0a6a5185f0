#include "skein/model/decoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "skein/base/text/divisors.h"
#include "skein/base/text/foreign_keys.h"
#include "skein/base/text/units.h"
#include "skein/model/config_keys.h"
#include "skein/model/decoder_graph.h"

namespace skein {

#define SKEIN_FAMILY(name) extern const FamilyDef name##_family;
#include "skein/model/families.def"
#undef SKEIN_FAMILY

namespace {

// Bounds that admit any decoder and keep products of sizes from overflowing.
constexpr int64_t kMaxLayers = int64_t{1} << 14;
constexpr int64_t kMaxVocabulary = int64_t{1} << 28;
constexpr size_t kMaxEosTokens = 64;

std::string known_types() {
  std::vector<std::string_view> types;
  for (const FamilyDef* family : decoder_families()) types.push_back(family->model_type);
  return fmt::format("`{}`", fmt::join(types, "`, `"));
}

std::vector<ModelKey> common_keys() {
  using enum ModelKey::Kind;
  return {
      {"model_type", kString, "the family, one of " + known_types()},
      {"vocab_size", kInteger, "rows of the embedding; left out: the tokenizer's"},
      {"hidden_size", kInteger, "width of the residual stream"},
      {"intermediate_size", kInteger, "width of the MLP"},
      {"num_hidden_layers", kInteger, "decoder layers"},
      {"num_attention_heads", kInteger, "query heads"},
      {"num_key_value_heads", kInteger,
       "key-value heads; left out: what transformers takes, for a Llama as many as query heads"},
      {"head_dim", kInteger,
       "width of a head; left out: what transformers takes, for a Llama hidden_size / "
       "num_attention_heads"},
      {"max_position_embeddings", kInteger, "longest sequence that the model is meant for"},
      {"hidden_act", kString, "`silu`"},
      {"tie_word_embeddings", kBool, "the output head shares the embedding's weights"},
      {"bos_token_id", kInteger, "written to the export"},
      {"eos_token_id", kIntegerOrList, "written to the export"},
      {"pad_token_id", kInteger, "written to the export"},
  };
}

const FamilyDef& family_of(const ConfigKeys& keys) {
  const std::string type = keys.text("model_type", "llama");
  std::vector<std::string> known;
  for (const FamilyDef* family : decoder_families()) {
    if (family->model_type == type) return *family;
    known.push_back(fmt::format("\"{}\"", family->model_type));
  }
  keys.refuse(ErrorCode::kUnsupported, "model_type",
              fmt::format("{}{}: this is a {} model, which Skein does not have",
                          known.size() > 1 ? "one of " : "", fmt::join(known, ", "), type));
}

void refuse_unsupported(const ConfigKeys& keys, const FamilyDef& family) {
  keys.only("hidden_act", "silu");
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    const bool is_passed_over =
        family.unread_key != nullptr && std::string_view(bias) == family.unread_key;
    if (reads_key(family, bias) || is_passed_over) continue;
    keys.only_false(bias, fmt::format("a {} model has none", family.model_type));
  }
  const Json* architectures = keys.find("architectures");
  if (architectures == nullptr) return;
  // The layers alone (LlamaModel) are the same; errors about its tensors say what it lacks.
  std::string layers_alone(family.architecture);
  const size_t head = layers_alone.find("For");
  if (head != layers_alone.npos) layers_alone.replace(head, layers_alone.npos, "Model");
  if (!architectures->is_array() ||
      (!architectures->empty() && architectures->front() != std::string(family.architecture) &&
       architectures->front() != layers_alone)) {
    keys.refuse(ErrorCode::kUnsupported, "architectures",
                fmt::format("[\"{}\"]", family.architecture));
  }
}

void parse_head_dim(const ConfigKeys& keys, DecoderConfig& config) {
  const int64_t heads = config.num_attention_heads;
  const int64_t usual = config.family->default_head_dim;
  if (usual == 0 && config.hidden_size % heads != 0) {
    keys.refuse(ErrorCode::kInvalid, "num_attention_heads",
                fmt::format("a divisor of hidden_size {}, such as {}", config.hidden_size,
                            divisors_near(heads, config.hidden_size)));
  }
  config.head_dim =
      keys.integer("head_dim", 2, kMaxSize, usual == 0 ? config.hidden_size / heads : usual);
  if (config.head_dim % 2 != 0) {
    fail(ErrorCode::kInvalid,
         "{}: head_dim is {} (hidden_size {} / num_attention_heads {} where it is not given), "
         "expected an even number: rotary embeddings turn pairs of dims; {} would do",
         keys.what(), config.head_dim, config.hidden_size, heads,
         keys.find("head_dim") != nullptr
             ? fmt::format("head_dim {}", multiples_near(config.head_dim, 2))
             : fmt::format("hidden_size {}", multiples_near(config.hidden_size, 2 * heads)));
  }
  if (config.head_dim > kMaxSize / heads) {
    fail(ErrorCode::kInvalid,
         "{}: num_attention_heads {} times head_dim {} is {}, expected at most {}", keys.what(),
         heads, config.head_dim, heads * config.head_dim, kMaxSize);
  }
}

void parse_sizes(const ConfigKeys& keys, std::optional<int64_t> default_vocab_size,
                 DecoderConfig& config) {
  const FamilyDef& family = *config.family;
  config.hidden_size = keys.integer("hidden_size", 1, kMaxSize);
  config.num_hidden_layers = keys.integer("num_hidden_layers", 1, kMaxLayers);
  config.num_attention_heads = keys.integer("num_attention_heads", 1, kMaxSize);
  config.intermediate_size = keys.integer("intermediate_size", 1, kMaxSize);
  config.vocab_size = keys.integer("vocab_size", 2, kMaxVocabulary, default_vocab_size);
  config.max_position_embeddings =
      keys.integer("max_position_embeddings", 1, kMaxPosition, family.default_max_positions);
  parse_head_dim(keys, config);
  const int64_t heads = config.num_attention_heads;
  const int64_t usual = family.default_key_value_heads;
  config.num_key_value_heads =
      keys.integer("num_key_value_heads", 1, kMaxSize, usual == 0 ? heads : usual);
  if (heads % config.num_key_value_heads != 0) {
    keys.refuse(ErrorCode::kInvalid, "num_key_value_heads",
                fmt::format("a divisor of num_attention_heads {}, such as {}", heads,
                            divisors_near(config.num_key_value_heads, heads)));
  }
}

std::optional<int64_t> parse_token_id(const ConfigKeys& keys, const char* key, int64_t vocab_size) {
  // Older exports write -1 for "none".
  const int64_t id = keys.integer(key, -1, vocab_size - 1, -1);
  return id < 0 ? std::nullopt : std::optional<int64_t>(id);
}

std::vector<int64_t> parse_eos(const ConfigKeys& keys, int64_t vocab_size) {
  const Json* value = keys.find("eos_token_id");
  if (value == nullptr) return {};
  if (!value->is_array()) {
    const std::optional<int64_t> id = parse_token_id(keys, "eos_token_id", vocab_size);
    return id ? std::vector<int64_t>{*id} : std::vector<int64_t>{};
  }
  std::vector<int64_t> ids;
  for (const Json& id : *value) {
    if (!is_integer_in(id, 0, vocab_size - 1) || ids.size() == kMaxEosTokens) {
      keys.refuse(ErrorCode::kInvalid, "eos_token_id",
                  fmt::format("a token id below vocab_size {}, or a list of at most {} of them",
                              vocab_size, kMaxEosTokens));
    }
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

Json optional_json(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(); }

}  // namespace

std::span<const FamilyDef* const> decoder_families() {
#define SKEIN_FAMILY(name) &name##_family,
  static const FamilyDef* const families[] = {
#include "skein/model/families.def"
  };
#undef SKEIN_FAMILY
  return families;
}

DecoderConfig parse_decoder(const Json& json, const std::string& what,
                            std::optional<int64_t> default_vocab_size) {
  const ConfigKeys keys(json, what);
  DecoderConfig config;
  config.family = &family_of(keys);
  Json others = json;  // what neither decoders nor the family read
  for (const ModelKey& key : model_keys()) {
    if (reads_key(*config.family, key.key)) others.erase(std::string(key.key));
  }
  check_foreign_values(ForeignJson::kConfig, others, what);
  config.unknown_keys = unknown_keys(ForeignJson::kConfig, others);
  refuse_unsupported(keys, *config.family);
  parse_sizes(keys, default_vocab_size, config);
  config.initializer_range = keys.number("initializer_range", 0, 10, 0.02);
  config.tie_word_embeddings = keys.boolean("tie_word_embeddings", false);
  config.family->parse(keys, config);
  config.bos_token_id = parse_token_id(keys, "bos_token_id", config.vocab_size);
  config.eos_token_ids = parse_eos(keys, config.vocab_size);
  config.pad_token_id = parse_token_id(keys, "pad_token_id", config.vocab_size);
  return config;
}

void complete_inline_model(Json& json) {
  const auto type = json.find("model_type");
  for (const FamilyDef* family : decoder_families()) {
    if (family->null_inline == nullptr || type == json.end() || *type != family->model_type) {
      continue;
    }
    json.emplace(family->null_inline, nullptr);
  }
}

TextLimit text_limit(const DecoderConfig& config) {
  const TextLimit positions{config.max_position_embeddings, "max_position_embeddings"};
  if (!config.window.tokens || *config.window.tokens >= positions.tokens) return positions;
  return {*config.window.tokens, "sliding_window"};
}

std::optional<DType> parse_hugging_face_dtype(const Json& json, const std::string& what) {
  const ConfigKeys keys(json, what);
  const std::string key = keys.find("dtype") != nullptr ? "dtype" : "torch_dtype";
  const std::string name = keys.text(key, "");
  if (name.empty()) return std::nullopt;
  if (name == "float32") return DType::kF32;
  if (name == "bfloat16") return DType::kBF16;
  if (name == "float16") return DType::kF32;
  keys.refuse(ErrorCode::kUnsupported, key,
              "\"float32\", \"bfloat16\" or \"float16\": save the model again as one of them, with "
              "transformers model.to(torch.bfloat16).save_pretrained(…)");
}

Json to_hugging_face_json(const DecoderConfig& config, DType dtype) {
  Json eos = config.eos_token_ids;
  if (config.eos_token_ids.size() < 2) {
    eos = config.eos_token_ids.empty() ? Json() : Json(config.eos_token_ids.front());
  }
  Json json = {{"architectures", Json::array({config.family->architecture})},
               {"attention_dropout", 0.0},
               {"bos_token_id", optional_json(config.bos_token_id)},
               {"eos_token_id", eos},
               {"head_dim", config.head_dim},
               {"hidden_act", "silu"},
               {"hidden_size", config.hidden_size},
               {"initializer_range", config.initializer_range},
               {"intermediate_size", config.intermediate_size},
               {"max_position_embeddings", config.max_position_embeddings},
               {"model_type", config.family->model_type},
               {"num_attention_heads", config.num_attention_heads},
               {"num_hidden_layers", config.num_hidden_layers},
               {"num_key_value_heads", config.num_key_value_heads},
               {"pad_token_id", optional_json(config.pad_token_id)},
               {"tie_word_embeddings", config.tie_word_embeddings},
               {"torch_dtype", dtype == DType::kBF16 ? "bfloat16" : "float32"},
               {"use_cache", true},
               {"vocab_size", config.vocab_size}};
  config.family->write(config, json);
  return json;
}

bool operator==(const DecoderConfig& a, const DecoderConfig& b) {
  return to_hugging_face_json(a, DType::kF32) == to_hugging_face_json(b, DType::kF32);
}

void require_decoder(const DecoderConfig& config) {
  if (!config.family->is_encoder) return;
  fail(ErrorCode::kUnsupported,
       "a {} model finds masked tokens from those on both sides, and has no probability of the "
       "token that comes next: expected a decoder to score, continue or serve texts",
       config.family->model_type);
}

std::span<const ModelKey> model_keys() {
  static const std::vector<ModelKey> all = [] {
    std::vector<ModelKey> keys = common_keys();
    std::set<std::string_view> seen;
    for (const ModelKey& key : keys) seen.insert(key.key);
    for (const FamilyDef* family : decoder_families()) {
      for (ModelKey& key : family->keys()) {
        if (seen.insert(key.key).second) keys.push_back(std::move(key));
      }
    }
    return keys;
  }();
  return all;
}

bool reads_key(const FamilyDef& family, std::string_view key) {
  const auto is_key = [&](const ModelKey& known) { return known.key == key; };
  const std::vector<ModelKey> common = common_keys(), own = family.keys();
  return std::any_of(common.begin(), common.end(), is_key) ||
         std::any_of(own.begin(), own.end(), is_key);
}

std::vector<ParameterSpec> parameter_specs(const DecoderConfig& config) {
  return config.family->parameters(config);
}

int64_t num_parameters(const DecoderConfig& config) {
  int64_t total = 0;
  for (const ParameterSpec& spec : parameter_specs(config)) total += spec.shape.num_elements();
  return total;
}

double training_flops_per_token(const DecoderConfig& config, int64_t sequence_length) {
  return config.family->flops(config, sequence_length);
}

std::vector<DecoderTable> decoder_tables(const DecoderConfig& config, int64_t num_positions) {
  return config.family->tables(config, num_positions);
}

std::string packed_name(std::string_view weight) { return std::string(weight) + ".packed"; }

bool is_product_weight(const DecoderConfig& config, const ParameterSpec& spec) {
  return spec.shape.rank() == 2 && (!spec.is_embedding || config.tie_word_embeddings);
}

int64_t padded_vocabulary(const DecoderConfig& config, int64_t vocabulary_ranks) {
  return round_up(config.vocab_size, vocabulary_ranks);
}

ValueId build_decoder(Graph& graph, const DecoderConfig& config, const DecoderOptions& options) {
  const bool suits_encoders =
      options.purpose == DecoderPurpose::kTrain || options.purpose == DecoderPurpose::kEmbed;
  if (!suits_encoders) require_decoder(config);
  DecoderGraph decoder(graph, config, options);
  const ValueId x = config.family->layers(decoder, decoder.embed());
  return decoder.finish(x);
}

}  // namespace skein
