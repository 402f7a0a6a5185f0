// Helpers that commands share. A command is one file, <name>_command.cc, with one function that
// adds it to the command line; commands.h declares it and the table in main.cc lists it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/ending.h"
#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "skein/config/named_config.h"
#include "skein/objects/place.h"

namespace skein {

// The selected command. Each add function sets `run` in the callback of its subcommand; it returns
// an exit code or throws Error.
struct CommandContext {
  std::function<int()> run;
  bool computes = false;  // with the threads of OpenMP, for longer than it takes to start twice
  // What is to be said before it runs: the command line may be parsed twice
  // (base/machine/short_spins.h).
  std::vector<std::string> notes;
};

// Finds the subcommand `name` of `app`, such as `data` of `data ingest`, or adds it.
CLI::App& command_group(CLI::App& app, const std::string& name, const std::string& help);

// CONFIG.toml [--set section.key=value]...
struct ConfigOptions : NamedConfig {
  // This object must outlive the parsing of the command line, as `context` must. Returns
  // CONFIG.toml, which is required.
  CLI::Option* add_to(CLI::App& command, CommandContext& context);
};

struct Config;
// For questions about a run: with its own copies in place of files that are gone, as training takes
// them; says so.
Config load_config_of_run(const NamedConfig& options);

// A file that a command writes without being asked to replace anything: none is there, or one that
// begins as what it writes does, so an earlier one. Error{kUsage} beginning with `option`.
void check_replaces_its_own(const char* option, const fs::path& path, std::string_view beginning);

// Prints one JSON document on standard output.
void print_json(const OrderedJson& json);

// Throws Error{kIo | kNoSpace} where standard output could not be written. main calls it after
// every command; a command that prints while it works calls it too, to stop early.
void flush_output();
// That error; `number`: errno, or 0 where it is not known.
Error output_error(int number);

// Marks an option as a place (objects/place.h): what it means takes the place of what was written,
// and shells complete file names. Every option that names a file or a folder is one.
CLI::Option* as_path(CLI::Option* option, PlaceUse use = PlaceUse::kDiskOrStore);
inline CLI::Option* as_path_of_a_disk(CLI::Option* option) {
  return as_path(option, PlaceUse::kDisk);
}

// Checks a number's range, with errors in words: "--step: 0 is not a whole number from 1".
CLI::Validator whole_number_from(int64_t minimum, int64_t maximum = INT64_MAX);
CLI::Validator number_from(double minimum);
CLI::Validator number_between(double minimum, double maximum);

// The bytes that "512MiB" or "4GiB" names; Error{kUsage} beginning with `option` for anything else.
int64_t parse_bytes(const char* option, const std::string& text);

// Whether `text` has the form section.key=value, which --set takes.
bool looks_like_override(const std::string& text);

}  // namespace skein
