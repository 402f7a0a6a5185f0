// Scripts for completion in shells, generated from the command line's definition.
#pragma once

#include <string>

#include "skein/cli/shared/command.h"

namespace skein {

// A script for `shell` (bash, zsh or fish) that completes commands, their options, configuration
// keys after --set, and file names where a path is expected.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace skein
