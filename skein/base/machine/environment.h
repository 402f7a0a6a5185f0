// What a person may say in the environment. All that has to last belongs into a configuration:
// these tell what differs from machine to machine, or one fault from another.
#pragma once

#include <span>
#include <string_view>

namespace skein {

struct EnvironmentVariable {
  std::string_view name, values, help;
};

// Every variable that is read and that a supervisor or a launcher does not set by itself.
std::span<const EnvironmentVariable> environment_variables();

// Of a variable that is `on` unless someone sets it to `off`. Errors: kUsage for other values.
bool is_switched_on(const char* variable);

}  // namespace skein
