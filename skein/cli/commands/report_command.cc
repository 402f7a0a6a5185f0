// skein report RUN_DIR [--json]
#include <fmt/format.h>

#include <memory>

#include "skein/cli/commands/commands.h"
#include "skein/cli/shared/print.h"
#include "skein/record/report/report.h"

namespace skein {

void add_report_command(CLI::App& app, CommandContext& context) {
  struct Options {
    std::string run_dir;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("report", "Tell what happened in a run");
  as_path_of_a_disk(command->add_option("RUN_DIR", options->run_dir, "the folder of the run"))
      ->required();
  command->add_flag("--json", options->json, "print one JSON document");
  command->callback([&context, options] {
    context.run = [options] {
      const RunReport report = read_report(options->run_dir);
      if (options->json) {
        print_json(report_json(report));
      } else {
        print_text(stdout, report_text(report));
      }
      return kExitDone;
    };
  });
}

}  // namespace skein
