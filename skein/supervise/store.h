// Where the supervisors of a run meet. What it promises: a host's record is replaced as a whole,
// and a generation is created once.
//
// Threads  one at a time; a call may take as long as the store does
// Errors   Error{kIo}: it cannot be reached; Error{kInvalid}: what it holds is not a run's
#pragma once

#include <memory>
#include <string>

#include "skein/base/file.h"
#include "skein/supervise/supervisor.h"

namespace skein {

class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;

  // Replaces this host's record, then reads everything.
  virtual StoreView exchange(const HostRecord& record) = 0;
  // True: it was created. False: there is one of this number already.
  virtual bool create(const GenerationRecord& generation) = 0;
};

// For a run on one machine: nobody else needs to see it.
std::unique_ptr<RendezvousStore> memory_store();

// A folder that all hosts see, such as one on NFS or Lustre; docs/rendezvous_format.md.
//
//   host-<name>.json             replaced by rename
//   generation-<8 digits>.json   made by link, which fails where there is one, also over NFS
//
// All lie in one folder, so that a host's own write makes its network file system look again at
// what the others have written. A file of another name, or a host record that cannot be read, is
// passed over and told of once; a generation that cannot be read is an error.
std::unique_ptr<RendezvousStore> folder_store(const fs::path& folder);
// The newest generation in such a folder, if there is any.
std::optional<GenerationRecord> newest_generation(const fs::path& folder);

}  // namespace skein
