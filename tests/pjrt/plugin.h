// The PJRT plugins that tests run on.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace skein::pjrt_test {

// SKEIN_PJRT_PLUGIN, or the one that scripts/test_tools.sh unpacked in `sources`; "": there is
// none.
inline std::string plugin_path(const std::filesystem::path& sources) {
  const char* given = std::getenv("SKEIN_PJRT_PLUGIN");
  if (given != nullptr && *given != '\0') return given;
  const std::filesystem::path unpacked =
      sources /
      ".deps/lammps-jax-pjrt-cpu-plugin-0.11.2/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so";
  return std::filesystem::exists(unpacked) ? unpacked.string() : "";
}

// The plugin of tests/pjrt/faulty_plugin, beside the program that runs; "": it was not built.
inline std::string faulty_plugin() {
  const std::filesystem::path plugin =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "skein_faulty_pjrt_plugin.so";
  return std::filesystem::exists(plugin) ? plugin.string() : "";
}

}  // namespace skein::pjrt_test
