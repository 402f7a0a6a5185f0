// Reads the fields of a record of the rendezvous; for supervise's own sources.
// Errors  Error{kInvalid} naming the record and the field
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"

namespace skein {

class RecordFields {
 public:
  RecordFields(const Json& json, const std::string& what) : json_(json), what_(what) {
    if (!json.is_object()) {
      fail(ErrorCode::kInvalid, "{}: found {}, expected an object", what, json.type_name());
    }
  }

  std::string text(const char* key) const {
    const Json& value = get(key);
    if (!value.is_string()) wrong(key, "a text");
    return value.get<std::string>();
  }
  int64_t number(const char* key, int64_t max = int64_t{1} << 53) const {
    const Json& value = get(key);
    const bool fits = is_count(value) && value.get<int64_t>() <= max;
    if (!fits) wrong(key, fmt::format("a whole number from 0 to {}", max));
    return value.get<int64_t>();
  }
  int count(const char* key) const { return static_cast<int>(number(key, 1'000'000)); }
  std::vector<int64_t> numbers(const char* key) const {
    const Json& list = get(key);
    std::vector<int64_t> values;
    if (!list.is_array()) wrong(key, "a list of whole numbers");
    for (const Json& value : list) {
      const bool fits = is_count(value) && value.get<int64_t>() <= int64_t{1} << 53;
      if (!fits) wrong(key, "a list of whole numbers");
      values.push_back(value.get<int64_t>());
    }
    return values;
  }
  bool flag(const char* key) const {
    const Json& value = get(key);
    if (!value.is_boolean()) wrong(key, "true or false");
    return value.get<bool>();
  }
  const Json& get(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(ErrorCode::kInvalid, "{}: key \"{}\" is missing", what_, key);
    return *found;
  }
  bool has(const char* key) const { return json_.contains(key); }
  [[noreturn]] void wrong(const char* key, const std::string& expected) const {
    fail(ErrorCode::kInvalid, "{}: {} is {}, expected {}", what_, key,
         json_text(json_.at(key)).substr(0, 100), expected);
  }

 private:
  // A text's numbers are unsigned; those of a value that was made here may be signed.
  static bool is_count(const Json& value) {
    if (value.is_number_unsigned()) return value.get<uint64_t>() <= uint64_t{INT64_MAX};
    return value.is_number_integer() && value.get<int64_t>() >= 0;
  }

  const Json& json_;
  const std::string& what_;
};

}  // namespace skein
