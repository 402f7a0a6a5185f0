// The skein program: reads the command line, runs one command, turns what it throws into a line on
// standard error and an exit code.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/nearest.h"
#include "skein/cli/commands.h"
#include "skein/cli/version.h"

namespace skein {
namespace {

using AddCommand = void (*)(CLI::App&, CommandContext&);

// Every command, in the order in which --help lists them.
constexpr AddCommand kCommands[] = {
    add_train_command, add_plan_command,     add_data_commands,  add_checkpoint_commands,
    add_score_command, add_generate_command, add_report_command, add_version_command,
};

// One line of UTF-8, whatever names and bytes from outside the message repeats.
void print_error(std::string_view message) {
  constexpr auto kReplace = OrderedJson::error_handler_t::replace;
  const OrderedJson utf8 = OrderedJson::parse(OrderedJson(message).dump(-1, ' ', false, kReplace));
  std::string line = utf8.get<std::string>();
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  fmt::print(stderr, "skein: {}\n", line);
}

// "did you mean …?" for a command that is not there; "" otherwise.
std::string suggest_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* group = &app;
  for (int i = 1; i < argc; ++i) {
    std::vector<std::string> names;
    for (const CLI::App* command : group->get_subcommands({})) names.push_back(command->get_name());
    if (names.empty() || argv[i][0] == '-') return "";
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    const auto found = std::find(names.begin(), names.end(), argv[i]);
    if (found == names.end()) {
      const std::string_view nearest = nearest_name(argv[i], candidates);
      if (nearest.empty()) return fmt::format("there is no command {}", argv[i]);
      return fmt::format("there is no command {}: did you mean {}?", argv[i], nearest);
    }
    group = group->get_subcommand(*found);
  }
  return "";
}

int parse_failed(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::string suggestion = suggest_command(app, argc, argv);
  print_error(suggestion.empty() ? error.what() : suggestion);
  fmt::print(stderr, "Run with --help for the commands and their options.\n");
  return kExitUsage;
}

int run_command(const CommandContext& context) {
  try {
    return context.run();
  } catch (const Error& error) {
    print_error(error.what());
    return error.code() == ErrorCode::kUsage ? kExitUsage : kExitFailed;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& error) {
    print_error(fmt::format("internal error: {}", error.what()));
  }
  return kExitFailed;
}

int skein_main(int argc, char** argv) {
  CLI::App app("Pre-trains language models of the Llama family, from raw text to a checkpoint.");
  app.name("skein");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text());
  CommandContext context;
  for (const AddCommand add_command : kCommands) add_command(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return parse_failed(app, error, argc, argv);
  }
  return run_command(context);
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) { return skein::skein_main(argc, argv); }
