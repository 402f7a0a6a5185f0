#include "skein/weights/generation_defaults.h"

#include "skein/base/error.h"
#include "skein/base/text/foreign_keys.h"
#include "skein/base/text/json_text.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

class DefaultsReader {
 public:
  DefaultsReader(const Json& json, const std::string& file) : json_(json), file_(file) {}

  std::optional<double> number(const char* key, double least, double most) const {
    if (!has(key)) return std::nullopt;
    const Json& value = json_[key];
    if (!value.is_number() || !(value >= least) || !(value <= most)) {
      refuse(key, fmt::format("a number from {} to {}", least, most));
    }
    return value.get<double>();
  }
  std::optional<bool> flag(const char* key) const {
    if (!has(key)) return std::nullopt;
    if (!json_[key].is_boolean()) refuse(key, "true or false");
    return json_[key].get<bool>();
  }
  std::vector<int64_t> ids(const char* key) const {
    std::vector<int64_t> ids;
    if (!has(key)) return ids;
    const Json all = json_[key].is_array() ? json_[key] : Json::array({json_[key]});
    for (const Json& id : all) {
      if (!id.is_number_integer()) refuse(key, "an id or a list of ids");
      ids.push_back(id.get<int64_t>());
    }
    return ids;
  }
  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const auto& [key, value] : json_.items()) {
      const ForeignKey* row = find_foreign_key(ForeignJson::kGenerationConfig, key);
      if (row != nullptr && row->use == KeyUse::kDraws && !is_one_of(*row, value)) {
        names.push_back(key);
      }
    }
    return names;
  }

 private:
  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  [[noreturn]] void refuse(const char* key, const std::string& expected) const {
    fail(ErrorCode::kInvalid, "{}: {} is {}: expected {}", file_, key, json_text(json_[key]),
         expected);
  }

  const Json& json_;
  const std::string& file_;
};

}  // namespace

GenerationDefaults generation_defaults(const ModelSource& source) {
  GenerationDefaults defaults;
  defaults.eos_ids = source.config().eos_token_ids;
  const fs::path path = source.generation_config();
  if (path.empty()) return defaults;
  defaults.file = path.string();
  const Json json = parse_json(read_file_or_object(path), defaults.file);
  if (!json.is_object()) {
    fail(ErrorCode::kInvalid, "{}: expected a JSON object", defaults.file);
  }
  const DefaultsReader reader(json, defaults.file);
  if (auto ids = reader.ids("eos_token_id"); !ids.empty()) defaults.eos_ids = std::move(ids);
  defaults.do_sample = reader.flag("do_sample");
  defaults.temperature = reader.number("temperature", 0, 1e6);
  defaults.top_p = reader.number("top_p", 0, 1);
  if (const auto top_k = reader.number("top_k", 0, 1e9)) {
    defaults.top_k = static_cast<int64_t>(*top_k);
  }
  defaults.unused = reader.unused();
  return defaults;
}

}  // namespace skein
