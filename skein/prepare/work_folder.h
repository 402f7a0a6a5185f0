// The folder in which a command keeps what it has finished, until all of it is: `<out>.work`. A
// command that was killed finds it again.
//
// One process holds it alone, or several hold a share each: by flocks on its files `lock` and
// `lock-<i>-of-<n>`, which the kernel releases when a process ends, however that happens. They
// spare work, and no more than that: what is written there is whole from the moment that it has
// its name (piece_file.h), so that nothing breaks on a file system whose machines do not see each
// other's locks, or that has none, which is a warning.
//
// Errors   Error{kBusy} if another process holds it, Error{kIo | kNoSpace | kNotFound} otherwise,
//          all naming the folder
#pragma once

#include <cstdint>
#include <optional>

#include "skein/base/files/file.h"

namespace skein {

// The part of the work that one machine does: every `count`th piece, from the one at `index`.
struct WorkShare {
  int64_t index = 0, count = 1;
};

// The work folder of an output: `<out>.work`.
fs::path work_folder_of(const fs::path& out);

class WorkFolder {
 public:
  // Makes it, unless it is there, and holds the share, or all of it.
  explicit WorkFolder(const fs::path& folder, const std::optional<WorkShare>& share = {});
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder();  // removes a folder in which nothing is kept, where it was held alone

  const fs::path& path() const { return folder_; }

 private:
  fs::path folder_;
  bool is_shared_;
  FileDescriptor lock_, share_lock_;
};

}  // namespace skein
