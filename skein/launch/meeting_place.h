// Where the machines of a run meet, and who this one is there.
//
// Place   <rendezvous>/<start>/machines (supervise/store.h). A launcher names the start; machines
//         that are started by hand join the newest one that has not ended, or begin the next:
//         start-0001, start-0002, ...
// Name    SKEIN_NODE, or the node's name in Slurm (SLURMD_NODENAME), or the host name, with the
//         process and a random number: no two supervisors of a run ever have the same. Two on one
//         machine need different SKEIN_NODE
// Lock    a file of this machine's memory that workers hold open as well: whoever gets it knows
//         that no process of the supervisor before is left, and says so (HostRecord::succeeds)
// Errors  kUsage for a SKEIN_NODE that is no name; kBusy naming the process that holds the lock;
//         kIo; those of the store
#pragma once

#include <memory>
#include <string>

#include "skein/base/file.h"
#include "skein/store/key_value_store.h"

namespace skein {

class MeetingPlace {
 public:
  // `start_id`: of the launcher; empty: there is none.
  MeetingPlace(StoreRoot& rendezvous, const std::string& start_id);

  const std::string& start_id() const { return start_id_; }
  const std::shared_ptr<KeyValueStore>& store() const { return store_; }
  const std::string& host() const { return host_; }
  const std::string& succeeds() const { return succeeds_; }
  int lock() const { return lock_.get(); }

  // The run has ended here: nobody needs to speak for this supervisor any more.
  void leave();

 private:
  void choose_start(StoreRoot& rendezvous, const std::string& start_id);

  std::string start_id_;
  std::shared_ptr<KeyValueStore> store_;
  std::string host_, succeeds_;
  FileDescriptor lock_;
  fs::path lock_path_;
};

}  // namespace skein
