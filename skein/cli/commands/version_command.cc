// skein version [--json]
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "skein/backends/backend.h"
#include "skein/base/error.h"
#include "skein/base/version.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/shared/build_info.h"
#include "skein/ops/simd/cpu_kind.h"

namespace skein {
namespace {

const char* compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

const char* optimization() {
#if defined(__OPTIMIZE__)
  return "optimized";
#else
  return "not optimized";
#endif
}

const char* architecture() {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

bool has_address_sanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return true;
#elif defined(__has_feature)
  return __has_feature(address_sanitizer);
#else
  return false;
#endif
}

bool has_cuda() {
  const std::vector<const Backend*> backends = all_backends();
  return std::any_of(backends.begin(), backends.end(), [](const Backend* backend) {
    return backend->kind == "cuda" && backend->only_plans.empty();
  });
}

// As a run without device.cpu has it.
std::string kernels(bool with_reason) try {
  limit_cpu_kind("auto");
  const std::string reason = with_reason ? denied_tiles() : "";
  return reason.empty() ? cpu_kind() : fmt::format("{} ({})", cpu_kind(), reason);
} catch (const Error& error) {
  return fmt::format("none: {}", error.what());
}

}  // namespace

OrderedJson version_json() {
  return {{"version", kVersion},
          {"commit", kCommit},
          {"compiler", compiler()},
          {"build", optimization()},
          {"architecture", architecture()},
          {"address_sanitizer", has_address_sanitizer()},
          {"cuda", has_cuda()},
          {"cpu", kernels(false)}};
}

std::string version_text() {
  return fmt::format("skein {}, commit {}\n{}, {}{}, for {}, {} CUDA; kernels for this CPU: {}",
                     kVersion, kCommit, compiler(), optimization(),
                     has_address_sanitizer() ? ", address sanitizer" : "", architecture(),
                     has_cuda() ? "with" : "without", kernels(true));
}

void add_version_command(CLI::App& app, CommandContext& context) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("version", "Print the version and how it was built");
  command->add_flag("--json", *json, "print one JSON document");
  command->callback([&context, json] {
    context.run = [json] {
      if (*json) {
        print_json(version_json());
      } else {
        fmt::print("{}\n", version_text());
      }
      return kExitDone;
    };
  });
}

}  // namespace skein
