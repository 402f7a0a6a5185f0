#include "skein/embed/embedding_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 20;

Json read_object(const fs::path& file) {
  Json json = parse_json(read_file_or_object(file, kMaxFileBytes), file.string());
  if (!json.is_object()) {
    fail(ErrorCode::kInvalid, "{}: is {}: expected a JSON object", file.string(), json.type_name());
  }
  return json;
}

Json read_object_if_there(const fs::path& file) {
  return is_file_or_object(file) ? read_object(file) : Json::object();
}

template <typename T>
T value_of(const Json& json, const char* key, T usual, const fs::path& file, const char* expected) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return usual;
  try {
    return found->get<T>();
  } catch (const Json::exception&) {
    fail(ErrorCode::kInvalid, "{}: {} is {}: expected {}", file.string(), key, json_text(*found),
         expected);
  }
}

// "Pooling" of "sentence_transformers.models.Pooling".
std::string class_of(const std::string& type) { return type.substr(type.rfind('.') + 1); }

struct ModeName {
  const char* name;
  const char* older;  // key of a flag
  Pooling pooling;
};
constexpr std::array<ModeName, 4> kModes = {{
    {"cls", "pooling_mode_cls_token", Pooling::kFirst},
    {"lasttoken", "pooling_mode_lasttoken", Pooling::kLast},
    {"mean", "pooling_mode_mean_tokens", Pooling::kMean},
    {"max", "pooling_mode_max_tokens", Pooling::kMax},
}};

Pooling named_pooling(const std::string& name, const fs::path& file) {
  for (const ModeName& mode : kModes) {
    if (name == mode.name) return mode.pooling;
  }
  fail(ErrorCode::kUnsupported,
       "{}: pooling_mode is \"{}\": expected \"cls\", \"lasttoken\", \"mean\" or \"max\"",
       file.string(), name);
}

Pooling flagged_pooling(const Json& json, const fs::path& file) {
  std::vector<std::string> set;
  for (const auto& [key, value] : json.items()) {
    if (key.starts_with("pooling_mode_") && value.is_boolean() && value.get<bool>()) {
      set.push_back(key);
    }
  }
  for (const ModeName& mode : kModes) {
    if (set.size() == 1 && set.front() == mode.older) return mode.pooling;
  }
  fail(ErrorCode::kUnsupported,
       "{}: sets {}: expected one of pooling_mode_cls_token, pooling_mode_lasttoken, "
       "pooling_mode_mean_tokens and pooling_mode_max_tokens",
       file.string(), set.empty() ? "no pooling_mode" : fmt::format("{}", fmt::join(set, ", ")));
}

void read_pooling(const fs::path& file, int64_t hidden_size, EmbeddingSpec& spec) {
  const Json json = read_object(file);
  const auto mode = value_of<std::string>(json, "pooling_mode", "", file, "a text");
  spec.pooling = mode.empty() ? flagged_pooling(json, file) : named_pooling(mode, file);
  spec.include_prompt = value_of(json, "include_prompt", true, file, "true or false");
  for (const char* key : {"embedding_dimension", "word_embedding_dimension"}) {
    const auto size = value_of<int64_t>(json, key, hidden_size, file, "a whole number");
    if (size == hidden_size) continue;
    fail(ErrorCode::kInvalid, "{}: {} is {}, and the model's hidden_size {}: expected both alike",
         file.string(), key, size, hidden_size);
  }
}

void read_modules(const fs::path& folder, int64_t hidden_size, EmbeddingSpec& spec) {
  const fs::path file = folder / "modules.json";
  const Json modules = parse_json(read_file_or_object(file, kMaxFileBytes), file.string());
  std::string order;
  for (const Json& module : modules) {
    const auto type = value_of<std::string>(module, "type", "", file, "the class of a module");
    const auto path = value_of<std::string>(module, "path", "", file, "a folder");
    order += class_of(type) + " ";
    if (class_of(type) == "Pooling") {
      read_pooling(folder / path / "config.json", hidden_size, spec);
    } else if (class_of(type) == "Normalize") {
      spec.normalize = true;
    } else if (class_of(type) == "Transformer" && !path.empty()) {
      fail(ErrorCode::kUnsupported,
           "{}: the Transformer is in the folder {}: expected it in the model's own folder",
           file.string(), path);
    }
  }
  if (order == "Transformer Pooling " || order == "Transformer Pooling Normalize ") return;
  fail(ErrorCode::kUnsupported,
       "{}: has the modules {}: expected Transformer, Pooling and perhaps Normalize", file.string(),
       order);
}

}  // namespace

std::optional<EmbeddingSpec> read_embedding_spec(const fs::path& folder, int64_t hidden_size) {
  if (!is_file_or_object(folder / "modules.json")) return std::nullopt;
  EmbeddingSpec spec;
  read_modules(folder, hidden_size, spec);
  const fs::path lengths = folder / "sentence_bert_config.json";
  spec.max_tokens = value_of<int64_t>(read_object_if_there(lengths), "max_seq_length", 0, lengths,
                                      "a whole number");
  const fs::path file = folder / "config_sentence_transformers.json";
  const Json json = read_object_if_there(file);
  spec.prompts = value_of<std::map<std::string, std::string>>(json, "prompts", {}, file,
                                                              "an object of texts by name");
  spec.default_prompt = value_of<std::string>(json, "default_prompt_name", "", file, "a name");
  spec.similarity = value_of<std::string>(json, "similarity_fn_name", "cosine", file, "a name");
  spec.dim = value_of<int64_t>(json, "truncate_dim", 0, file, "a whole number");
  if (!spec.default_prompt.empty() && !spec.prompts.contains(spec.default_prompt)) {
    fail(ErrorCode::kInvalid, "{}: default_prompt_name is \"{}\", which is not among its prompts",
         file.string(), spec.default_prompt);
  }
  return spec;
}

}  // namespace skein
