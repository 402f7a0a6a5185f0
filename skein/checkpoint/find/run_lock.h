// Allows one process at a time in a run folder, and in a folder of checkpoints, which several runs
// may name.
//
// Lock     an exclusive flock on <folder>/.lock, held while the RunLock lives and released by the
//          kernel however the process ends
// Beat     a second line, for file systems without locks or with locks that each machine grants for
//          itself: checkpoint/find/lock_beat.h. A start waits for it only where the holder before
//          was a process of another machine that did not end in order: 5 s
// Errors   Error{kBusy} naming the process and host that hold the folder; kIo | kNoSpace
#pragma once

#include <memory>

#include "skein/checkpoint/find/lock_beat.h"

namespace skein {

class RunLock {
 public:
  struct Wording {
    std::string folder = "run folder", key = "run.dir";  // what it is, and the key that names it
    std::string holder_note;   // added to what others are told about the holder
    bool names_holder = true;  // false: nothing is written, so that a full disk is no obstacle
  };

  // Creates the folder if it is missing.
  explicit RunLock(const fs::path& folder) : RunLock(folder, Wording{}) {}
  RunLock(const fs::path& folder, const Wording& text, const BeatTimes& times = {});

  // Throws Error{kBusy} where another process has taken the folder meanwhile. To be called before
  // each change that this other one must not see, such as the commit of a checkpoint.
  void require() const;

 private:
  std::string what_;  // "run folder runs/demo"
  FileDescriptor file_;
  std::unique_ptr<LockBeat> beat_;  // ends before the lock does; null: it names no holder
};

// Who holds a run folder, as far as this machine can tell without taking the lock.
enum class RunHolder {
  kNobody,
  kThisMachine,  // a living process
  kUnknown,      // the last holder was a process of another machine
};
RunHolder run_holder(const fs::path& folder);

}  // namespace skein
