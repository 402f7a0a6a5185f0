// Fields of the objects of events.jsonl as they are read: another type than the expected one counts
// as a field that is missing.
#pragma once

#include <cstdint>
#include <string>

#include "skein/base/text/json.h"

namespace skein {

inline double number_or(const Json& json, const char* key, double otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
}

inline int64_t integer_or(const Json& json, const char* key, int64_t otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

inline bool bool_or(const Json& json, const char* key, bool otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

inline std::string text_or(const Json& json, const char* key, const std::string& otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

}  // namespace skein
