// The commands, one function each: it adds its subcommand to `app`.
#pragma once

#include "skein/cli/command.h"

namespace skein {

void add_report_command(CLI::App& app, CommandContext& context);
void add_version_command(CLI::App& app, CommandContext& context);

}  // namespace skein
