#include "skein/serve/api/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "skein/base/text/json_text.h"
#include "skein/base/text/nearest.h"
#include "skein/serve/api/api_error.h"

namespace skein {
namespace {

// A value as an error shows it.
std::string shown(const Json& value) {
  constexpr size_t kMost = 60;
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return "an object";
  std::string text = json_text(value);
  if (text.size() > kMost) text = fmt::format("{}…", json_text(Json(text.substr(0, kMost))));
  return text;
}

[[noreturn]] void fail_of(const std::string& name, const Json& found, const std::string& expected) {
  throw ApiError(400, fmt::format("{} is {}: expected {}", name, shown(found), expected), name);
}

}  // namespace

JsonFields::JsonFields(const Json& json, std::string prefix)
    : json_(json), prefix_(std::move(prefix)) {
  if (!json.is_object()) {
    throw ApiError(400, fmt::format("{} is {}: expected a JSON object",
                                    prefix_.empty() ? "the body" : prefix_, shown(json)));
  }
}

const Json* JsonFields::find(const std::string& name) {
  asked_.insert(name);
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::fail_at(const std::string& name, const std::string& expected) const {
  fail_of(prefix_ + name, json_.at(name), expected);
}

std::optional<std::string> JsonFields::text(const std::string& name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail_at(name, "a string");
  return value->get<std::string>();
}

std::optional<int64_t> JsonFields::whole(const std::string& name, int64_t least, int64_t most) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  if (!value->is_number_integer()) fail_at(name, expected);
  const bool is_too_large =
      value->is_number_unsigned() &&
      value->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (is_too_large) fail_at(name, expected);
  const auto number = value->get<int64_t>();
  if (number < least || number > most) fail_at(name, expected);
  return number;
}

std::optional<double> JsonFields::number(const std::string& name, double least, double most) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::string expected = fmt::format("a number from {} to {}", least, most);
  if (!value->is_number()) fail_at(name, expected);
  const auto number = value->get<double>();
  if (!(number >= least && number <= most)) fail_at(name, expected);
  return number;
}

std::optional<bool> JsonFields::flag(const std::string& name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) fail_at(name, "true or false");
  return value->get<bool>();
}

std::vector<std::string> JsonFields::texts(const std::string& name, size_t most) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  const std::string expected = fmt::format("a string, or a list of at most {} strings", most);
  if (!value->is_array() || value->size() > most) fail_at(name, expected);
  std::vector<std::string> texts;
  for (const Json& item : *value) {
    if (!item.is_string()) fail_of(prefix_ + name, item, "a list of strings");
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::vector<int32_t> JsonFields::token_ids(const std::string& name, size_t most) {
  const Json* value = find(name);
  return value == nullptr ? std::vector<int32_t>() : token_ids_of(*value, prefix_ + name, most);
}

void JsonFields::refuse(const std::string& name, std::string_view why, const Json& harmless) {
  const Json* value = find(name);
  if (value == nullptr || *value == harmless) return;
  throw ApiError(400, fmt::format("{}{} is not supported: {}", prefix_, name, why), prefix_ + name,
                 "unsupported_parameter");
}

void JsonFields::refuse_others() const {
  for (const auto& [name, value] : json_.items()) {
    if (asked_.contains(name)) continue;
    const std::string shown_name = shown(Json(name));
    const std::vector<std::string_view> known(asked_.begin(), asked_.end());
    constexpr size_t kLongest = 60;  // the cost grows with the length
    const std::string_view nearest = name.size() > kLongest ? "" : nearest_name(name, known);
    const std::string hint =
        nearest.empty() ? "remove it" : fmt::format("did you mean {}?", nearest);
    throw ApiError(400, fmt::format("{} is no field of this request: {}", shown_name, hint),
                   prefix_ + name, "unknown_parameter");
  }
}

std::vector<int32_t> token_ids_of(const Json& list, const std::string& name, size_t most) {
  if (!list.is_array() || list.size() > most) {
    fail_of(name, list, fmt::format("a list of at most {} token ids", most));
  }
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const Json& item : list) {
    const bool is_id =
        item.is_number_unsigned() && item.get<uint64_t>() <= std::numeric_limits<int32_t>::max();
    if (!is_id) fail_of(name, item, "token ids: whole numbers from 0");
    ids.push_back(item.get<int32_t>());
  }
  return ids;
}

}  // namespace skein
