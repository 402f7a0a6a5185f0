// Asks to stop: SIGTERM, SIGUSR1 and a first SIGINT set a flag that the training loop looks at
// between steps, to save and return exit code 75. A second SIGINT ends the process at once.
//
// Threads  the handler only stores to a lock-free atomic; requested() may be called anywhere.
#pragma once

#include <csignal>
#include <string>

namespace skein {

// Handles the three signals while it lives, then puts the former handlers back. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that asked to stop, or 0.
  int requested() const;

 private:
  struct sigaction former_[3];
};

std::string signal_name(int signal);  // "SIGTERM"

}  // namespace skein
