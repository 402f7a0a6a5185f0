// How ranks find each other: through records that all of them see, in a folder or in etcd
// (store/key_value_store.h). Each writes one to say that it is here; rank 0 reads these and writes
// one table that tells all. Where two ranks connect, each reads the other's addresses. One rank of
// a node reads for all (node_table.h).
//
//   arrived-00003     "<world size> <host> <network namespace>"
//   table             by rank 0: "<world size> <1 if all share a namespace> <a random number>", or
//                     what is wrong
//   addresses-00003   a line for each rank p: "<p> <where rank p reaches rank 3, in hex digits>"
//   cause-00003       why rank 3 ended the world
//
// Cost    of n ranks with c connections each: n small records. Rank 0 lists them and reads each
//         once; a node reads the table, and once each record that one of its ranks needs. Polls
//         become less and less frequent. A store that does not answer is asked again
// Errors  Error{kPeerLost} naming who did not arrive within start_timeout_s of construction;
//         Error{kUsage} for a rank that came twice, or with another world size; Error{kIo}
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skein/comm/communicator.h"
#include "skein/comm/gloo/node_table.h"
#include "skein/store/key_value_store.h"

namespace skein {

class Rendezvous {
 public:
  // Ranks with the same `host` (one running kernel) are one node.
  explicit Rendezvous(const WorldOptions& options, std::string host = this_host());
  static std::string this_host();

  // Publishes this rank and waits for all others. True if all share one network namespace, and so a
  // loopback interface.
  bool arrive();
  // Another one at each start, the same on all ranks that arrived.
  const std::string& world() const { return world_; }

  // The ranks of this host, ascending, this one among them; all of them after arrive().
  const std::vector<int>& of_this_host() const { return node_.members(); }

  // Where peers reach this rank, by peer.
  void publish_addresses(const std::map<int, std::vector<char>>& addresses);
  // Where this rank reaches `rank`; nothing if that rank has not published it yet.
  std::optional<std::vector<char>> address_of(int rank);
  // How often address_of() looked in the store.
  int64_t num_looks() const { return num_looks_; }

  // Publishes why this rank ended the world, for its peers' messages; only the first cause is kept.
  void publish_cause(const std::string& cause) noexcept;
  // The cause that `rank` published, if it appears within `moment`.
  std::optional<std::string> cause_of(int rank, std::chrono::milliseconds moment) const noexcept;

  std::chrono::milliseconds time_left() const;

  // "rank 2 of 4 did not arrive ..."
  std::string missing_text(const std::vector<int>& ranks) const;

 private:
  // The record, if there is one and the store answers.
  std::optional<std::string> look_up(const std::string& name);
  std::string own_arrival() const;  // what this rank's record says
  std::string collect();            // rank 0 builds the table
  [[noreturn]] void fail_missing();

  const WorldOptions options_;
  const std::string host_;
  const std::chrono::steady_clock::time_point deadline_;
  const std::shared_ptr<KeyValueStore> store_;
  NodeTable node_;
  std::map<int, std::vector<char>> addresses_;  // that were published
  std::string world_;
  std::string store_problem_;  // why it did not answer last
  int64_t num_looks_ = 0;
};

// Polls `done` now and then less and less often, down to 4 times a second; false at the deadline.
bool wait_until(const std::function<bool()>& done, std::chrono::steady_clock::time_point deadline);

}  // namespace skein
