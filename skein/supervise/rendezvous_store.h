// Where the supervisors of a run meet. What it promises: a host's record is replaced as a whole,
// and a generation is created once. How they look at it so that a call costs the same however many
// hosts there are: digest.h.
//
// Threads  one at a time; a call may take as long as the store does
// Errors   Error{kIo}: it cannot be reached; Error{kInvalid}: what it holds is not a run's
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "skein/supervise/digest.h"

namespace skein {

class KeyValueStore;

// One exchange with the store.
struct StoreCall {
  HostRecord record;  // of this host
  bool writes = true;
  StoreRole role = StoreRole::kLead;
  Millis now = 0;  // of this host's clock
};

class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;

  // Replaces this host's record.
  virtual void publish(const HostRecord& record) = 0;
  // What the others have written, as `role` looks at it.
  virtual StoreView look(StoreRole role, Millis now) = 0;
  // True: it was created. False: there is one of this number already.
  virtual bool create(const GenerationRecord& generation) = 0;

  StoreView exchange(const StoreCall& call) {
    if (call.writes) publish(call.record);
    return look(call.role, call.now);
  }
};

// For a run on one machine: nobody else needs to see it.
std::unique_ptr<RendezvousStore> memory_store();

// The records of a rendezvous, each function one call on what holds them but where it says more.
// Errors  as RendezvousStore; nothing is returned only for a record that is not there
class RecordStore {
 public:
  virtual ~RecordStore() = default;

  virtual const std::string& text() const = 0;  // where they lie, for people
  virtual void write(const HostRecord& record) = 0;
  virtual void remove(const std::string& host) = 0;
  // A listing, and a call for each record but those of the hosts in `known`, with `after_each`
  // behind it. A host whose record is there and cannot be read now is added to `unread`; one whose
  // record is no record is passed over. Both are told of once.
  virtual std::vector<HostRecord> hosts(const std::set<std::string>& known,
                                        std::set<std::string>& unread,
                                        const std::function<void()>& after_each) = 0;
  virtual int64_t newest_number() = 0;  // of the generations, 0: there is none
  virtual SharedGeneration generation(int64_t number) = 0;
  virtual bool create(const GenerationRecord& generation) = 0;
  virtual std::optional<HostDigest> digest() = 0;
  virtual void write(const HostDigest& digest) = 0;
  virtual std::shared_ptr<const DigestList> digest_list() = 0;
  virtual void write(std::shared_ptr<const DigestList> list) = 0;
};

// The rendezvous of all that look at one store of records: the protocol of digest.h.
std::unique_ptr<RendezvousStore> digest_store(std::unique_ptr<RecordStore> records);

// Of what all hosts see, a folder or etcd (store/key_value_store.h); docs/rendezvous_format.md.
//
//   host-<name>.json             replaced with every exchange
//   generation-<8 digits>.json   created once
//   digest.json, digest-hosts.json
//
// A record of another name, or of a host that cannot be read, is passed over and told of once; so
// is a digest, which counts as missing. A generation that cannot be read, or is there no more, is
// an error.
std::unique_ptr<RecordStore> record_store(std::shared_ptr<KeyValueStore> store);
std::unique_ptr<RendezvousStore> shared_store(std::shared_ptr<KeyValueStore> store);
// The newest generation there, if there is any.
std::optional<GenerationRecord> newest_generation(std::shared_ptr<KeyValueStore> store);

}  // namespace skein
