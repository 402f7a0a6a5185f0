// Requests to stop. SIGTERM, SIGUSR1, SIGHUP and a first SIGINT set a flag that the training loop
// reads between steps; it then saves and returns exit code 75. A second SIGINT ends the process at
// once. SIGHUP stays ignored if it was, as under nohup. SIGUSR2 comes from the supervisor, to take
// in another machine: the same with exit code 76.
//
// Threads  the handler only stores to a lock-free atomic; requested() may be called anywhere.
#pragma once

#include <csignal>
#include <string>

namespace skein {

// Handles these signals during its lifetime, then restores the former handlers. At most one
// instance at a time, since the flag is global.
class StopSignals {
 public:
  static constexpr size_t kCount = 5;

  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that asked to stop, or 0.
  int requested() const;

 private:
  struct sigaction former_[kCount];
};

std::string signal_name(int signal);  // "SIGTERM"

}  // namespace skein
