// Sets keys of a configuration back to what the events of a run say that they were.
//
// Paths    of corpora as the text of the change names them; of the sources of a mixture, which it
//          does not place, as the configurations at hand do, by name
// Errors   Error{kUsage}: why the value cannot be set
#pragma once

#include <span>
#include <string>

#include "skein/config/config.h"

namespace skein {

// `value`: a text of compare_configurations. `others`: configurations that may say where a source
// lies.
void set_recorded_value(Config& config, const std::string& key, const std::string& value,
                        std::span<const Config> others);

}  // namespace skein
