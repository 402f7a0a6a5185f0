// A worker: a child process that runs this program again. One that stays when its generation is
// over (worker_orders.h) waits to be told of the next one.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

class WorkerProcess {
 public:
  struct Start {
    std::vector<std::string> arguments;    // without the program's name
    std::vector<std::string> environment;  // "NAME=value"; overrides this process's environment
    fs::path output;                       // file to append to; empty: this process's own output
    int output_file = -1;                  // one that is open, in its place
    sigset_t signal_mask;
    std::vector<int> inherited;  // files that the worker has open under the same numbers
    int wake = 0;                // it may stay: the signal that tells this process that it does
    bool own_group = false;      // signals of the terminal do not reach it
  };

  // Throws Error{kIo} naming the system call that failed.
  WorkerProcess(int rank, const Start& start);
  WorkerProcess(WorkerProcess&& other) noexcept;
  // Kills the worker if it still runs, and waits for its end.
  ~WorkerProcess();

  int rank() const { return rank_; }
  bool running() const { return pid_ > 0 && !stays_; }
  // It has left its generation, and waits.
  bool stays() const { return pid_ > 0 && stays_; }
  pid_t pid() const { return pid_; }
  void send(int signal) const;
  // Its end is not waited for, here or in the destructor.
  void let_go() { pid_ = -1; }
  // Returns the status of waitpid once after the worker ended, or left its generation as if it had;
  // nullopt otherwise.
  std::optional<int> poll();
  // Makes one that stays rank `rank` of the next generation, with what Start::environment of a new
  // one would be. False: it is gone, or says nothing for a second.
  bool go_on(int rank, const std::vector<std::string>& environment);

 private:
  std::optional<int> hear();
  bool is_ready();

  int rank_;
  pid_t pid_ = -1;
  FileDescriptor orders_;
  bool stays_ = false;
};

}  // namespace skein
