#include "skein/checkpoint/save/commit.h"

#include <utility>

#include "skein/base/files/open_file.h"
#include "skein/checkpoint/find/hold.h"

namespace skein {

std::optional<Error> commit_folder(const fs::path& partial, const fs::path& path,
                                   const FileOps& ops) {
  fs::path old;  // where the replaced checkpoint is afterwards
  if (!is_there(path)) {
    ops.rename(partial, path);
  } else if (ops.exchange(partial, path)) {
    old = partial;
  } else {
    old = path.string() + std::string(kReplacedEnding);
    ops.remove_tree(old);
    ops.rename(path, old);
    try {
      ops.rename(partial, path);
    } catch (const Error&) {
      ops.rename(old, path);
      throw;
    }
  }
  // The old checkpoint is kept until the rename is durable.
  try {
    ops.sync_folder(parent_folder(path));
    if (old.empty()) return std::nullopt;
    if (const auto claim = claim_for_removal(old)) ops.remove_tree(old);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

std::vector<CheckpointInfo> select_expired(std::vector<CheckpointInfo> newest_first,
                                           int64_t committed_step, const RetentionPolicy& policy,
                                           std::optional<int64_t> best_step) {
  if (policy.keep <= 0) return {};
  std::erase_if(newest_first,
                [&](const CheckpointInfo& info) { return info.step > committed_step; });
  std::vector<CheckpointInfo> expired;
  for (size_t i = static_cast<size_t>(policy.keep); i < newest_first.size(); ++i) {
    const int64_t step = newest_first[i].step;
    const bool permanent =
        policy.permanent_every_steps > 0 && step % policy.permanent_every_steps == 0;
    if (!permanent && step != best_step) expired.push_back(std::move(newest_first[i]));
  }
  return expired;
}

}  // namespace skein
