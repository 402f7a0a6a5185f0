#include "skein/config/sweep_folder.h"

#include <fmt/format.h>

namespace skein {

std::string sweep_advice(const fs::path& folder) {
  std::error_code ignored;
  const fs::path first = folder / "0000";
  if (!fs::exists(first / "config.toml", ignored)) return "";
  return fmt::format("; it holds the runs of a sweep: name one, such as {}", first.string());
}

}  // namespace skein
