// Where the supervisors of a run meet. What it promises: a host's record is replaced as a whole,
// and a generation is created once.
//
// Threads  one at a time; a call may take as long as the store does
// Errors   Error{kIo}: it cannot be reached; Error{kInvalid}: what it holds is not a run's
#pragma once

#include <memory>
#include <string>

#include "skein/supervise/supervisor.h"

namespace skein {

class KeyValueStore;

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

// Of what all hosts see, a folder or etcd (store/key_value_store.h); docs/rendezvous_format.md.
//
//   host-<name>.json             replaced with every exchange
//   generation-<8 digits>.json   created once
//
// A record of another name, or of a host that cannot be read, is passed over and told of once; a
// generation that cannot be read, or is there no more, is an error.
std::unique_ptr<RendezvousStore> shared_store(std::shared_ptr<KeyValueStore> store);
// The newest generation there, if there is any.
std::optional<GenerationRecord> newest_generation(std::shared_ptr<KeyValueStore> store);

}  // namespace skein
