// The fields of a JSON object from a client, each asked for by name with what it may be; what is
// left at the end is refused, so that no field is silently without effect.
//
// Null     is as a field that is not there, as in OpenAI's API
// Errors   ApiError 400 naming the field, what was found and what was expected
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/text/json.h"

namespace skein {

class JsonFields {
 public:
  // `json` must outlive this. `prefix` goes before names in errors: "stream_options.".
  explicit JsonFields(const Json& json, std::string prefix = "");

  const Json* find(const std::string& name);  // nullptr: not there, or null
  std::optional<std::string> text(const std::string& name);
  std::optional<int64_t> whole(const std::string& name, int64_t least, int64_t most);
  std::optional<double> number(const std::string& name, double least, double most);
  std::optional<bool> flag(const std::string& name);
  // A text or a list of texts.
  std::vector<std::string> texts(const std::string& name, size_t most);
  std::vector<int32_t> token_ids(const std::string& name, size_t most);

  // A field that the API has, and Skein does not: refused unless it is null or `harmless`.
  void refuse(const std::string& name, std::string_view why, const Json& harmless = nullptr);
  // A field that changes nothing here.
  void pass_over(const std::string& name) { asked_.insert(name); }
  void refuse_others() const;

  [[noreturn]] void fail_at(const std::string& name, const std::string& expected) const;

 private:
  const Json& json_;
  const std::string prefix_;
  std::set<std::string> asked_;
};

// A list of token ids; `name` is named in errors.
std::vector<int32_t> token_ids_of(const Json& list, const std::string& name, size_t most);

}  // namespace skein
