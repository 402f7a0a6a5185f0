// The one table of configuration keys; everything about a key is derived from its row.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "skein/base/text/toml.h"
#include "skein/config/config.h"
#include "skein/model/decoder.h"
#include "skein/objects/place.h"

namespace skein {

// The counters of the random streams hold a step in 28 bits.
inline constexpr int64_t kMaxSteps = (int64_t{1} << 28) - 1;

// A pointer to a key's value in a Config; the alternative gives the type.
using ConfigValue = std::variant<bool*, int64_t*, double*, std::string*, std::vector<DataSource>*>;

// The values that a key accepts beyond its type.
struct ConfigLimits {
  std::vector<std::string_view> choices = {};  // of a string; empty: any
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool above_minimum = false;             // the minimum itself is refused
  bool below_maximum = false;             // the maximum itself is refused
  bool required = false;                  // has no usable default
  bool is_path = false;                   // a Place, and shells complete file names
  PlaceUse use = PlaceUse::kDiskOrStore;  // of a path: what it may name
};

// What a start does that finds another value than the run had before.
enum class OnChange : uint8_t {
  kTell,          // continues, and says so in one line: a key that leaves the mathematics as it is,
                  // or one that people change on purpose, as the learning rate
  kAsk,           // continues only if run.accept_changes names the key: the run would be another
  kOtherState,    // the checkpoint has other tensors: continues with run.accept_changes never
  kRefuse,        // never
  kIgnore,        // the key concerns one start, or plans alone
  kByContent,     // the files that it names are compared, not their paths
  kByContentAsk,  // the same; other contents are accepted as with kAsk
};

// How a run continues if another start has another value.
struct ConfigChange {
  // As TOML, what a run did that an older skein began, which did not have the key. Empty: that is
  // not known, and the key is not compared.
  std::string_view before = {};
  OnChange then = OnChange::kTell;
};

struct ConfigField {
  std::string_view section;
  std::string_view key;
  ConfigValue (*value)(Config&);
  std::string_view help;
  ConfigLimits limits = {};
  ConfigChange change = {};
};

// All keys, grouped by section, in the order in which they are printed.
std::span<const ConfigField> config_fields();

// Every path of a configuration, and the key that it stands in.
struct ConfigPath {
  std::string key;  // "data.train"
  std::string* path;
};
std::vector<ConfigPath> config_paths(Config& config);

// A key is either in the table or a Hugging Face key of [model]; the other pointer is null.
struct KnownKey {
  const ConfigField* field = nullptr;
  const ModelKey* model_key = nullptr;
};

// Finds a key by name. Throws Error{kUsage}, beginning with `where`, which suggests the nearest
// name.
KnownKey find_key(std::string_view section, std::string_view key, const std::string& where);
// `keys`: what stands in that section, for an error about an unknown one.
void check_section(std::string_view section, const std::string& where,
                   std::span<const std::string> keys = {});

// Text for errors: "a whole number from 1 to 9", "true or false, without quotes", "one of: fp32,
// bf16", ...
std::string describe_expected(const KnownKey& known);

std::string describe_expected(const ConfigValue& value, const ConfigLimits& limits);

// The value of a file as text for errors.
std::string describe_found(const toml::node& node);
// A string, a whole number, true or false, without quotes; else "".
std::string scalar_text(const toml::node& node);

// What is wrong with a table of [[data.source]]; "": nothing.
std::string why_no_source(const toml::node& node);

// Stores a TOML value; false where its type or its value does not fit.
bool store_value(const toml::node& node, const ConfigLimits& limits, const ConfigValue& value);

// "whole number", "string", or the choices.
std::string type_name(const ConfigValue& value, const ConfigLimits& limits);

// The value as TOML; floats read back to the same bits.
std::string toml_value(const ConfigValue& value, bool is_path);
std::string toml_value(const ConfigField& field, const Config& config);
std::string toml_value(const Json& json);

}  // namespace skein
