#include "skein/runtime/pjrt/program_key.h"

#include <cstdlib>
#include <sstream>

#include "skein/base/files/file.h"
#include "skein/base/numbers/hash.h"
#include "skein/runtime/pjrt/compile_options.h"

namespace skein {
namespace {

// The lines of the first processor that say which instructions it has, and how it is best used.
std::string processor_text() {
  std::istringstream lines(read_file_if_any("/proc/cpuinfo"));
  std::string text;
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    for (const char* name : {"vendor_id", "cpu family", "model", "flags", "Features", "CPU "}) {
      if (line.starts_with(name)) text += line + "\n";
    }
  }
  return text;
}

std::string compiler_text(const PjrtClient& client) {
  const MappedFile library(client.plugin());
  std::string text = client.identity() + "library " + xxh3_128_hex(library.bytes()) + "\n";
  if (client.platform_name() == "cpu") text += processor_text();
  for (const char* name : {"XLA_FLAGS", "LIBTPU_INIT_ARGS", "NEURON_CC_FLAGS"}) {
    const char* value = std::getenv(name);
    text += fmt::format("{}={}\n", name, value == nullptr ? "" : value);
  }
  return text;
}

}  // namespace

ProgramKeys::ProgramKeys(const PjrtClient& client, const std::string& level)
    : level_(level), compiler_(compiler_text(client)) {}

std::string ProgramKeys::key(const std::string& text, int64_t num_replicas) const {
  const std::string options = compile_options(num_replicas, level_);
  Xxh3Stream hash;
  for (const std::string* part : {&compiler_, &options, &text}) {
    const std::string length = fmt::format("{}\n", part->size());
    hash.update(std::as_bytes(std::span(length)));
    hash.update(std::as_bytes(std::span(*part)));
  }
  return hash.hex();
}

}  // namespace skein
