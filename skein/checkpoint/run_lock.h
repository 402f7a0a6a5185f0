// One process at a time in a run folder: an exclusive flock on <folder>/.lock, held for as long as
// the RunLock lives and given up by the kernel when the process dies, however it dies.
#pragma once

#include "skein/base/file.h"

namespace skein {

class RunLock {
 public:
  // Creates the folder where it is missing. Throws Error{kBusy} naming the process and host that
  // hold it.
  explicit RunLock(const fs::path& folder);

 private:
  FileDescriptor file_;
};

}  // namespace skein
