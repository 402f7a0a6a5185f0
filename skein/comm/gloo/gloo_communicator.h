// Collectives in host memory. Every message goes directly from its owner to its reader; it is
// posted in start(), and moved by Gloo's thread, or between ranks of one host by the reader's, in
// wait(). wait() adds the terms of a sum, in the fixed order, and only then starts the second phase
// of an all-reduce, unless advance_before() did.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "skein/comm/channel.h"
#include "skein/comm/communicator.h"
#include "skein/comm/gloo/gloo_channel.h"
#include "skein/comm/gloo/gloo_world.h"
#include "skein/comm/gloo/packed_parts.h"
#include "skein/comm/tree_sum.h"

namespace skein {

class GlooCommunicator : public Communicator {
 public:
  // `world_ranks`: ascending, at least two, this process's rank among them. `leaves` as in group().
  GlooCommunicator(std::shared_ptr<GlooWorld> world, std::vector<int> world_ranks, std::string name,
                   int64_t leaves = 0);
  ~GlooCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_ranks_.size()); }
  const std::string& name() const override { return name_; }
  Ticket start(const Collective& collective) override;
  void wait(Ticket ticket) override;
  void advance_before(Ticket ticket) override;
  std::unique_ptr<Communicator> group(const std::vector<int>& members, const std::string& name,
                                      int64_t leaves = 0) override;
  void prepare(const Collective& collective) override;
  void check(const Collective& during) override;
  void end(const std::string& cause) noexcept override { world_->end(cause); }
  void set_step(int64_t step) override { world_->set_step(step); }
  WireCount count(CollectiveKind kind) const override { return counts_[static_cast<size_t>(kind)]; }
  int64_t num_messages() const { return num_messages_; }  // sent, since construction

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  // Messages of one stream between two ranks are posted in the same order at both ends.
  enum Stream : uint8_t { kCollectives, kSecondPhases, kPointToPoint, kNumStreams };
  struct Message {
    Stream stream;
    int peer;
    int64_t number;
  };
  struct Pending {
    Collective collective;
    std::vector<Message> receives, second_receives, sends;
    bool summed = false;
    std::unique_ptr<PackedParts> packed = nullptr;  // if one message per peer carries all parts
  };

  bool talks_with(const Collective& collective, int peer) const;
  void connect(const Collective& collective);
  Channel& channel(Stream stream, int peer);
  WireCount& wire(const Pending& pending);
  template <typename Visit>
  void for_each_peer(Visit&& visit);
  void send(Pending& pending, Stream stream, int peer, const void* data, int64_t bytes);
  void receive(Pending& pending, Stream stream, int peer, void* data, int64_t bytes);
  void post_receives(Pending& pending);
  void post_receives(Pending& pending, size_t part);
  void post_sends(Pending& pending);
  void post_sends(Pending& pending, const CollectivePart& part);
  void post_packed(Pending& pending);
  void finish_first_phase(Pending& pending, TimePoint deadline);
  void finish_first_phases(Ticket end, TimePoint deadline);  // of tickets before the end
  void sum(const Pending& pending);
  void copy_own(const Pending& pending);
  void await(const Pending& pending, const std::vector<Message>& messages, bool sent,
             TimePoint deadline);
  char* scratch_slot(const Collective& collective, size_t part, int peer) const;
  template <typename Action>
  auto guarded(const Pending& pending, int peer, TimePoint deadline, Action&& action);

  std::shared_ptr<GlooWorld> world_;
  std::vector<int> world_ranks_;
  std::string name_;
  TreePairs pairs_;
  int rank_ = 0;
  uint64_t id_ = 0;
  Ticket next_ticket_ = 0;
  PackingMemory packing_;
  std::vector<bool> announced_;        // by peer: collectives with it were announced
  std::map<Ticket, Pending> pending_;  // started and not complete, in order
  std::vector<std::array<std::unique_ptr<Channel>, kNumStreams>> channels_;  // by peer
  std::vector<std::unique_ptr<GlooChannel>> watches_;                        // by peer
  std::array<WireCount, 8> counts_{};
  int64_t num_messages_ = 0;
};

}  // namespace skein
