// The commands: each function adds its subcommand to `app`.
#pragma once

#include "skein/cli/shared/command.h"

namespace skein {

void add_train_command(CLI::App& app, CommandContext& context);
void add_compile_command(CLI::App& app, CommandContext& context);
void add_plan_command(CLI::App& app, CommandContext& context);
void add_data_commands(CLI::App& app, CommandContext& context);
void add_ingest_command(CLI::App& group, CommandContext& context);  // of `data`, as the next three
void add_clean_command(CLI::App& group, CommandContext& context);
void add_dedup_command(CLI::App& group, CommandContext& context);
void add_show_command(CLI::App& group, CommandContext& context);
void add_checkpoint_commands(CLI::App& app, CommandContext& context);
void add_eval_command(CLI::App& app, CommandContext& context);
void add_serve_command(CLI::App& app, CommandContext& context);
void add_score_command(CLI::App& app, CommandContext& context);
void add_check_command(CLI::App& app, CommandContext& context);
void add_generate_command(CLI::App& app, CommandContext& context);
void add_launch_command(CLI::App& app, CommandContext& context);
void add_report_command(CLI::App& app, CommandContext& context);
void add_why_command(CLI::App& app, CommandContext& context);
void add_version_command(CLI::App& app, CommandContext& context);
void add_completion_command(CLI::App& app, CommandContext& context);

}  // namespace skein
