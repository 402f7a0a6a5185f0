// The one table of configuration keys, from which everything about them is derived.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "skein/config/config.h"
#include "skein/model/decoder.h"

namespace skein {

// The random streams hold a step in 28 bits.
inline constexpr int64_t kMaxSteps = (int64_t{1} << 28) - 1;

// Where a key's value lives; the alternative is its type.
using ConfigValue = std::variant<bool*, int64_t*, double*, std::string*>;

// The values that a key accepts beyond its type.
struct ConfigLimits {
  std::vector<std::string_view> choices = {};  // of a string; empty: any
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool above_minimum = false;  // the minimum itself is refused
  bool below_maximum = false;  // the maximum itself is refused
  bool required = false;       // has no usable default
  bool is_path = false;        // ~ is expanded; completed by a shell
};

struct ConfigField {
  std::string_view section;
  std::string_view key;
  ConfigValue (*value)(Config&);
  std::string_view help;
  ConfigLimits limits = {};
};

// Every key, section by section in the order in which they are printed.
std::span<const ConfigField> config_fields();

// One of the two.
struct KnownKey {
  const ConfigField* field = nullptr;
  const ModelKey* model_key = nullptr;
};

// The key of that name; throws Error{kUsage} beginning with `where` and suggesting the nearest
// name where there is none.
KnownKey find_key(std::string_view section, std::string_view key, const std::string& where);
void check_section(std::string_view section, const std::string& where);

// "a whole number from 1 to 9", "true or false, without quotes", "one of: fp32, bf16", …
std::string describe_expected(const KnownKey& known);

// The value as TOML; floats read back to the same bits.
std::string toml_value(const ConfigField& field, const Config& config);
std::string toml_value(const Json& json);

}  // namespace skein
