// One worker: this program, started again as a child.
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
    std::vector<std::string> environment;  // "NAME=value", over this process's own
    fs::path output;                       // appended to; empty: this process's own
    sigset_t signal_mask;
  };

  // Errors  kIo naming what the system refused
  WorkerProcess(int rank, const Start& start);
  WorkerProcess(WorkerProcess&& other) noexcept;
  // Kills and waits where it still runs.
  ~WorkerProcess();

  int rank() const { return rank_; }
  bool running() const { return pid_ > 0; }
  void send(int signal) const;
  // Its status, as of waitpid, once; nothing while it runs.
  std::optional<int> poll();

 private:
  int rank_;
  pid_t pid_ = -1;
};

}  // namespace skein
