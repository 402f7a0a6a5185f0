// Names that a run can write down: its records hold the paths of a configuration, absolute, as JSON
// and TOML, and these hold UTF-8 alone.
//
// Errors  Error{kUsage} that names the file, the key and the value, and says what to do
#pragma once

#include <string>

#include "skein/config/config.h"

namespace skein {

// Refuses texts that are not UTF-8, and paths that count from a working folder that is not.
void check_utf8(Config& config, const std::string& file);

}  // namespace skein
