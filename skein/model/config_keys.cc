#include "skein/model/config_keys.h"

#include <fmt/format.h>

#include <cmath>

#include "skein/base/text/json_text.h"

namespace skein {
namespace {

std::string shown(const Json& value) {
  std::string text = json_text(value);
  if (text.size() > 80) text.replace(77, text.npos, "...");
  return text;
}

}  // namespace

ConfigKeys::ConfigKeys(const Json& object, std::string what, std::string prefix)
    : object_(object), what_(std::move(what)), prefix_(std::move(prefix)) {
  if (object_.is_object()) return;
  fail(ErrorCode::kInvalid, "{}: {} {}, expected a JSON object", what_,
       prefix_.empty() ? "found" : prefix_.substr(0, prefix_.size() - 1) + " is", shown(object_));
}

const Json* ConfigKeys::find(const std::string& key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigKeys::has(const std::string& key) const { return object_.contains(key); }

bool ConfigKeys::is_zero(const std::string& key) const {
  const Json* value = find(key);
  return value != nullptr && *value == 0;
}

std::vector<std::string> ConfigKeys::names() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : object_.items()) {
    if (!value.is_null()) names.push_back(key);
  }
  return names;
}

void ConfigKeys::refuse(ErrorCode code, const std::string& key, const std::string& expected) const {
  const Json* value = find(key);
  if (value == nullptr) {
    fail(ErrorCode::kNotFound, "{}: {}{} is missing, expected {}", what_, prefix_, key, expected);
  }
  fail(code, "{}: {}{} is {}, expected {}", what_, prefix_, key, shown(*value), expected);
}

int64_t ConfigKeys::integer(const std::string& key, int64_t low, int64_t high,
                            std::optional<int64_t> fallback) const {
  const Json* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr || !is_integer_in(*value, low, high)) {
    refuse(ErrorCode::kInvalid, key, fmt::format("an integer from {} to {}", low, high));
  }
  return value->get<int64_t>();
}

double ConfigKeys::number(const std::string& key, double low, double high,
                          std::optional<double> fallback) const {
  const Json* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  const double found = value != nullptr && value->is_number() ? value->get<double>() : NAN;
  if (!(found >= low && found <= high)) {
    refuse(ErrorCode::kInvalid, key, fmt::format("a number from {} to {}", low, high));
  }
  return found;
}

bool ConfigKeys::boolean(const std::string& key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) refuse(ErrorCode::kInvalid, key, "true or false");
  return value->get<bool>();
}

std::string ConfigKeys::text(const std::string& key, const std::string& fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) refuse(ErrorCode::kInvalid, key, "a string");
  return value->get<std::string>();
}

std::vector<double> ConfigKeys::numbers(const std::string& key, size_t size, double low,
                                        double high) const {
  const Json* list = find(key);
  std::vector<double> numbers;
  for (const Json& one : list == nullptr || !list->is_array() ? Json::array() : *list) {
    const double number = one.is_number() ? one.get<double>() : NAN;
    if (number >= low && number <= high) numbers.push_back(number);
  }
  if (list != nullptr && list->is_array() && list->size() == size && numbers.size() == size) {
    return numbers;
  }
  refuse(ErrorCode::kInvalid, key, fmt::format("{} numbers from {} to {}", size, low, high));
}

void ConfigKeys::only(const std::string& key, const std::string& text) const {
  if (this->text(key, text) == text) return;
  refuse(ErrorCode::kUnsupported, key, fmt::format("\"{}\"", text));
}

void ConfigKeys::only_null(const std::string& key) const {
  if (find(key) == nullptr) return;
  refuse(ErrorCode::kUnsupported, key, "null: Skein does not have this feature");
}

void ConfigKeys::only_false(const std::string& key, const std::string& why) const {
  if (boolean(key, false)) refuse(ErrorCode::kUnsupported, key, "false: " + why);
}

bool is_integer_in(const Json& value, int64_t low, int64_t high) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return false;
  }
  return value.get<int64_t>() >= low && value.get<int64_t>() <= high;
}

}  // namespace skein
