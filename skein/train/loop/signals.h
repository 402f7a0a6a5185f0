// Requests to stop. SIGTERM, SIGUSR1, SIGHUP and a first SIGINT set a flag that the training loop
// reads between steps; it then saves and returns exit code 75. A SIGINT that comes a second or more
// after the first one ends the process at once, without saving: an earlier one is the first one
// again, as `timeout -s INT` sends it to a process and to its group. Both are answered on standard
// error where that is asked for, and the end without saving is written into events.jsonl. SIGHUP
// stays ignored if it was, as under nohup. SIGUSR2 comes from the supervisor, to take in another
// machine: exit code 76.
//
// Threads  the handler only stores to lock-free atomics, reads clocks and writes; requested() may
//          be called anywhere.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

#include "skein/record/log/unsaved_stop.h"

namespace skein {

// Handles these signals during its lifetime, then restores the former handlers. At most one
// instance at a time, since the flag is global.
class StopSignals {
 public:
  static constexpr size_t kCount = 5;

  struct Options {
    bool tells =
        false;         // SIGINT is answered at once on standard error, though a step may take long
    bool ends = true;  // a later SIGINT ends this process; false: its supervisor does that
  };
  StopSignals() : StopSignals(Options{}) {}
  explicit StopSignals(const Options& options);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that asked to stop, or 0.
  int requested() const;
  // What a second SIGINT tells: the newest complete checkpoint is of this step; 0: there is none.
  void note_saved(int64_t step);
  void note_step(int64_t step);  // the last one that was done
  // From here on the end without saving is written into this run's events.jsonl. Errors as
  // UnsavedStop.
  void record_in(const fs::path& run_dir);
  // All is saved: what ends the process from here on is no end without saving.
  void note_end();

 private:
  struct sigaction former_[kCount];
  std::optional<UnsavedStop> unsaved_stop_;
};

std::string signal_name(int signal);  // "SIGTERM"

}  // namespace skein
