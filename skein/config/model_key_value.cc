#include "skein/config/model_key_value.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace skein {
namespace {

// Dates and numbers that are not finite become null, since JSON has neither.
Json to_json(const toml::node& node) {
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) {
    return std::isfinite(value->get()) ? Json(value->get()) : Json();
  }
  if (const toml::array* array = node.as_array()) {
    Json json = Json::array();
    for (const toml::node& element : *array) json.push_back(to_json(element));
    return json;
  }
  if (const toml::table* table = node.as_table()) {
    Json json = Json::object();
    for (const auto& [key, element] : *table) json[std::string(key.str())] = to_json(element);
    return json;
  }
  return {};
}

// The same for a key of whole numbers, which may be written as floats.
Json with_whole_numbers(const toml::node& node) {
  if (const auto number = whole_number(node)) return *number;
  if (!node.is_array()) return to_json(node);
  Json json = Json::array();
  for (const toml::node& element : *node.as_array()) json.push_back(with_whole_numbers(element));
  return json;
}

bool holds_null(const Json& json) {
  if (!json.is_structured()) return json.is_null();
  return std::any_of(json.begin(), json.end(), holds_null);
}

bool fits(const Json& json, ModelKey::Kind kind) {
  if (holds_null(json)) return false;
  switch (kind) {
    case ModelKey::Kind::kInteger:
      return json.is_number_integer();
    case ModelKey::Kind::kNumber:
      return json.is_number();
    case ModelKey::Kind::kBool:
      return json.is_boolean();
    case ModelKey::Kind::kString:
      return json.is_string();
    case ModelKey::Kind::kTable:
      return json.is_object();
    case ModelKey::Kind::kIntegerOrList:
      return json.is_number_integer() ||
             (json.is_array() && !json.empty() &&
              std::all_of(json.begin(), json.end(),
                          [](const Json& element) { return element.is_number_integer(); }));
  }
  return false;
}

}  // namespace

std::optional<Json> model_key_value(const toml::node& node, ModelKey::Kind kind) {
  const bool is_whole = kind == ModelKey::Kind::kInteger || kind == ModelKey::Kind::kIntegerOrList;
  Json json = is_whole ? with_whole_numbers(node) : to_json(node);
  if (!fits(json, kind)) return std::nullopt;
  return json;
}

}  // namespace skein
