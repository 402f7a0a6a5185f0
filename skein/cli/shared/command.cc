#include "skein/cli/shared/command.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/config/config.h"
#include "skein/objects/store.h"
#include "skein/prepare/read/bytes/byte_source.h"
#include "skein/train/start/run_folder.h"
#include "skein/weights/init_source.h"

namespace skein {
namespace {

// Parses a finite number; rejects trailing characters.
std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

CLI::Validator number_check(const std::string& expected,
                            const std::function<bool(const std::string&)>& fits) {
  return CLI::Validator(
      [expected, fits](const std::string& text) {
        return fits(text) ? std::string() : fmt::format("{} is not {}", text, expected);
      },
      "");
}

}  // namespace

CLI::App& command_group(CLI::App& app, const std::string& name, const std::string& help) {
  for (CLI::App* group : app.get_subcommands({})) {
    if (group->get_name() == name) return *group;
  }
  CLI::App* group = app.add_subcommand(name, help);
  group->require_subcommand(1);
  return *group;
}

Config load_config_of_run(const NamedConfig& options) {
  Config config = load_config(options.path, options.overrides);
  check_own_folder(options.path, options.overrides, config);
  for (const std::string& line : use_own_copies(config, options.overrides)) log::info("{}", line);
  if (const std::string line = take_source_tokenizer(config); !line.empty()) log::info("{}", line);
  return config;
}

CLI::Option* ConfigOptions::add_to(CLI::App& command, CommandContext& context) {
  CLI::Option* file = command.add_option("CONFIG.toml", path, "the configuration");
  file->transform(CLI::Validator(
      [&context](std::string& text) {
        Result<std::string> named = try_run([&] { return config_file_of(text); });
        if (!named.ok()) return std::string(named.error().what());
        if (named.value() != text) context.notes.push_back("reading " + named.value());
        text = named.value();
        return std::string();
      },
      ""));
  as_path_of_a_disk(file);  // what is added last transforms first
  file->required()->check(CLI::Validator(
      [](const std::string& text) {
        std::error_code ignored;  // set for a name that is too long
        if (!looks_like_override(text) || fs::exists(text, ignored)) return std::string();
        return fmt::format("expected a file, found {}: did you mean --set {}?", text, text);
      },
      ""));
  command.add_option("--set", overrides, "section.key=value, over what the file says; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);  // one value each, since CONFIG.toml may follow
  return file;
}

void print_json(const OrderedJson& json) { fmt::print("{}\n", json_text(json, 2)); }

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw output_error(errno);
}

Error output_error(int number) {
  return Error(number == 0 ? ErrorCode::kIo : errno_code(number),
               fmt::format("cannot write to standard output{}{}: the output is not whole",
                           number == 0 ? "" : ": ", number == 0 ? "" : errno_text(number)));
}

CLI::Option* as_path(CLI::Option* option, PlaceUse use) {
  return option->type_name("PATH")->transform(CLI::Validator(
      [use](std::string& text) {
        try {
          text = Place::parse(text, "the path", use).text();
        } catch (const Error& error) {
          return std::string(error.what());
        }
        return std::string();
      },
      ""));
}

CLI::Validator whole_number_from(int64_t minimum, int64_t maximum) {
  const std::string expected = maximum == INT64_MAX
                                   ? fmt::format("a whole number from {}", minimum)
                                   : fmt::format("a whole number from {} to {}", minimum, maximum);
  return number_check(expected, [=](const std::string& text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= minimum &&
           value <= maximum;
  });
}

CLI::Validator number_from(double minimum) {
  return number_check(fmt::format("a number from {}", minimum), [=](const std::string& text) {
    const std::optional<double> value = parse_number(text);
    return value && *value >= minimum;
  });
}

CLI::Validator number_between(double minimum, double maximum) {
  return number_check(fmt::format("a number from {} to {}", minimum, maximum),
                      [=](const std::string& text) {
                        const std::optional<double> value = parse_number(text);
                        return value && *value >= minimum && *value <= maximum;
                      });
}

void check_replaces_its_own(const char* option, const fs::path& path, std::string_view beginning) {
  std::error_code error;
  const bool is_there = is_object_url(path) ? has_object(parse_object_url(path.native()))
                                            : fs::is_regular_file(path, error);
  if (!is_there || open_bytes(path)->peek(beginning.size()) == beginning) return;
  fail(ErrorCode::kUsage,
       "{} {}: exists, and is not what an earlier one wrote, which begins with {}: name another "
       "file, or remove it",
       option, path.string(), beginning);
}

int64_t parse_bytes(const char* option, const std::string& text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const int shift = unit == "MiB" ? 20 : unit == "GiB" ? 30 : unit == "TiB" ? 40 : 0;
  if (error != std::errc() || shift == 0 || count < 1 || count > INT64_MAX >> shift) {
    fail(ErrorCode::kUsage, "{} {}: expected a whole number of MiB, GiB or TiB, such as 4GiB",
         option, text);
  }
  return count << shift;
}

bool looks_like_override(const std::string& text) {
  const size_t dot = text.find('.'), equals = text.find('=');
  return dot != std::string::npos && equals != std::string::npos && dot > 0 && dot < equals;
}

}  // namespace skein
