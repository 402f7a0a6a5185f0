// A configuration as a command line names it, before it is read.
#pragma once

#include <string>
#include <vector>

namespace skein {

struct NamedConfig {
  std::string path;                    // of the file; for another process: place_text()
  std::vector<std::string> overrides;  // "section.key=value"
};

}  // namespace skein
