// Hints about keys that have no effect, and about mistyped options.
#pragma once

#include <string>
#include <vector>

#include "skein/config/config.h"

namespace skein {

// One line for each key that was set and does nothing in this run, of which `done` steps lie
// behind. `is_supervised`: `skein train` started this worker, and watches it.
std::vector<std::string> settings_without_effect(const Config& config, int64_t done,
                                                 bool is_supervised);

// The configuration keys that a mistaken option `name` (without its dashes) most likely means:
// "run.steps" for "steps", "optimizer.learning_rate" for "learning-rate". Those with exactly this
// name, else those whose name is nearest.
std::vector<std::string> keys_meant_by(std::string name);

// Whether `value` can stand behind `--set KEY=`.
bool is_value_of(const std::string& key, const std::string& value);

}  // namespace skein
