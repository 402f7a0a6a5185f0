// Allows one process at a time in a run folder, and in a folder of checkpoints, which several runs
// may name: an exclusive flock on <folder>/.lock, held while the RunLock lives and released by the
// kernel however the process ends.
#pragma once

#include "skein/base/file.h"

namespace skein {

class RunLock {
 public:
  struct Text {
    std::string folder = "run folder", key = "run.dir";  // what it is, and the key that names it
    std::string holder_note;   // added to what others are told about the holder
    bool names_holder = true;  // false: nothing is written, so that a full disk is no obstacle
  };

  // Creates the folder if it is missing. Throws Error{kBusy} naming the process and host that hold
  // it.
  explicit RunLock(const fs::path& folder) : RunLock(folder, Text{}) {}
  RunLock(const fs::path& folder, const Text& text);

 private:
  FileDescriptor file_;
};

// Who holds a run folder, as far as this machine can tell without taking the lock.
enum class RunHolder {
  kNobody,
  kThisMachine,  // a living process
  kUnknown,      // the last holder was a process of another machine
};
RunHolder run_holder(const fs::path& folder);

}  // namespace skein
