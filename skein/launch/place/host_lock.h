// Who this machine is among those of a run, and that it has that name alone.
//
// Taken before a start makes anything where the machines meet: one that is refused has left no
// trace, and removes nothing of the one that it met.
// Name    SKEIN_NODE, or the node's name in Slurm (SLURMD_NODENAME), or the host name, with the
//         process and a random number: no two supervisors of a run ever have the same. Two on one
//         machine need different SKEIN_NODE
// Lock    a file of this machine's memory that workers hold open as well: whoever gets it knows
//         that no process of the supervisor before is left, and says so (HostRecord::succeeds). It
//         is waited for 10 s long. It lies in a folder of this user alone (base/shared/own_file.h),
//         and its text counts only where it is a name that this node gives
// Errors  kUsage for a SKEIN_NODE that is no name; kBusy naming the process that holds the lock;
//         kIo, which names the owner of a folder or file that is not this user's
#pragma once

#include <string>

#include "skein/base/shared/own_file.h"

namespace skein {

class HostLock {
 public:
  // `rendezvous`: where the run meets, as rendezvous_text says it. `start_id`: of the launcher;
  // empty: there is none, and one lock is for all starts.
  HostLock(const std::string& rendezvous, const std::string& start_id);
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;
  // Removes the file: nobody needs to speak for a supervisor that ends in order.
  ~HostLock();

  const std::string& host() const { return host_; }
  const std::string& succeeds() const { return succeeds_; }
  int file() const { return file_.get(); }

 private:
  std::string host_, succeeds_, name_;
  OwnFolder folder_;
  FileDescriptor file_;
};

}  // namespace skein
