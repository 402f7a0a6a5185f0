// Keeps a checkpoint from being removed while somebody reads it.
//
// Locks    flock on its manifest.json: shared by readers, exclusive for removal. The kernel
//          releases a dead process's locks. On a file system without locks, which is a warning,
//          and in a bucket nothing holds up a removal: a reader there gets kNotFound
// Errors   Error{kNotFound | kIo} naming the file; kNotFound also for a checkpoint that is being
//          removed.
// Threads  several threads may call open().
#pragma once

#include <optional>
#include <string>

#include "skein/checkpoint/format/stored_file.h"

namespace skein {

// While it lives the checkpoint stays readable and the same, even if its name goes to another
// folder.
class CheckpointHold {
 public:
  explicit CheckpointHold(const fs::path& checkpoint);

  // Opens one of its files for reading.
  StoredFile file(const std::string& name) const;
  // The same where it lies in a folder.
  FileDescriptor open(const std::string& name) const;

 private:
  fs::path path_;
  FileDescriptor folder_;
  FileDescriptor manifest_;
};

// The lock to hold while a checkpoint is removed; nothing if somebody reads it. A folder without
// manifest.json has no readers. Throws Error{kIo} where that cannot be found out.
std::optional<FileDescriptor> claim_for_removal(const fs::path& folder);

}  // namespace skein
