// skein completion bash|zsh|fish      and, hidden, for packagers: skein manual
#include <fmt/format.h>

#include <memory>

#include "skein/cli/commands/commands.h"
#include "skein/cli/help/completion.h"
#include "skein/cli/help/manual.h"

namespace skein {

void add_completion_command(CLI::App& app, CommandContext& context) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "Print a script that completes commands in a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  command->callback([&app, &context, shell] {
    context.run = [&app, shell] {
      fmt::print("{}", completion_script(app, *shell));
      return kExitDone;
    };
  });
  CLI::App* manual = app.add_subcommand("manual", "Print the manual page, skein(1)")->group("");
  manual->callback([&app, &context] {
    context.run = [&app] {
      fmt::print("{}", manual_page(app));
      return kExitDone;
    };
  });
}

}  // namespace skein
