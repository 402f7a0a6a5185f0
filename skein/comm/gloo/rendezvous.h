// How ranks find each other: a folder that all see, through Gloo's FileStore. Each publishes that it
// is here, then its addresses, and, if it ends the world, why.
//
// Errors  Error{kPeerLost} naming who did not come within start_timeout_s of construction;
//         Error{kUsage} for a rank that came twice, or with another world size; Error{kIo}
#pragma once

#include <gloo/rendezvous/file_store.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/comm/communicator.h"

namespace skein {

class Rendezvous {
 public:
  explicit Rendezvous(const WorldOptions& options);

  // Publishes this rank and waits for all. True if all share one network namespace, and so loopback.
  bool arrive();

  void publish_addresses(const std::vector<char>& bytes);
  std::vector<char> wait_for_addresses(int rank);

  // Why this rank ended the world, for its peers' messages; only the first is kept.
  void publish_cause(const std::string& cause) noexcept;
  // What `rank` published, if it does within a moment.
  std::optional<std::string> cause_of(int rank) noexcept;

  std::chrono::milliseconds time_left() const;

 private:
  struct Store : gloo::rendezvous::FileStore {
    using FileStore::FileStore;
    bool has(const std::string& key) { return check({key}); }
  };

  bool wait_for(const std::string& key);  // false at the deadline
  [[noreturn]] void fail_missing(int first_missing, const char* kind);

  const WorldOptions options_;
  const std::chrono::steady_clock::time_point deadline_;
  std::unique_ptr<Store> store_;
};

}  // namespace skein
