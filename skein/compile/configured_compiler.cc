#include "skein/compile/configured_compiler.h"

#include <cstdlib>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/objects/object_writer.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

fs::path folder_of_variable(const char* variable) {
  const char* folder = std::getenv(variable);
  return folder == nullptr ? fs::path() : fs::path(folder);
}

fs::path default_folder() {
  const fs::path own = folder_of_variable("SKEIN_CACHE");
  if (!own.empty()) return own / "compiled";
  const fs::path caches = folder_of_variable("XDG_CACHE_HOME");
  if (caches.is_absolute()) return caches / "skein/compiled";  // others are to be ignored
  const fs::path home = folder_of_variable("HOME");
  if (!home.empty()) return home / ".cache/skein/compiled";
  log::warn(
      "compiled programs are not kept for the next start: neither SKEIN_CACHE nor HOME is set; "
      "set one of them, or device.compile_cache");
  return {};
}

SharedFiles files_of_bucket(const std::string& prefix) {
  const auto object = [prefix](const std::string& name) {
    return parse_object_url(prefix + "/" + name);
  };
  const auto read = [object](const std::string& name) -> std::optional<std::string> {
    try {
      return read_file_or_object(object(name).text(), int64_t{8} << 30);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kNotFound) return std::nullopt;
      throw;
    }
  };
  const auto write = [object](const std::string& name, std::string_view bytes) {
    put_object(object(name), bytes);
  };
  return {.place = prefix, .read = read, .write = write};
}

}  // namespace

CompilerSettings compiler_settings(const Config& config) {
  const DeviceConfig& device = config.device;
  CompilerSettings settings;
  settings.level = device.optimization_level;
  settings.timeout_s = device.compile_timeout_s;
  settings.executions_in_flight = device.executions_in_flight;
  settings.cache_bytes = static_cast<int64_t>(device.compile_cache_gb * 1e9);
  if (device.compile_cache == "off") return settings;
  const bool is_bucket = is_object_url(device.compile_cache);
  if (is_bucket) settings.shared = files_of_bucket(parse_object_url(device.compile_cache).text());
  settings.cache_folder =
      is_bucket || device.compile_cache.empty() ? default_folder() : fs::path(device.compile_cache);
  return settings;
}

}  // namespace skein
