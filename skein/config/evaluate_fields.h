// The tables [[evaluate]] of a configuration: one row a key, from which reading, writing and the
// reference of docs/configuration.md derive.
//
// Errors  Error{kUsage} naming the place, the table's number, the key, what was found and what was
//         expected
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/config/fields.h"

namespace skein {

struct EvaluateField {
  std::string_view key;
  ConfigValue (*value)(EvaluateConfig&);
  std::string_view help;
  ConfigLimits limits = {};
};

std::span<const EvaluateField> evaluate_fields();

// `node`: what `evaluate` is in a file, or in --set. `where`: the file and line, or the --set.
std::vector<EvaluateConfig> read_evaluate_tables(const toml::node& node, const std::string& where);

// TOML that reads back to the same tables; "" without any.
std::string evaluations_text(const std::vector<EvaluateConfig>& evaluations);

// The part of the reference.
std::string evaluate_reference();

}  // namespace skein
