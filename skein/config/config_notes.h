// What a configuration asks for and does not get.
#pragma once

#include <string>
#include <vector>

#include "skein/config/config.h"

namespace skein {

// One line for each key that differs from its default and has no effect: it is not built yet.
std::vector<std::string> settings_without_effect(const Config& config);

// "run.steps" for "steps", "optimizer.learning_rate" for "learning-rate": the configuration keys
// that a mistaken option `name` (without its dashes) most likely means, at most one a section;
// exactly so named ones, else the nearest.
std::vector<std::string> keys_meant_by(std::string name);

}  // namespace skein
