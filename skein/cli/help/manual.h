// The manual page, generated from the command line's definition.
#pragma once

#include <string>

#include "skein/cli/shared/command.h"

namespace skein {

// skein(1) in roff, for `man`.
std::string manual_page(const CLI::App& app);

}  // namespace skein
