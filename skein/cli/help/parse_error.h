// Explains errors in a command line, and suggests what was probably meant.
#pragma once

#include <string>

#include "skein/cli/shared/command.h"

namespace skein {

struct Explanation {
  std::string text;
  bool says_what_helps = false;  // else --help does
};

// "there is no command ...", with the name that was probably meant, for the first unknown command;
// no text where all exist. The parser answers --help before it looks at the commands.
Explanation explain_unknown_command(const CLI::App& app, int argc, char** argv);

// One line for people about `error`, which was thrown while the command line was parsed into `app`.
Explanation explain_parse_error(const CLI::App& app, const CLI::ParseError& error, int argc,
                                char** argv);

}  // namespace skein
