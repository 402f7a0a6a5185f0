// Completion in shells, from what the command line knows of itself.
#pragma once

#include <string>

#include "skein/cli/command.h"

namespace skein {

// A script for `shell`, which is bash, zsh or fish: commands, their options, the configuration keys
// behind --set, files where a path may stand.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace skein
