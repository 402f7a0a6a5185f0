// The skein program: parses the command line, runs one command, and turns exceptions into a line on
// standard error and an exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <omp.h>
#include <openssl/crypto.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string_view>
#include <system_error>

#include "skein/base/exception.h"
#include "skein/base/files/lost_pages.h"
#include "skein/base/machine/cores.h"
#include "skein/base/machine/crash_signals.h"
#include "skein/base/machine/short_spins.h"
#include "skein/base/machine/stack_room.h"
#include "skein/base/text/log.h"
#include "skein/base/threads/call_within.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/early_stop.h"
#include "skein/cli/help/examples.h"
#include "skein/cli/help/parse_error.h"
#include "skein/cli/shared/build_info.h"
#include "skein/cli/shared/print.h"

namespace skein {
namespace {

using AddCommand = void (*)(CLI::App&, CommandContext&);

// Every command, in the order in which --help lists them.
constexpr AddCommand kCommands[] = {
    add_train_command,       add_plan_command,       add_compile_command, add_data_commands,
    add_checkpoint_commands, add_eval_command,       add_score_command,   add_generate_command,
    add_serve_command,       add_report_command,     add_why_command,     add_check_command,
    add_launch_command,      add_completion_command, add_version_command,
};

// Prints one line, whatever names and bytes the message quotes.
void print_error(std::string_view message) {
  std::string line(message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  print_line(stderr, "skein: {}", line);
}

int parse_failed(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const Explanation explained = explain_parse_error(app, error, argc, argv);
  print_error(explained.says_what_helps ? explained.text
                                        : explained.text + ": --help says what there is");
  return kExitUsage;
}

// What fmt throws where standard output takes no more does not say that it is standard output.
Error error_of(const std::exception& exception) {
  const auto* failed = dynamic_cast<const std::system_error*>(&exception);
  if (failed == nullptr || std::ferror(stdout) == 0) return to_error(exception);
  return output_error(failed->code().value());
}

// Runs a command and returns its exit code; an exception becomes a line and an exit code. A command
// whose output could not be written fails.
int run_command(const std::function<int()>& run) {
  try {
    const LostPages lost_pages;  // a file that is cut while it is read is told of
    const int code = run();
    flush_output();
    return code;
  } catch (const std::exception& exception) {
    const Error error = error_of(exception);
    print_error(error.what());
    return exit_code_of(error);
  }
}

// Opens /dev/null for each closed standard stream. Otherwise the next opened file would get its
// number, and its output.
void keep_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // Read-only, so that writing to a closed stream remains an error.
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY) < 0) return;
  }
}

// The names of value types in --help.
void name_kinds(CLI::App& app) {
  const auto formatter = std::make_shared<CLI::Formatter>();
  for (const char* number : {"INT", "UINT", "FLOAT"}) formatter->label(number, "N");
  formatter->label("SUBCOMMAND", "COMMAND");
  app.formatter(formatter);
}

// A run, and no worker of a supervisor.
bool is_run(int argc, char** argv) {
  return argc > 1 && std::string_view(argv[1]) == "train" &&
         std::getenv("SKEIN_PARENT_PID") == nullptr;
}

int skein_main(int argc, char** argv) {
  take_back_crash_signals();
  outlive_file_size_limit();
  // Threads that nobody waits for may end while the process does: libcrypto would then clean up for
  // them what it has freed already.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  const bool runs = is_run(argc, argv);
  if (runs) answer_early_stops();
  keep_standard_streams();
  CLI::App app("Pre-trains language models, from raw text to a checkpoint.");
  app.name("skein");
  name_kinds(app);  // before the commands are added, which inherit it
  app.require_subcommand(1);
  app.set_version_flag(
      "--version", [] { return version_text(); }, "Print the version and how it was built");
  CommandContext context;
  for (const AddCommand add_command : kCommands) add_command(app, context);
  add_examples(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_answer = error.get_exit_code() == 0;  // --help or --version, not a mistake
    if (!is_answer || !explain_unknown_command(app, argc, argv).text.empty()) {
      return parse_failed(app, error, argc, argv);
    }
    std::ostringstream text;  // the text of --help or --version
    app.exit(error, text, text);
    context.run = [text = text.str()] {
      fmt::print("{}", text);
      return kExitDone;
    };
  }
  if (context.computes) {
    // exec resets signal handlers: a stop that comes before the new program installs its own would
    // end the run with another exit code. A blocked signal stays pending across exec.
    if (runs) hold_early_stops();
    restart_with_short_spins(argv);
    if (runs) answer_early_stops();
    // OpenMP counts cores, and knows nothing of quotas.
    if (std::getenv("OMP_NUM_THREADS") == nullptr) omp_set_num_threads(num_cores());
  }
  for (const std::string& note : context.notes) print_line(stderr, "{}", note);
  log::start();
  return run_command(context.run);
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  ::prctl(PR_SET_NAME, "skein");  // what was started through /proc/self/exe is called exe otherwise
  try {
    const int code = skein::run_with_stack([&] { return skein::skein_main(argc, argv); });
    if (skein::has_given_up_calls()) {  // they still run, in code that has globals
      std::fflush(nullptr);
      ::_exit(code);
    }
    return code;
  } catch (const skein::Error& error) {  // there is no room for a stack
    skein::print_error(error.what());
    return skein::exit_code_of(error);
  }
}
