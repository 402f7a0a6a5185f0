// skein plan CONFIG.toml [--set section.key=value]… [--json]
#include <fmt/format.h>

#include <memory>

#include "skein/cli/commands.h"
#include "skein/train/plan.h"

namespace skein {

void add_plan_command(CLI::App& app, CommandContext& context) {
  struct Options {
    ConfigOptions config;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("plan", "Tell the bytes and the time that training would take");
  options->config.add_to(*command);
  command->add_flag("--json", options->json, "print one JSON document");
  command->callback([&context, options] {
    context.run = [options] {
      const Config config =
          load_config(options->config.path, options->config.overrides, ConfigUse::kPlan);
      const Plan plan = make_plan(config);
      if (options->json) {
        print_json(plan_to_json(plan));
      } else {
        fmt::print("{}", plan_to_text(plan));
      }
      return kExitDone;
    };
  });
}

}  // namespace skein
