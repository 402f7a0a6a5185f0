#include "skein/cli/command.h"

#include <fmt/format.h>

#include <cstdio>

namespace skein {

CLI::App& command_group(CLI::App& app, const std::string& name, const std::string& help) {
  for (CLI::App* group : app.get_subcommands({})) {
    if (group->get_name() == name) return *group;
  }
  CLI::App* group = app.add_subcommand(name, help);
  group->require_subcommand(1);
  return *group;
}

void ConfigOptions::add_to(CLI::App& command) {
  command.add_option("CONFIG.toml", path, "the configuration")->required();
  command.add_option("--set", overrides, "section.key=value, over what the file says");
}

void print_json(const OrderedJson& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
}

}  // namespace skein
