// One process at a time in a run folder, and in a folder of checkpoints, which several run folders
// may name: an exclusive flock on <folder>/.lock, held for as long as the RunLock lives and given
// up by the kernel when the process dies, however it dies.
#pragma once

#include "skein/base/file.h"

namespace skein {

class RunLock {
 public:
  struct Text {
    std::string folder = "run folder", key = "run.dir";  // what it is, and what names it
    std::string holder_note;  // added to what others are told of the holder
  };

  // Creates the folder where it is missing. Throws Error{kBusy} naming the process and host that
  // hold it.
  explicit RunLock(const fs::path& folder) : RunLock(folder, Text{}) {}
  RunLock(const fs::path& folder, const Text& text);

 private:
  FileDescriptor file_;
};

// Who holds a run folder, as far as this machine can tell without taking the lock itself.
enum class RunHolder {
  kNobody,
  kThisMachine,  // a process that lives
  kUnknown,      // the last one was a process of another machine
};
RunHolder run_holder(const fs::path& folder);

}  // namespace skein
