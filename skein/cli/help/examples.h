// Examples at the end of each command's --help and in the manual page.
#pragma once

#include "skein/cli/shared/command.h"

namespace skein {

// Gives every command of `app` its examples, and the program itself its exit codes.
// Errors  kInternal where a command has none
void add_examples(CLI::App& app);

}  // namespace skein
