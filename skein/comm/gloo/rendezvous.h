// How ranks find each other: through a folder that all of them see. Each writes a small file to say
// that it is here; rank 0 reads these and writes one table that tells all. Where two ranks connect,
// each reads its record in the other's file of addresses. One rank of a node reads for all
// (node_table.h).
//
//   arrived-00003     "<world size> <network namespace>"
//   table             by rank 0: "<world size> <1 if all share a namespace>", or what is wrong
//   addresses-00003   record p: where rank p reaches rank 3
//   cause-00003       why rank 3 ended the world
//
// Cost    of n ranks with c connections each: n small files. Rank 0 lists the folder and reads each
//         once; a node reads the table, and once each file that one of its ranks needs. Polls
//         become less and less frequent
// Errors  Error{kPeerLost} naming who did not arrive within start_timeout_s of construction;
//         Error{kUsage} for a rank that came twice, or with another world size; Error{kIo}
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/file.h"
#include "skein/comm/communicator.h"
#include "skein/comm/gloo/node_table.h"

namespace skein {

class Rendezvous {
 public:
  // Ranks with the same `host` (one running kernel) are one node.
  explicit Rendezvous(const WorldOptions& options, std::string host = this_host());
  static std::string this_host();

  // Publishes this rank and waits for all others. True if all share one network namespace, and so a
  // loopback interface.
  bool arrive();

  // Where peers reach this rank, by peer.
  void publish_addresses(const std::map<int, std::vector<char>>& addresses);
  // Where this rank reaches `rank`; nothing if that rank has not published it yet.
  std::optional<std::vector<char>> address_of(int rank);
  // How often address_of() looked in the folder.
  int64_t num_looks() const { return num_looks_; }

  // Publishes why this rank ended the world, for its peers' messages; only the first cause is kept.
  void publish_cause(const std::string& cause) noexcept;
  // The cause that `rank` published, if it appears within `moment`.
  std::optional<std::string> cause_of(int rank, std::chrono::milliseconds moment) const noexcept;

  std::chrono::milliseconds time_left() const;

  // "rank 2 of 4 did not arrive ..."
  std::string missing_text(const std::vector<int>& ranks) const;

 private:
  fs::path file_of(const char* kind, int rank) const;
  std::string collect() const;  // rank 0 builds the table
  [[noreturn]] void fail_missing() const;

  const WorldOptions options_;
  const std::string host_;
  const std::chrono::steady_clock::time_point deadline_;
  NodeTable node_;
  int64_t num_looks_ = 0;
};

// Polls `done` now and then less and less often, down to 4 times a second; false at the deadline.
bool wait_until(const std::function<bool()>& done, std::chrono::steady_clock::time_point deadline);

}  // namespace skein
