#include "skein/data/tokenizer/folder/folder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/data/tokenizer/folder/files.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

// The text of a token: a string, or an object that has it as `content`; null: there is none.
std::optional<std::string> text_of(const Json& object, const char* key,
                                   const TokenizerJson& reader) {
  const Json& token = reader.optional(object, key);
  if (token.is_null()) return std::nullopt;
  return token.is_object() ? reader.text_of(token, "content") : reader.text_of(object, key);
}

// The tokens that a file calls special. Of special_tokens_map.json, transformers 5 passes over
// additional_special_tokens, the older name of extra_special_tokens.
void collect_special(const Json& json, const TokenizerJson& reader,
                     std::span<const char* const> lists, std::set<std::string>& names) {
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                          "cls_token", "mask_token"}) {
    if (const auto text = text_of(json, key, reader)) names.insert(*text);
  }
  for (const char* list : lists) {
    if (!reader.optional(json, list).is_array()) continue;
    for (const Json& each : json[list]) {
      if (const auto text = text_of({{list, each}}, list, reader)) names.insert(*text);
    }
  }
}

constexpr const char* kLists[] = {"extra_special_tokens", "additional_special_tokens"};

}  // namespace

Json TokenizerFolder::object_of(const fs::path& file) const {
  Json json = parse_json(read_file_or_object(file), file.string());
  if (!json.is_object()) {
    fail(ErrorCode::kInvalid, "{}: expected a JSON object, found {}", file.string(),
         json_text(json).substr(0, 40));
  }
  return json;
}

TokenizerJson TokenizerFolder::reader(const fs::path& file) {
  return TokenizerJson(file.string(), file.filename().string());
}

TokenizerFolder::TokenizerFolder(std::span<const fs::path> files) {
  if (files.empty()) return;
  // A file of another name stands alone.
  if (is_tokenizer_file(files.front().filename().string())) folder_ = files.front().parent_path();
  for (const fs::path& file : files) {
    if (file.filename() == "tokenizer_config.json") config_file_ = file;
    if (file.filename() == "special_tokens_map.json") special_map_file_ = file;
    if (file.filename() == "added_tokens.json") added_tokens_file_ = file;
    if (file.filename() == "tokenizer.json") has_json_ = true;
  }
  if (!config_file_.empty()) config_ = object_of(config_file_);
  if (!special_map_file_.empty()) special_map_ = object_of(special_map_file_);
  read_added();
}

void TokenizerFolder::read_added() {
  const bool has_decoder = config_.contains("added_tokens_decoder");
  if (!has_decoder && added_tokens_file_.empty()) return;
  added_file_ = has_decoder ? config_file_ : added_tokens_file_;
  has_decoder ? read_decoder() : read_added_file();
  std::sort(added_.begin(), added_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
}

void TokenizerFolder::read_decoder() {
  const TokenizerJson json = reader(config_file_);
  const Json& decoder = config_["added_tokens_decoder"];
  if (!decoder.is_object()) json.corrupt("added_tokens_decoder is no object");
  for (const auto& [key, token] : decoder.items()) {
    AddedToken added = parse_added_token(token, json);
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), added.id);
    if (error != std::errc() || end != key.data() + key.size() || added.id < 0) {
      json.corrupt(fmt::format("added_tokens_decoder has the key \"{}\", which is no id", key));
    }
    added_.push_back(std::move(added));
  }
}

void TokenizerFolder::read_added_file() {
  std::set<std::string> special;
  collect_special(config_, reader(config_file_), kLists, special);
  collect_special(special_map_, reader(special_map_file_), std::span(kLists, 1), special);
  const Json json = object_of(added_tokens_file_);
  for (const auto& [text, id] : json.items()) {
    const bool is_special = special.contains(text);
    added_.push_back({.text = text,
                      .id = reader(added_tokens_file_).id_of(id, text),
                      .special = is_special,
                      .normalized = !is_special});
  }
}

std::optional<TokenizerFolder::Named> TokenizerFolder::special(const char* key) const {
  const auto of_map = text_of(special_map_, key, reader(special_map_file_));
  const auto of_config = text_of(config_, key, reader(config_file_));
  if (of_map && !config_.contains("added_tokens_decoder")) return Named{*of_map, special_map_file_};
  if (of_config) return Named{*of_config, config_file_};
  return std::nullopt;
}

std::optional<TokenizerFolder::Id> TokenizerFolder::model_eos() const {
  for (const char* name : {"generation_config.json", "config.json"}) {
    const fs::path file = folder_ / name;
    if (folder_.empty() || !is_file_or_object(file)) continue;
    const Json json = object_of(file);
    const Json& value = reader(file).optional(json, "eos_token_id");
    const Json& first = value.is_array() && !value.empty() ? value.front() : value;
    if (first.is_null() || first == -1 || value.empty()) continue;
    return Id{reader(file).id_of(first, "eos_token_id"), file};
  }
  return std::nullopt;
}

std::string TokenizerFolder::model_type() const {
  const fs::path file = folder_ / "config.json";
  if (folder_.empty() || !is_file_or_object(file)) return "";
  const Json json = object_of(file);
  return json.contains("model_type") ? reader(file).text_of(json, "model_type") : "";
}

std::optional<bool> TokenizerFolder::adds_bos() const {
  if (has_json_) return std::nullopt;
  if (!config_.contains("add_bos_token") && !config_.contains("add_eos_token")) return std::nullopt;
  return flag("add_bos_token");
}

bool TokenizerFolder::flag(const char* key) const {
  return reader(config_file_).flag_of(config_, key);
}

std::string TokenizerFolder::class_name() const {
  const TokenizerJson json = reader(config_file_);
  if (json.optional(config_, "tokenizer_class").is_null()) return "";
  std::string name = json.text_of(config_, "tokenizer_class");
  if (name.ends_with("Fast") && name != "PreTrainedTokenizerFast") name.resize(name.size() - 4);
  return name;
}

}  // namespace skein
