// A foreign program in namespaces of its own: user, mount, pid, network, IPC, host name and control
// groups. It is the first process of its pid namespace, so that all that it starts ends with it.
//
// Rights   a user without capabilities, no_new_privs, a filter of system calls
//          (system_call_filter.h). If this process runs as root, the program is user 65534 of this
//          machine, where there is such a user; else it is this process's own user
// Files    those of sandbox_root.h; open are its five files, and none of this process's
// Ends     with this process, whatever ends that: PR_SET_PDEATHSIG
// Cost     2 to 3 ms until the program begins, whatever the memory of this process (AMD EPYC)
// Errors   kUnsupported, with what to do, if the kernel refuses a namespace, a mount or the filter;
//          kIo for others
// Threads  of several at once; each has a thread that waits for its process
// Source   namespaces(7), user_namespaces(7), pivot_root(2), seccomp(2)
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/evaluate/execution/sandbox_root.h"

namespace skein {

struct ConfinedLimits {
  int64_t memory_bytes = int64_t{1} << 30;      // of each process: its address space
  int64_t num_processes = 32;                   // and threads, of all processes together
  int64_t file_bytes = int64_t{16} << 20;       // of each file
  int64_t temporary_bytes = int64_t{64} << 20;  // of /tmp
  int64_t num_files = 64;                       // open at once, of each process
  int64_t processor_seconds = 10;               // of each process
};

struct ConfinedStart {
  std::string executable;
  std::vector<std::string> arguments;  // with the name of the program
  std::vector<std::string> environment;
  std::array<int, 5> files;  // of this process; they are 0 to 4 of the program
};

class ConfinedProcess {
 public:
  // Returns when the program has begun.
  ConfinedProcess(const SandboxRoot& root, const ConfinedLimits& limits, ConfinedStart start);
  ConfinedProcess(const ConfinedProcess&) = delete;
  ConfinedProcess& operator=(const ConfinedProcess&) = delete;
  // Kills all processes of the namespace, and returns when there are none.
  ~ConfinedProcess();

 private:
  struct Beginning;
  static void make_and_wait(std::shared_ptr<Beginning> beginning);

  FileDescriptor process_;
  std::thread waiter_;
};

}  // namespace skein
