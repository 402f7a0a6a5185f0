// Typed, range-checked access to a JSON object from outside, such as config.json; null counts as
// absent. Sizes are bounded so that the element count of a model times 64 bytes fits an int64_t.
//
// Errors   Error{kInvalid} for an invalid value, kNotFound for a missing one, and the code passed
//          to refuse(); each names source, key, value found and value expected
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/text/json.h"

namespace skein {

inline constexpr int64_t kMaxSize = int64_t{1} << 20;
inline constexpr int64_t kMaxPosition = std::numeric_limits<int32_t>::max();

class ConfigKeys {
 public:
  // `what`: the source, for errors; `prefix`: precedes its keys in errors ("rope_scaling.").
  ConfigKeys(const Json& object, std::string what, std::string prefix = "");

  const Json* find(const std::string& key) const;  // null where it is absent
  bool has(const std::string& key) const;          // also as null
  bool is_zero(const std::string& key) const;
  std::vector<std::string> names() const;  // of the keys that are not null
  [[noreturn]] void refuse(ErrorCode code, const std::string& key,
                           const std::string& expected) const;

  // The key is required unless there is a fallback.
  int64_t integer(const std::string& key, int64_t low, int64_t high,
                  std::optional<int64_t> fallback = std::nullopt) const;
  double number(const std::string& key, double low, double high,
                std::optional<double> fallback = std::nullopt) const;
  bool boolean(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  // A list of `size` numbers, which is required.
  std::vector<double> numbers(const std::string& key, size_t size, double low, double high) const;

  // These throw Error{kUnsupported} for a value that would make the model compute something that
  // Skein does not, instead of ignoring it.
  void only(const std::string& key, const std::string& text) const;
  void only_null(const std::string& key) const;
  void only_false(const std::string& key, const std::string& why) const;

  const std::string& what() const { return what_; }

 private:
  const Json& object_;
  std::string what_;
  std::string prefix_;
};

bool is_integer_in(const Json& value, int64_t low, int64_t high);

}  // namespace skein
