// The signals that a supervisor waits for, held back from before its first worker starts until
// after the last has ended. One at a time, in the main thread; threads that start meanwhile have
// them blocked as well.
#pragma once

#include <csignal>

#include "skein/supervise/records.h"

namespace skein {

class BlockedSignals {
 public:
  // `wake`: another one to wait for, which a thread of this process sends.
  explicit BlockedSignals(int wake);
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals();

  // The mask of this process before, which its workers get.
  const sigset_t& former() const { return former_; }
  // The next signal, or 0 after `timeout`.
  int wait(Millis timeout) const;

 private:
  sigset_t waited_, former_;
  struct sigaction former_child_;
};

}  // namespace skein
