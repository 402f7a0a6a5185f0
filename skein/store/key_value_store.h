// Small records that all machines of a run see, by name: in a folder that they share, or in etcd.
// What lies in one place (a start of the run, the ranks of one generation) is removed together.
//
//   folder   a place is a folder, a record a file: replaced by rename, created by link, which fails
//            where there is one, also over NFS; docs/rendezvous_format.md
//   etcd     a place is a prefix of keys. All of its records hang on one lease, which every call of
//            write() keeps, so that what a dead run left vanishes after kLeaseSeconds. The lease
//            only cleans up: nobody concludes from it whether a machine lives (membership.h)
// A third kind is a StoreRoot and a line in store_root.
//
// Names    letters, digits, '-', '_' and '.'; places may have '/' in between
// Threads  any; a call of etcd takes at most kCallSeconds, one of a folder as long as its file
//          system does
// Errors   Error{kIo}: it cannot be reached; Error{kInvalid}: what it holds is not a run's
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/threads/mutex.h"
#include "skein/store/etcd_access.h"

namespace skein {

class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  // For people: "runs/demo/rendezvous/start-0001", "etcd://host:2379/demo/start-0001".
  virtual const std::string& text() const = 0;

  // Nothing: there is no such record.
  virtual std::optional<std::string> read(const std::string& name) = 0;
  // Of all records whose name begins with `prefix`, in order.
  virtual std::vector<std::string> names(const std::string& prefix) = 0;
  // Calls `visit` for each of the same records but those in `known`, in order, as soon as it is
  // read: with its value, Error{kIo} where it cannot be read now, Error{kInvalid} where it is not
  // what a record should be. Throws what keeps all of them from being read.
  using Visit = std::function<void(const std::string& name, Result<std::string> value)>;
  virtual void visit(const std::string& prefix, const std::set<std::string>& known,
                     const Visit& visit) = 0;
  // The values of visit(). What cannot be read is passed over, and told of once.
  std::map<std::string, std::string> entries(const std::string& prefix,
                                             const std::set<std::string>& known = {});
  // Readers see the old value or the new one.
  virtual void write(const std::string& name, const std::string& value) = 0;
  // True: it was created. False: there is one of this name already.
  virtual bool create(const std::string& name, const std::string& value) = 0;
  virtual void remove(const std::string& name) = 0;
  // The place and all that is in it; nothing where it is not there.
  virtual void remove_all() = 0;

 private:
  Mutex mutex_;
  std::set<std::string> told_ SKEIN_GUARDED_BY(mutex_);  // records that were passed over
};

class StoreRoot {
 public:
  virtual ~StoreRoot() = default;

  virtual const std::string& text() const = 0;
  // Asks a service whether this run may use it, and changes nothing there. Error{kUsage}: it may
  // not, for want of a certificate, a user or a right.
  virtual void check() {}
  // The first parts of the names of all places, in order.
  virtual std::vector<std::string> places() = 0;
  // Begins the place where there is none. Throws Error{kNotFound} for a place whose lease is over.
  virtual std::unique_ptr<KeyValueStore> open(const std::string& place) = 0;
};

// Where the store fails, what lies there goes with its lease.
void remove_place(StoreRoot& root, const std::string& place) noexcept;

constexpr int64_t kMaxValueBytes = 16 << 20;      // a generation of 100,000 hosts
constexpr int64_t kLeaseSeconds = 7 * 24 * 3600;  // longer than any outage that a run survives
constexpr double kCallSeconds = 5;

bool is_etcd_address(const std::string& rendezvous);       // etcd:// or etcds://
bool is_encrypted_address(const std::string& rendezvous);  // etcds://
// Of "etcd://host:port[,host:port...]/prefix", the same of etcds://, or of a folder. Does not reach
// for it yet. Error{kUsage}: none of them.
std::unique_ptr<StoreRoot> store_root(const std::string& rendezvous, const EtcdAccess& access = {});

// What store_root chooses from.
std::unique_ptr<StoreRoot> folder_root(const fs::path& folder);
std::unique_ptr<StoreRoot> etcd_root(const std::string& address, const EtcdAccess& access);

// The records of one folder, by itself.
std::unique_ptr<KeyValueStore> folder_store(const fs::path& folder);

}  // namespace skein
