#include "skein/train/start/disk_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "skein/base/text/units.h"
#include "skein/objects/url.h"
#include "skein/plan/whole_run.h"

namespace skein {
namespace {

int64_t bytes_below(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code problem;
  for (auto entry = fs::recursive_directory_iterator(folder, problem);
       !problem && entry != fs::recursive_directory_iterator(); entry.increment(problem)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) bytes += static_cast<int64_t>(entry->file_size(ignored));
  }
  return bytes;
}

fs::path nearest_existing(fs::path folder) {
  std::error_code ignored;
  while (folder.has_relative_path() && !fs::exists(folder, ignored)) folder = folder.parent_path();
  return folder;
}

}  // namespace

int64_t disk_bytes_to_come(const fs::path& folder, int64_t disk_bytes, int64_t checkpoint_bytes) {
  return std::max(checkpoint_bytes, disk_bytes - bytes_below(folder));
}

std::string lack_of_disk(const Config& config, int64_t checkpoint_bytes) {
  if (is_object_url(checkpoint_dir(config))) return "";
  const fs::path folder = absolute_path(checkpoint_dir(config));
  std::error_code problem;
  const fs::space_info space = fs::space(nearest_existing(folder), problem);
  const int64_t at_once = checkpoints_at_once(config);
  const int64_t needed = disk_bytes_to_come(folder, at_once * checkpoint_bytes, checkpoint_bytes);
  if (problem || space.available >= static_cast<std::uintmax_t>(needed)) return "";
  return fmt::format(
      "checkpoint.dir is {}: {} are free there, and the run's checkpoints take {} more, up to {} "
      "of {} at once: make room, lower checkpoint.keep, or set checkpoint.dir to another disk, "
      "else a save will fail",
      folder.string(), format_bytes(static_cast<int64_t>(space.available)), format_bytes(needed),
      at_once, format_bytes(checkpoint_bytes));
}

}  // namespace skein
