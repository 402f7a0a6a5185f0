// The connections of one process to all others: a full mesh of Gloo's TCP pairs, moved by Gloo's own
// thread, shared by all groups; and the end of the world, which is one for all groups.
//
// Threads   groups may be used by different threads
// Source    gloo/transport/unbound_buffer.h: sends and receives matched by (rank, slot)
#pragma once

#include <gloo/transport/context.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/comm/communicator.h"
#include "skein/comm/gloo/rendezvous.h"

namespace skein {

// Where a peer was lost, for the message.
struct LossReport {
  const Collective* collective = nullptr;
  std::string group;
  int peer = 0;  // in the group
  int world_peer = 0;
  bool timed_out = false;
  std::string transport;  // what Gloo says
};

class GlooWorld {
 public:
  // Meets all ranks. Errors: see make_world.
  explicit GlooWorld(const WorldOptions& options);

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  std::chrono::milliseconds timeout(const Collective& collective) const;

  // A buffer that reaches all memory: offsets are addresses.
  std::unique_ptr<gloo::transport::UnboundBuffer> new_buffer();

  // The same on every member, without asking: a hash of members, name and how often they met before.
  uint64_t new_group_id(const std::vector<int>& world_ranks, const std::string& name);

  void set_step(int64_t step) { step_ = step; }

  void check_alive() const;  // throws the cause of the end
  // Ends the world and throws why. The first cause stays.
  [[noreturn]] void lose(const LossReport& report);
  // Closes all connections: Gloo lets go of every buffer, and peers see it at once.
  void end(const std::string& cause) noexcept;

 private:
  void connect();
  std::string describe(const LossReport& report) const;

  const WorldOptions options_;
  Rendezvous rendezvous_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::atomic<int64_t> step_{-1};
  std::atomic<bool> ended_{false};
  mutable std::mutex mutex_;
  std::string cause_;
  std::map<std::string, int> meetings_;
  std::map<uint64_t, std::string> group_ids_;
};

}  // namespace skein
