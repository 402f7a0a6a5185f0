// What is wrong with a command line, and what was probably meant.
#pragma once

#include <string>

#include "skein/cli/command.h"

namespace skein {

// One line for a person about `error`, which parsing the command line into `app` threw.
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error, int argc,
                                char** argv);

}  // namespace skein
