#include "skein/runtime/pjrt/compile_options.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/protobuf.h"

namespace skein {
namespace {

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// An OptionOverrideProto: string_field (1), bool_field (2), int_field (3).
std::string override_value(const std::string& value) {
  std::string message;
  if (value == "true" || value == "false") {
    append_protobuf_number(message, 2, value == "true" ? 1 : 0);
  } else if (const auto number = whole_number(value)) {
    append_protobuf_number(message, 3, static_cast<uint64_t>(*number));
  } else {
    append_protobuf_bytes(message, 1, value);
  }
  return message;
}

struct Option {
  std::string name, value;
};

std::vector<Option> options_of_level(const std::string& level) {
  if (level.empty()) return {};
  if (level.size() == 1 && level >= "0" && level <= "3") {
    return {{"xla_backend_optimization_level", level}};
  }
  std::vector<Option> options;
  for (size_t begin = 0; begin <= level.size();) {
    const size_t end = std::min(level.find(',', begin), level.size());
    const std::string option = level.substr(begin, end - begin);
    const size_t equals = option.find('=');
    if (equals == 0 || equals >= option.size() - 1) {
      fail(ErrorCode::kUsage,
           "device.optimization_level is \"{}\": expected 0, 1, 2 or 3, or options of the compiler "
           "such as xla_llvm_disable_expensive_passes=true",
           level);
    }
    options.push_back({option.substr(0, equals), option.substr(equals + 1)});
    begin = end + 1;
  }
  return options;
}

}  // namespace

std::string compile_options(int64_t num_replicas, const std::string& level,
                            int64_t num_partitions) {
  std::string build;  // ExecutableBuildOptionsProto: num_replicas (4), num_partitions (5)
  append_protobuf_number(build, 4, static_cast<uint64_t>(num_replicas));
  append_protobuf_number(build, 5, static_cast<uint64_t>(num_partitions));
  std::string
      options;  // CompileOptionsProto: executable_build_options (3), env_option_overrides (7)
  append_protobuf_bytes(options, 3, build);
  // XLA would leave out roundings to bf16 between ops, and what is computed would depend on what it
  // fuses.
  std::vector<Option> overrides = {{"xla_allow_excess_precision", "false"}};
  for (Option& option : options_of_level(level)) overrides.push_back(std::move(option));
  for (const Option& option : overrides) {
    std::string entry;  // of a map: key (1), value (2)
    append_protobuf_bytes(entry, 1, option.name);
    append_protobuf_bytes(entry, 2, override_value(option.value));
    append_protobuf_bytes(options, 7, entry);
  }
  return options;
}

}  // namespace skein
