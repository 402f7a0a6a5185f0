// Requests to stop. SIGTERM, SIGUSR1, SIGHUP and a first SIGINT set a flag that the training loop
// reads between steps; it then saves and returns exit code 75. A second SIGINT ends the process at
// once. Both are answered on standard error where that is asked for. SIGHUP stays ignored if it
// was, as under nohup. SIGUSR2 comes from the supervisor, to take in another machine: exit code 76.
//
// Threads  the handler only stores to lock-free atomics and writes; requested() may be called
//          anywhere.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>

namespace skein {

// Handles these signals during its lifetime, then restores the former handlers. At most one
// instance at a time, since the flag is global.
class StopSignals {
 public:
  static constexpr size_t kCount = 5;

  // `tells`: who presses Ctrl-C is told at once what follows, though a step may take long.
  explicit StopSignals(bool tells = false);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that asked to stop, or 0.
  int requested() const;
  // What a second SIGINT tells: the newest complete checkpoint is of this step; 0: there is none.
  void note_saved(int64_t step);

 private:
  struct sigaction former_[kCount];
};

std::string signal_name(int signal);  // "SIGTERM"

}  // namespace skein
