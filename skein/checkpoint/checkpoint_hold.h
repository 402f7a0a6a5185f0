// Between those who read a checkpoint and the one who removes it: a checkpoint that is being read
// is left where it is.
//
// Locks    flock on its manifest.json: shared by readers, exclusive for removal. The kernel gives a
//          dead process's up. Where the file system has no locks, nobody is held up by them
// Errors   Error{kNotFound | kIo} naming the file; kNotFound also for a checkpoint that is just
//          being removed.
// Threads  open() may be called by several.
#pragma once

#include <optional>
#include <string>

#include "skein/base/file.h"

namespace skein {

// Readable for as long as it lives, and the same, even if its name goes to another folder.
class CheckpointHold {
 public:
  explicit CheckpointHold(const fs::path& checkpoint);

  // A file of it, to read.
  FileDescriptor open(const std::string& name) const;

 private:
  fs::path path_;
  FileDescriptor folder_;
  FileDescriptor manifest_;
};

// What has to be held while a checkpoint is removed; nothing where somebody reads it. A folder
// without manifest.json is read by nobody.
std::optional<FileDescriptor> claim_for_removal(const fs::path& folder);

}  // namespace skein
