// A worker: a child process that runs this program again.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/file.h"

namespace skein {

class WorkerProcess {
 public:
  struct Start {
    std::vector<std::string> arguments;    // without the program's name
    std::vector<std::string> environment;  // "NAME=value"; overrides this process's environment
    fs::path output;                       // file to append to; empty: this process's own output
    sigset_t signal_mask;
    std::vector<int> inherited;  // files that the worker has open under the same numbers
  };

  // Throws Error{kIo} naming the system call that failed.
  WorkerProcess(int rank, const Start& start);
  WorkerProcess(WorkerProcess&& other) noexcept;
  // Kills the worker if it still runs, and waits for its end.
  ~WorkerProcess();

  int rank() const { return rank_; }
  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  void send(int signal) const;
  // Returns the status of waitpid once after the worker ended; nullopt otherwise.
  std::optional<int> poll();

 private:
  int rank_;
  pid_t pid_ = -1;
};

}  // namespace skein
