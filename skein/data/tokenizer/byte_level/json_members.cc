#include "skein/data/tokenizer/byte_level/json_members.h"

#include "skein/base/error.h"

namespace skein {

void TokenizerJson::corrupt(const std::string& what) const {
  fail(ErrorCode::kCorrupt, "{}: {}: it is no {}, or damaged", where_, what, kind_);
}

void TokenizerJson::unsupported(const std::string& what, const std::string& expected) const {
  fail(ErrorCode::kUnsupported, "{}: {}: expected {}; with anything else the ids would differ",
       where_, what, expected);
}

const Json& TokenizerJson::optional(const Json& object, const char* key) const {
  static const Json kNull;
  if (!object.is_object()) corrupt(fmt::format("the parent of '{}' is no object", key));
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

const Json& TokenizerJson::member(const Json& object, const char* key) const {
  const Json& found = optional(object, key);
  if (found.is_null()) corrupt(fmt::format("'{}' is missing", key));
  return found;
}

const Json& TokenizerJson::array_of(const Json& object, const char* key) const {
  const Json& found = member(object, key);
  if (!found.is_array()) corrupt(fmt::format("'{}' is no array", key));
  return found;
}

std::string TokenizerJson::text_of(const Json& object, const char* key) const {
  const Json& found = member(object, key);
  if (!found.is_string()) corrupt(fmt::format("'{}' is no string", key));
  return found.get<std::string>();
}

bool TokenizerJson::flag_of(const Json& object, const char* key, bool otherwise) const {
  const Json& found = optional(object, key);
  if (found.is_null()) return otherwise;
  if (!found.is_boolean()) corrupt(fmt::format("'{}' is neither true nor false", key));
  return found.get<bool>();
}

size_t TokenizerJson::count_of(const Json& object, const char* key) const {
  const Json& found = member(object, key);
  if (!found.is_number_unsigned() || found > 1 << 20) {
    corrupt(fmt::format("'{}' is no number from 0 to {}", key, 1 << 20));
  }
  return found.get<size_t>();
}

int32_t TokenizerJson::id_of(const Json& json, const std::string& what) const {
  constexpr int32_t kMost = 1 << 24;
  if (!json.is_number_integer() || json < 0 || json >= kMost) {
    corrupt(fmt::format("the id of '{}' is no number from 0 to {}", what, kMost - 1));
  }
  return json.get<int32_t>();
}

}  // namespace skein
