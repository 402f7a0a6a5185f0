// The members of a tokenizer.json or a file beside it, and errors that name what of it is damaged
// or not read.
#pragma once

#include <string>

#include "skein/base/text/json.h"

namespace skein {

class TokenizerJson {
 public:
  explicit TokenizerJson(std::string where, std::string kind = "tokenizer.json")
      : where_(std::move(where)), kind_(std::move(kind)) {}

  [[noreturn]] void corrupt(const std::string& what) const;
  [[noreturn]] void unsupported(const std::string& what, const std::string& expected) const;

  const Json& optional(const Json& object, const char* key) const;  // null where it is missing
  const Json& member(const Json& object, const char* key) const;
  const Json& array_of(const Json& object, const char* key) const;
  std::string text_of(const Json& object, const char* key) const;
  bool flag_of(const Json& object, const char* key, bool otherwise = false) const;
  size_t count_of(const Json& object, const char* key) const;
  int32_t id_of(const Json& json, const std::string& what) const;

 private:
  std::string where_, kind_;
};

}  // namespace skein
