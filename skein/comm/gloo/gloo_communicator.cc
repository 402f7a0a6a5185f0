#include "skein/comm/gloo/gloo_communicator.h"

#include <algorithm>

#include "skein/base/shared/heartbeat.h"
#include "skein/comm/branches.h"
#include "skein/comm/local/local_communicator.h"
#include "skein/comm/shares.h"
#include "skein/comm/tree_sum.h"

namespace skein {
namespace {

using Kind = CollectiveKind;

const char* at(const void* data, int64_t offset) { return static_cast<const char*>(data) + offset; }
char* at(void* data, int64_t offset) { return static_cast<char*>(data) + offset; }

bool is_reduction(Kind kind) { return kind == Kind::kReduceScatter || kind == Kind::kAllReduce; }

int64_t whole_bytes(const Collective& collective, const CollectivePart& part) {
  return part.elements * size_of(collective.dtype);
}

}  // namespace

GlooCommunicator::GlooCommunicator(std::shared_ptr<GlooWorld> world, std::vector<int> world_ranks,
                                   std::string name, int64_t leaves)
    : world_(std::move(world)),
      world_ranks_(std::move(world_ranks)),
      name_(std::move(name)),
      pairs_(pairs_of_group(leaves, size())) {
  const auto self = std::find(world_ranks_.begin(), world_ranks_.end(), world_->rank());
  rank_ = static_cast<int>(self - world_ranks_.begin());
  id_ = world_->new_group_id(world_ranks_, name_);
  channels_.resize(world_ranks_.size());
  watches_.resize(world_ranks_.size());
  announced_.resize(world_ranks_.size());
}

GlooCommunicator::~GlooCommunicator() {
  // Its buffers may be freed now, so nothing must touch them any more.
  if (!pending_.empty()) {
    world_->end(fmt::format("world rank {} gave up group '{}' in the middle of [{}] {}",
                            world_->rank(), name_,
                            collective_name(pending_.begin()->second.collective.kind),
                            pending_.begin()->second.collective.label));
  }
}

std::unique_ptr<Communicator> GlooCommunicator::group(const std::vector<int>& members,
                                                      const std::string& name, int64_t leaves) {
  check_members(members, *this, name);
  if (members.size() == 1) return std::make_unique<LocalCommunicator>(name);
  std::vector<int> world_ranks;
  for (const int member : members) world_ranks.push_back(world_ranks_[static_cast<size_t>(member)]);
  return std::make_unique<GlooCommunicator>(world_, std::move(world_ranks), name, leaves);
}

// Runs `action`, which talks to `peer`; whatever a channel throws ends the world.
template <typename Action>
auto GlooCommunicator::guarded(const Pending& pending, int peer, TimePoint deadline,
                               Action&& action) {
  try {
    return action();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const bool is_other = dynamic_cast<const MessageMismatch*>(&error) != nullptr;
    world_->lose({.collective = &pending.collective,
                  .group = name_,
                  .peer = peer,
                  .world_peer = world_ranks_[static_cast<size_t>(peer)],
                  .timed_out = std::chrono::steady_clock::now() >= deadline,
                  .mismatch = is_other ? error.what() : "",
                  .transport = error.what()});
  }
}

// Whether the collective has a message between this rank and `peer`.
bool GlooCommunicator::talks_with(const Collective& collective, int peer) const {
  if (peer == rank_) return false;
  switch (collective.kind) {
    case Kind::kSend:
    case Kind::kReceive:
      return peer == collective.peer;
    case Kind::kBroadcast:
      return rank_ == collective.peer || peer == collective.peer;
    default:
      return true;
  }
}

void GlooCommunicator::prepare(const Collective& collective) {
  if (PackedParts::is_worth(collective, size())) {
    packing_.expect(PackedParts::bytes(collective));
  }
  for (int peer = 0; peer < size(); ++peer) {
    if (talks_with(collective, peer)) announced_[static_cast<size_t>(peer)] = true;
  }
}

// If this collective needs a peer without a connection, connects with it and all announced peers.
void GlooCommunicator::connect(const Collective& collective) {
  std::vector<int> peers;
  bool is_missing = false;
  for (int peer = 0; peer < size(); ++peer) {
    const int world_rank = world_ranks_[static_cast<size_t>(peer)];
    if (peer == rank_ || world_->is_connected(world_rank)) continue;
    const bool is_needed = talks_with(collective, peer);
    is_missing = is_missing || is_needed;
    if (is_needed || announced_[static_cast<size_t>(peer)]) peers.push_back(world_rank);
  }
  if (is_missing) world_->connect(peers, {.collective = &collective, .group = name_});
}

Channel& GlooCommunicator::channel(Stream stream, int peer) {
  std::unique_ptr<Channel>& channel = channels_[static_cast<size_t>(peer)][stream];
  if (channel == nullptr) {
    channel = world_->new_channel(world_ranks_[static_cast<size_t>(peer)], id_ + stream);
  }
  return *channel;
}

WireCount& GlooCommunicator::wire(const Pending& pending) {
  return counts_[static_cast<size_t>(pending.collective.kind)];
}

void GlooCommunicator::send(Pending& pending, Stream stream, int peer, const void* data,
                            int64_t bytes) {
  if (bytes == 0 && pending.collective.kind != Kind::kBarrier) return;
  const int64_t number = guarded(pending, peer, TimePoint::max(), [&] {
    return channel(stream, peer).send(data, bytes, message_tag(pending.collective));
  });
  pending.sends.push_back({stream, peer, number});
  ++num_messages_;
  wire(pending).sent_bytes += bytes;
}

void GlooCommunicator::receive(Pending& pending, Stream stream, int peer, void* data,
                               int64_t bytes) {
  if (bytes == 0 && pending.collective.kind != Kind::kBarrier) return;
  const int64_t number = guarded(pending, peer, TimePoint::max(), [&] {
    return channel(stream, peer).receive(data, bytes, message_tag(pending.collective));
  });
  (stream == kSecondPhases ? pending.second_receives : pending.receives)
      .push_back({stream, peer, number});
  wire(pending).received_bytes += bytes;
}

char* GlooCommunicator::scratch_slot(const Collective& collective, size_t part, int peer) const {
  return at(collective.scratch, scratch_offset(collective, part, size(), rank_, peer));
}

// Posts the sends and receives of the first phase, one per peer, and the receives of the second.
void GlooCommunicator::post_packed(Pending& pending) {
  PackedParts& packed = *pending.packed;
  const bool gathers = pending.collective.kind == Kind::kAllGather;
  for_each_peer([&](int peer) {
    const auto to = gathers ? packed.of_peer(peer) : packed.term_of(peer);
    receive(pending, kCollectives, peer, to.data(), std::ssize(to));
  });
  if (pending.collective.kind == Kind::kAllReduce) {
    for_each_peer([&](int peer) {
      const auto to = packed.of_peer(peer);
      receive(pending, kSecondPhases, peer, to.data(), std::ssize(to));
    });
  }
  if (gathers) packed.pack_own();
  for_each_peer([&](int peer) {
    const auto from = gathers ? packed.own() : packed.pack_for(peer);
    send(pending, kCollectives, peer, from.data(), std::ssize(from));
  });
}

// Begins with the next rank, so that not all ranks begin with rank 0.
template <typename Visit>
void GlooCommunicator::for_each_peer(Visit&& visit) {
  for (int step = 1; step < size(); ++step) visit((rank_ + step) % size());
}

void GlooCommunicator::post_receives(Pending& pending) {
  const Collective& collective = pending.collective;
  if (collective.kind == Kind::kBarrier) {
    for_each_peer([&](int peer) { receive(pending, kCollectives, peer, nullptr, 0); });
  }
  for (size_t i = 0; i < collective.parts.size(); ++i) post_receives(pending, i);
}

void GlooCommunicator::post_receives(Pending& pending, size_t i) {
  const Collective& collective = pending.collective;
  const CollectivePart& part = collective.parts[i];
  const int64_t whole = whole_bytes(collective, part);
  if (collective.kind == Kind::kReceive) {
    receive(pending, kPointToPoint, collective.peer, part.output, whole);
  } else if (collective.kind == Kind::kBroadcast && collective.peer != rank_) {
    receive(pending, kCollectives, collective.peer, part.output, whole);
  } else if (is_reduction(collective.kind)) {
    const int64_t own_bytes = share_of(collective, part, size(), rank_).bytes;
    for_each_peer([&](int peer) {
      receive(pending, kCollectives, peer, scratch_slot(collective, i, peer), own_bytes);
    });
  }
  const bool reduced = collective.kind == Kind::kAllReduce;
  if (reduced || collective.kind == Kind::kAllGather || collective.kind == Kind::kAllToAll) {
    // Safe in place: a peer can send in the second phase only after it summed what this rank sent
    // from that memory.
    for_each_peer([&](int peer) {
      const auto [begin, bytes] = share_of(collective, part, size(), peer);
      receive(pending, reduced ? kSecondPhases : kCollectives, peer, at(part.output, begin), bytes);
    });
  }
}

void GlooCommunicator::post_sends(Pending& pending) {
  if (pending.collective.kind == Kind::kBarrier) {
    for_each_peer([&](int peer) { send(pending, kCollectives, peer, nullptr, 0); });
  }
  for (const CollectivePart& part : pending.collective.parts) post_sends(pending, part);
}

void GlooCommunicator::post_sends(Pending& pending, const CollectivePart& part) {
  const Collective& collective = pending.collective;
  const int64_t whole = whole_bytes(collective, part);
  switch (collective.kind) {
    case Kind::kSend:
      send(pending, kPointToPoint, collective.peer, part.input, whole);
      break;
    case Kind::kBroadcast:
      if (collective.peer != rank_) break;
      for_each_peer([&](int peer) { send(pending, kCollectives, peer, part.input, whole); });
      break;
    case Kind::kAllGather: {
      const int64_t own_bytes = share_of(collective, part, size(), rank_).bytes;
      for_each_peer([&](int peer) { send(pending, kCollectives, peer, part.input, own_bytes); });
      break;
    }
    case Kind::kReduceScatter:
    case Kind::kAllReduce:
    case Kind::kAllToAll:
      for_each_peer([&](int peer) {
        const auto [begin, bytes] = share_of(collective, part, size(), peer);
        send(pending, kCollectives, peer, at(part.input, begin), bytes);
      });
      break;
    case Kind::kReceive:
    case Kind::kBarrier:
      break;
  }
}

Communicator::Ticket GlooCommunicator::start(const Collective& collective) {
  world_->check_alive();
  check_collective(collective, rank_, size());
  connect(collective);
  const Ticket ticket = next_ticket_++;
  Pending& pending = pending_[ticket];
  pending.collective = collective;
  wire(pending).calls += 1;
  if (PackedParts::is_worth(collective, size())) {
    pending.packed = std::make_unique<PackedParts>(pending.collective, rank_, size(), packing_);
    post_packed(pending);
    return ticket;
  }
  post_receives(pending);
  post_sends(pending);
  return ticket;
}

void GlooCommunicator::await(const Pending& pending, const std::vector<Message>& messages,
                             bool sent, TimePoint deadline) {
  for (const Message& message : messages) {
    guarded(pending, message.peer, deadline, [&] {
      Channel& through = channel(message.stream, message.peer);
      sent ? through.wait_sent(message.number, deadline)
           : through.wait_received(message.number, deadline);
    });
  }
}

// Sums the share of this rank over all terms, in rank order.
void GlooCommunicator::sum(const Pending& pending) {
  const Collective& collective = pending.collective;
  std::vector<const void*> terms(static_cast<size_t>(size()));
  for (size_t i = 0; i < collective.parts.size(); ++i) {
    const CollectivePart& part = collective.parts[i];
    const auto [begin, bytes] = share_of(collective, part, size(), rank_);
    for (int peer = 0; peer < size(); ++peer) {
      terms[static_cast<size_t>(peer)] =
          peer == rank_    ? at(part.input, begin)
          : pending.packed ? static_cast<const void*>(pending.packed->term_of(peer, i))
                           : scratch_slot(collective, i, peer);
    }
    void* result = at(part.output, collective.kind == Kind::kAllReduce ? begin : 0);
    tree_sum(collective.dtype, terms, result, bytes / size_of(collective.dtype), pairs_);
  }
}

// Copies what this rank already has of the result.
void GlooCommunicator::copy_own(const Pending& pending) {
  const Collective& collective = pending.collective;
  const bool root = collective.kind == Kind::kBroadcast && collective.peer == rank_;
  const bool gather = collective.kind == Kind::kAllGather;
  if (!root && !gather && collective.kind != Kind::kAllToAll) return;
  for (const CollectivePart& part : collective.parts) {
    if (part.output == nullptr) continue;
    const auto [begin, bytes] = root ? ByteSpan{0, whole_bytes(collective, part)}
                                     : share_of(collective, part, size(), rank_);
    const void* own = at(part.input, gather ? 0 : begin);
    tree_sum(collective.dtype, {&own, 1}, at(part.output, begin),
             bytes / size_of(collective.dtype));
  }
}

void GlooCommunicator::finish_first_phase(Pending& pending, TimePoint deadline) {
  const Collective& collective = pending.collective;
  if (pending.summed || collective.kind != Kind::kAllReduce) return;
  await(pending, pending.receives, false, deadline);
  sum(pending);
  pending.summed = true;
  if (pending.packed) {
    pending.packed->pack_own();
    for_each_peer([&](int peer) {
      const auto own = pending.packed->own();
      send(pending, kSecondPhases, peer, own.data(), std::ssize(own));
    });
    return;
  }
  for (const CollectivePart& part : collective.parts) {
    const auto [begin, bytes] = share_of(collective, part, size(), rank_);
    for_each_peer([&, begin = begin, bytes = bytes](int peer) {
      send(pending, kSecondPhases, peer, at(part.output, begin), bytes);
    });
  }
}

void GlooCommunicator::finish_first_phases(Ticket end, TimePoint deadline) {
  for (auto at = pending_.begin(); at != pending_.end() && at->first < end; ++at) {
    finish_first_phase(at->second, deadline);
  }
}

void GlooCommunicator::advance_before(Ticket ticket) {
  world_->check_alive();
  const auto timeout = world_->timeout(pending_.at(ticket).collective);
  const heartbeat::Wait waits(std::chrono::duration<double>(timeout).count());
  finish_first_phases(ticket, std::chrono::steady_clock::now() + timeout);
}

void GlooCommunicator::wait(Ticket ticket) {
  world_->check_alive();
  const auto found = pending_.find(ticket);
  if (found == pending_.end()) {
    fail(ErrorCode::kInternal, "group '{}' waits for a collective that it did not start", name_);
  }
  const auto timeout = world_->timeout(found->second.collective);
  const TimePoint deadline = std::chrono::steady_clock::now() + timeout;
  const heartbeat::Wait waits(std::chrono::duration<double>(timeout).count());
  // Peers that wait for an earlier all-reduce need this rank's sums.
  finish_first_phases(ticket + 1, deadline);
  Pending& pending = found->second;
  copy_own(pending);
  await(pending, pending.receives, false, deadline);
  if (pending.collective.kind == Kind::kReduceScatter) sum(pending);
  await(pending, pending.second_receives, false, deadline);
  if (pending.packed) pending.packed->unpack();
  await(pending, pending.sends, true, deadline);
  pending_.erase(found);
}

void GlooCommunicator::check(const Collective& during) {
  world_->check_alive();
  const Pending pending{.collective = during};
  for_each_peer([&](int peer) {
    const int world_rank = world_ranks_[static_cast<size_t>(peer)];
    if (!world_->is_connected(world_rank)) return;
    std::unique_ptr<GlooChannel>& watch = watches_[static_cast<size_t>(peer)];
    guarded(pending, peer, TimePoint::max(), [&] {
      if (watch == nullptr) {
        watch = std::make_unique<GlooChannel>(world_->new_buffer(), world_rank, id_ + kNumStreams);
      }
      watch->check();
    });
  });
}

}  // namespace skein
