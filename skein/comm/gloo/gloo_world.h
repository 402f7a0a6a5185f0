// The connections of one process, shared by all its groups: Gloo's TCP pairs, which Gloo's own
// thread serves and which are made when a group first needs them. Between ranks of one host that
// have a secret, messages go through shared memory (shared_memory/exchange.h), and the pair carries
// the proof and tells of the peer's end. Also ends the world, for all groups at once.
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
#include "skein/base/threads/mutex.h"
#include "skein/comm/channel.h"
#include "skein/comm/communicator.h"
#include "skein/comm/gloo/proof.h"
#include "skein/comm/gloo/rendezvous.h"
#include "skein/comm/shared_memory/exchange.h"

namespace skein {

// Where a peer was lost, for the error message.
struct LossReport {
  const Collective* collective = nullptr;
  std::string group;
  int peer = 0;  // in the group
  int world_peer = 0;
  bool timed_out = false;
  std::string mismatch;   // what it sent instead
  std::string transport;  // what the channel says
};

class GlooWorld {
 public:
  // Meets all ranks but connects with none. Errors: see make_world.
  explicit GlooWorld(const WorldOptions& options);

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  std::chrono::milliseconds timeout(const Collective& collective) const;

  // To a connected rank, through shared memory where both can; `id` is the same at both ends.
  std::unique_ptr<Channel> new_channel(int world_rank, uint64_t id);
  bool shares_memory(int world_rank) const { return exchange_ && exchange_->reaches(world_rank); }
  // A buffer that covers all memory: offsets are addresses.
  std::unique_ptr<gloo::transport::UnboundBuffer> new_buffer();

  // An id that every member computes alone and equally: a hash of the members, the name, and how
  // often such a group was made before.
  uint64_t new_group_id(const std::vector<int>& world_ranks, const std::string& name);

  // Connects with those of `world_ranks` that are not connected yet; they must do the same. The
  // addresses for all of them are published first, so ranks may call in any order. Returns once
  // each has proven to know the secret, if there is one; else ends the world. `loss` is reported
  // for a rank that does not connect; without a collective in it, the rank counts as not arrived.
  void connect(const std::vector<int>& world_ranks, LossReport loss = {});
  bool is_connected(int world_rank) const {
    return connected_[static_cast<size_t>(world_rank)].load(std::memory_order_acquire);
  }
  int num_connections() const { return num_connections_; }

  void set_step(int64_t step) { step_ = step; }

  void check_alive() const;  // throws the cause with which the world ended
  // Ends the world and throws the cause. The first cause is kept.
  [[noreturn]] void lose(const LossReport& report);
  // Closes all connections: Gloo no longer uses any buffer, and peers notice at once.
  void end(const std::string& cause) noexcept;

 private:
  void publish(const std::vector<int>& world_ranks) SKEIN_REQUIRES(connecting_);
  void connect(int world_rank, LossReport& loss) SKEIN_REQUIRES(connecting_);
  void require_proof(int world_rank, LossReport& loss) SKEIN_REQUIRES(connecting_);
  void offer_memory();
  bool open_memory(int world_rank, const std::optional<MemoryOffer>& offer)
      SKEIN_REQUIRES(connecting_);
  bool is_on_this_host(int world_rank) const;
  void say_why_not(int world_rank, const std::string& why);  // once
  std::chrono::milliseconds patience(const LossReport& loss) const;
  std::string describe(const LossReport& report) const;

  const WorldOptions options_;
  Rendezvous rendezvous_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::unique_ptr<Exchange> exchange_;  // null: every message goes over Gloo
  Mutex connecting_;                    // held while pairs are made, by one thread at a time
  std::vector<bool> published_ SKEIN_GUARDED_BY(connecting_);
  std::vector<std::unique_ptr<Proof>> proofs_ SKEIN_GUARDED_BY(connecting_);
  std::vector<std::atomic<bool>> connected_;
  std::atomic<int> num_connections_{0};
  std::once_flag said_why_not_;
  std::atomic<int64_t> step_{-1};
  std::atomic<bool> ended_{false};
  mutable Mutex mutex_;
  std::string cause_ SKEIN_GUARDED_BY(mutex_);
  std::map<std::string, int> meetings_ SKEIN_GUARDED_BY(mutex_);
  std::map<uint64_t, std::string> group_ids_ SKEIN_GUARDED_BY(mutex_);
};

}  // namespace skein
