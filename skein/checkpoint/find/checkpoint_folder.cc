#include "skein/checkpoint/find/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/checkpoint/find/hold.h"
#include "skein/checkpoint/find/objects.h"
#include "skein/objects/url.h"

namespace skein {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr size_t kStepDigits = 8;
constexpr std::string_view kPartial = ".partial", kDeleting = ".deleting", kFailed = ".failed";

std::vector<fs::path> folder_entries(const fs::path& dir) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(dir, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error && !is_absence(error.value())) {
    fail(errno_code(error.value()), "cannot list {}: {}", dir.string(), errno_text(error.value()));
  }
  return entries;
}

// Whether `name` is a checkpoint's name plus `suffix`, such as "step-00000010.partial".
bool is_unfinished(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) &&
         parse_checkpoint_name(name.substr(0, name.size() - suffix.size()));
}

// "step-00000010.x.partial": a save of several ranks.
bool is_shared_save(std::string_view name) {
  return (name.ends_with(kPartial) || name.ends_with(kFailed)) &&
         parse_checkpoint_name(name.substr(0, name.find('.')));
}

void remove_unless_read(const fs::path& path, const FileOps& ops) {
  if (const auto claim = claim_for_removal(path)) ops.remove_tree(path);
}

}  // namespace

std::string checkpoint_name(int64_t step) { return fmt::format("step-{:08d}", step); }

std::optional<int64_t> parse_checkpoint_name(std::string_view folder) {
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  folder.remove_prefix(kPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(folder.data(), folder.data() + folder.size(), step);
  if (error != std::errc() || end != folder.data() + folder.size() || step < 0) return std::nullopt;
  if (folder.size() < kStepDigits || (folder.size() > kStepDigits && folder[0] == '0')) {
    return std::nullopt;
  }
  return step;
}

std::optional<int64_t> step_of_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  return parse_checkpoint_name(
      is_unfinished(name, kReplacedEnding)
          ? std::string_view(name).substr(0, name.size() - kReplacedEnding.size())
          : std::string_view(name));
}

fs::path find_checkpoint(const fs::path& path) {
  if (is_object_url(path)) return parse_object_url(path.native()).text();
  const fs::path named = (path / "").parent_path();  // without a trailing slash
  const fs::path replaced = named.string() + std::string(kReplacedEnding);
  return step_of_folder(named) && !is_folder_there(named) && is_folder_there(replaced) ? replaced
                                                                                       : path;
}

std::vector<CheckpointInfo> list_checkpoints(const fs::path& dir) {
  if (is_object_url(dir)) return list_checkpoint_objects(dir);
  std::vector<CheckpointInfo> found;
  for (const fs::path& path : folder_entries(dir)) {
    const std::optional<int64_t> step = step_of_folder(path);
    if (step && is_folder_there(path)) found.push_back({*step, path});
  }
  // If a step has two folders, prefer the one with its proper name, which is the shorter one.
  std::sort(found.begin(), found.end(), [](const CheckpointInfo& a, const CheckpointInfo& b) {
    return a.step != b.step ? a.step > b.step : a.path < b.path;
  });
  const auto same_step = [](const CheckpointInfo& a, const CheckpointInfo& b) {
    return a.step == b.step;
  };
  found.erase(std::unique(found.begin(), found.end(), same_step), found.end());
  return found;
}

void clean_unfinished(const fs::path& dir, const FileOps& ops, const fs::path& keep) {
  if (is_object_url(dir)) return clean_unfinished_objects(dir, ops, keep);
  for (const fs::path& path : folder_entries(dir)) {
    const std::string name = path.filename().string();
    if (name == keep.filename()) continue;
    if (is_unfinished(name, kReplacedEnding)) {
      const fs::path original = dir / name.substr(0, name.size() - kReplacedEnding.size());
      if (!is_there(original)) {
        ops.rename(path, original);
        ops.sync_folder(dir);
      } else {
        remove_unless_read(path, ops);
      }
    } else if (is_unfinished(name, kPartial) || is_unfinished(name, kDeleting) ||
               is_shared_save(name)) {
      remove_unless_read(path, ops);
    }
  }
}

bool remove_checkpoint(const CheckpointInfo& checkpoint, const FileOps& ops) {
  if (is_object_url(checkpoint.path)) {
    remove_checkpoint_objects(checkpoint.path, ops);
    return true;
  }
  const auto claim = claim_for_removal(checkpoint.path);
  if (!claim) return false;
  const fs::path deleting = checkpoint.path.string() + std::string(kDeleting);
  ops.remove_tree(deleting);
  ops.rename(checkpoint.path, deleting);
  ops.sync_folder(parent_folder(checkpoint.path));
  ops.remove_tree(deleting);
  return true;
}

}  // namespace skein
