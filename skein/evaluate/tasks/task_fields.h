// The keys of one dict of a task file, with errors that name file, task and key.
//
// Errors  kInvalid: "FILE: task NAME: KEY is a list; expected text"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/jinja/values/value.h"

namespace skein {

class Fields {
 public:
  // `where` names the dict in errors: "mmlu.yaml: task mmlu_anatomy". Refuses what is no dict.
  Fields(const jinja::Value& dict, std::string where);

  const std::string& where() const { return where_; }
  const jinja::Dict& dict() const { return value_.as_dict(); }

  // Undefined where the key is absent or null.
  jinja::Value value(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string otherwise) const;  // null is refused
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<int64_t> integer(std::string_view key) const;

  // Refuses a key that is not one of `known`.
  void allow(std::span<const std::string_view> known) const;
  // The keys that are not in `known`, as a dict.
  jinja::Value others(std::span<const std::string_view> known) const;

  [[noreturn]] void refuse(std::string_view key, const std::string& why,
                           ErrorCode code = ErrorCode::kInvalid) const;
  [[noreturn]] void refuse_kind(std::string_view key, const jinja::Value& value,
                                std::string_view expected) const;

 private:
  jinja::Value value_;
  std::string where_;
};

// The items of a list of dicts; none where the key is absent or null.
std::vector<jinja::Value> dicts_of(const Fields& fields, std::string_view key);

}  // namespace skein
