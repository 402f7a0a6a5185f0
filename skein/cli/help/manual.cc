#include "skein/cli/help/manual.h"

#include <fmt/format.h>

#include "skein/base/machine/environment.h"
#include "skein/base/version.h"

namespace skein {
namespace {

// Escapes text for roff: no line begins a request, and hyphens stay searchable.
std::string roff(const std::string& text) {
  std::string result;
  bool at_line_start = true;
  for (const char letter : text) {
    if (at_line_start && (letter == '.' || letter == '\'')) result += "\\&";
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else {
      result += letter;
    }
    at_line_start = letter == '\n';
  }
  return result;
}

// Usage of an option, such as "--step N" or "CONFIG.toml".
std::string usage_of(const CLI::Option& option, const CLI::App& command) {
  if (option.get_positional()) return roff(option.get_name(true));
  const std::string name = roff(option.get_name(false, true));
  if (option.get_type_size() == 0) return fmt::format("\\fB{}\\fR", name);
  const auto formatter = std::static_pointer_cast<CLI::Formatter>(command.get_formatter());
  return fmt::format("\\fB{}\\fR \\fI{}\\fR", name,
                     roff(formatter->get_label(option.get_type_name())));
}

void add_command(const CLI::App& command, const std::string& name, std::string& page) {
  page += fmt::format(".SS {}\n{}.\n", roff(name), roff(command.get_description()));
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_name(false, true) == "-h,--help") continue;
    page +=
        fmt::format(".TP\n{}{}\n{}\n", usage_of(*option, command),
                    option->get_required() ? " (required)" : "", roff(option->get_description()));
  }
  const std::string footer = command.get_footer();
  const size_t examples = footer.find('\n');
  if (examples == std::string::npos) return;
  page += fmt::format(".PP\nExamples:\n.PP\n.nf\n.RS 4\n{}\n.RE\n.fi\n",
                      roff(footer.substr(examples + 1)));
}

void add_commands(const CLI::App& group, const std::string& prefix, std::string& page) {
  for (const CLI::App* command : group.get_subcommands({})) {
    if (command->get_group().empty()) continue;  // hidden
    const std::string name = prefix + " " + command->get_name();
    if (command->get_subcommands({}).empty()) {
      add_command(*command, name, page);
    } else {
      add_commands(*command, name, page);
    }
  }
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string page = fmt::format(
      ".TH SKEIN 1 \"\" \"skein {}\" \"User Commands\"\n.SH NAME\nskein \\- pre\\-trains language "
      "models\n.SH SYNOPSIS\n.B skein\n.I COMMAND\n[\\fIOPTIONS\\fR] …\n"
      ".SH DESCRIPTION\n{}\n.PP\nWhere a \\fIMODEL\\fR is expected, a Hugging Face folder, a "
      "checkpoint, or a run (its newest good checkpoint) may stand. \\fB\\-\\-json\\fR prints one "
      "document on standard output and nothing else there; text for people goes to standard "
      "error.\n.SH COMMANDS\n",
      roff(std::string(kVersion)), roff(app.get_description()));
  add_commands(app, "skein", page);
  page +=
      ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nfailed\n.TP\n2\nthe command line or a configuration "
      "is wrong\n.TP\n75\nstopped by a signal after saving: run again to continue\n"
      ".SH ENVIRONMENT\n";
  for (const EnvironmentVariable& variable : environment_variables()) {
    std::string values(variable.values);
    std::erase(values, '`');
    page += fmt::format(".TP\n{}\n{}: {}\n", roff(std::string(variable.name)), roff(values),
                        roff(std::string(variable.help)));
  }
  page +=
      ".SH FILES\nEvery key of the configuration, and all formats on disk, are described in the "
      "documentation, \\fIshare/doc/skein\\fR beside \\fIbin\\fR.\n";
  return page;
}

}  // namespace skein
