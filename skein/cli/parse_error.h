// Explains errors in a command line, and suggests what was probably meant.
#pragma once

#include <string>

#include "skein/cli/command.h"

namespace skein {

// One line for people about `error`, which was thrown while the command line was parsed into `app`.
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error, int argc,
                                char** argv);

}  // namespace skein
