// The options of a filter's step or of a metric, as a task's YAML has them. What nobody reads is
// refused.
//
// Errors   kUsage, with the owner, the option, what was found and what was expected
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/jinja/values/value.h"

namespace skein {

class Options {
 public:
  // `owner` names whose they are, in errors: "filter strict-match: regex".
  Options(const jinja::Value& options, std::string owner);

  // Throws if there is an option that is not in `known`.
  void allow(const std::vector<std::string_view>& known) const;

  // The option, or nothing. null is a value.
  const jinja::Value* find(std::string_view name) const;

  std::string text(std::string_view name, std::string_view or_else) const;
  int64_t integer(std::string_view name, int64_t or_else) const;
  bool truth(std::string_view name) const;  // whether Python takes it for true; without it, false
  std::vector<std::string> texts(std::string_view name) const;  // null: none

 private:
  [[noreturn]] void refuse(std::string_view name, const jinja::Value& found,
                           const char* expected) const;

  const jinja::Value& options_;
  std::string owner_;
};

}  // namespace skein
