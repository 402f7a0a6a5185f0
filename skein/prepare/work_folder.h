// The folder in which a command keeps what it has finished, until all of it is: `<out>.work`. A
// command that was killed finds it again. One process at a time holds it, by a flock on its file
// `lock`, which the kernel releases when the process ends, however that happens.
//
// Errors   Error{kBusy} if another process holds it, Error{kIo | kNoSpace | kNotFound} otherwise,
//          all naming the folder
#pragma once

#include "skein/base/file.h"

namespace skein {

// The work folder of an output: `<out>.work`.
fs::path work_folder_of(const fs::path& out);

class WorkFolder {
 public:
  explicit WorkFolder(const fs::path& folder);  // makes it, unless it is there
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder();  // removes a folder in which nothing is kept

  const fs::path& path() const { return folder_; }

 private:
  fs::path folder_;
  FileDescriptor lock_;
};

}  // namespace skein
