// The check of this machine before a generation, as a process of its own: this program again, so
// that whatever it meets, a crash or a read that never returns, harms nobody else.
//
// In     `skein check --short` (cli/commands/check_command.cc): a line a check, its name as it
//        begins and the outcome behind it; exit code 0 where nothing is wrong
// Out    what is wrong, for people: the lines of checks that failed, or where the process was
//        killed; else why it could not be made, which says nothing of the machine
// Memory the output, in a file without a name: no storage is touched on this side
// Errors kIo where the process cannot be started
#pragma once

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/launch/node/worker_process.h"

namespace skein {

struct CheckOutcome {
  std::string problem;  // what is wrong with the machine; "": nothing
  std::string unmade;   // why it could not be checked; "": it was
  bool operator==(const CheckOutcome&) const = default;
};

class HostCheck {
 public:
  // `arguments`: of the program, without its name.
  HostCheck(int64_t number, const std::vector<std::string>& arguments, const sigset_t& signal_mask);

  // Kills it, and does not wait: what hangs in the kernel ends when that lets go.
  ~HostCheck();
  HostCheck(const HostCheck&) = delete;
  HostCheck& operator=(const HostCheck&) = delete;

  pid_t pid() const { return process_->pid(); }
  int64_t number() const { return number_; }
  void kill() const { process_->send(SIGKILL); }
  // What it found, once it has ended; nullopt before and after.
  std::optional<CheckOutcome> poll();

 private:
  int64_t number_;
  FileDescriptor output_;
  std::unique_ptr<WorkerProcess> process_;
};

// What the output and the status of waitpid say.
CheckOutcome outcome_of(const std::string& output, int status);

}  // namespace skein
