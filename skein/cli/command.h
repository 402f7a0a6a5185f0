// What the commands share. A command is one file, <name>_command.cc, with one function that adds it
// to the command line; commands.h declares it and the table in main.cc lists it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "skein/base/json.h"
#include "skein/launch/exit_codes.h"

namespace skein {

// The command that the command line chose. Each add function sets, in the callback of its
// subcommand, what is to run; it returns an exit code or throws Error.
struct CommandContext {
  std::function<int()> run;
};

// The subcommand `name` of `app`, such as `data` of `data ingest`; added where it is not there yet.
CLI::App& command_group(CLI::App& app, const std::string& name, const std::string& help);

// CONFIG.toml [--set section.key=value]…
struct ConfigOptions {
  std::string path;
  std::vector<std::string> overrides;
  // The object must outlive the parsing of the command line.
  void add_to(CLI::App& command);
};

// Prints one JSON document on standard output.
void print_json(const OrderedJson& json);

// Throws Error{kIo | kNoSpace} where standard output did not take all that was printed. main calls
// it behind every command; a command that prints while it works, where it would go on for nothing.
void flush_output();

// The same option, whose text is a path: ~ is the home folder, shells complete files.
CLI::Option* as_path(CLI::Option* option);

// Checks of a number's range, which a refusal says in words: "--step: 0 is not a whole number
// from 1".
CLI::Validator whole_number_from(int64_t minimum, int64_t maximum = INT64_MAX);
CLI::Validator number_from(double minimum);
CLI::Validator number_between(double minimum, double maximum);

// section.key=value, as --set takes it.
bool looks_like_override(const std::string& text);

}  // namespace skein
