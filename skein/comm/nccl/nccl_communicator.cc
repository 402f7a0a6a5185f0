#include "skein/comm/nccl/nccl_communicator.h"

#include <algorithm>
#include <numeric>

#include "skein/base/error.h"
#include "skein/comm/branches.h"
#include "skein/comm/nccl/nccl_calls.h"
#include "skein/comm/shares.h"

namespace skein {
namespace {

using Kind = CollectiveKind;

int64_t received_bytes(const Collective& collective, int rank, int size) {
  int64_t bytes = 0;
  for (const CollectivePart& part : collective.parts) {
    const int64_t whole = part.elements * size_of(collective.dtype);
    const int64_t own = share_of(collective, part, size, rank).bytes;
    switch (collective.kind) {
      case Kind::kAllGather:
      case Kind::kAllToAll:
        bytes += whole - own;
        break;
      case Kind::kReduceScatter:
        bytes += (size - 1) * own;
        break;
      case Kind::kAllReduce:
        bytes += (size - 1) * own + whole - own;
        break;
      case Kind::kBroadcast:
        bytes += collective.peer == rank ? 0 : whole;
        break;
      case Kind::kReceive:
        bytes += whole;
        break;
      case Kind::kSend:
      case Kind::kBarrier:
        break;
    }
  }
  return bytes;
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_world(Communicator& host,
                                              const DeviceWorldOptions& options) {
  std::vector<int> ranks(static_cast<size_t>(host.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_unique<NcclCommunicator>(std::make_shared<NcclWorld>(host, options), ranks,
                                            "world");
}

NcclCommunicator::NcclCommunicator(std::shared_ptr<NcclWorld> world, std::vector<int> world_ranks,
                                   std::string name, int64_t leaves)
    : world_(std::move(world)),
      world_ranks_(std::move(world_ranks)),
      name_(std::move(name)),
      pairs_(pairs_of_group(leaves, size())) {
  const auto self = std::find(world_ranks_.begin(), world_ranks_.end(), world_->host().rank());
  rank_ = static_cast<int>(self - world_ranks_.begin());
  const int meetings = world_->count_meeting(world_ranks_, name_);
  queue_name_ = meetings == 0 ? name_ : fmt::format("{} #{}", name_, meetings + 1);
}

std::unique_ptr<Communicator> NcclCommunicator::group(const std::vector<int>& members,
                                                      const std::string& name, int64_t leaves) {
  check_members(members, *this, name);
  std::vector<int> world_ranks;
  for (const int member : members) world_ranks.push_back(world_ranks_[static_cast<size_t>(member)]);
  return std::make_unique<NcclCommunicator>(world_, std::move(world_ranks), name, leaves);
}

std::unique_ptr<NcclQueue> NcclCommunicator::new_queue(std::vector<int> ranks,
                                                       NcclQueue::Traffic traffic,
                                                       const std::string& label) {
  NcclMembers members{.group = name_, .ranks = std::move(ranks)};
  for (const int rank : members.ranks) {
    if (rank == rank_) members.self = static_cast<int>(members.world_ranks.size());
    members.world_ranks.push_back(world_ranks_[static_cast<size_t>(rank)]);
  }
  return std::make_unique<NcclQueue>(*world_, std::move(members), traffic, queue_name_ + label);
}

NcclQueue& NcclCommunicator::queue_of(const Collective& collective) {
  const Kind kind = collective.kind;
  if (kind != Kind::kSend && kind != Kind::kReceive) {
    if (collectives_ == nullptr) {
      std::vector<int> all(world_ranks_.size());
      std::iota(all.begin(), all.end(), 0);
      collectives_ = new_queue(std::move(all), NcclQueue::Traffic::kCollectives, "");
    }
    return *collectives_;
  }
  const int from = kind == Kind::kSend ? rank_ : collective.peer;
  const int to = kind == Kind::kSend ? collective.peer : rank_;
  std::unique_ptr<NcclQueue>& queue = messages_[{from, to}];
  if (queue == nullptr) {
    const auto traffic = from < to ? NcclQueue::Traffic::kToSecond : NcclQueue::Traffic::kToFirst;
    queue = new_queue({std::min(from, to), std::max(from, to)}, traffic,
                      fmt::format(" {} to {}", from, to));
  }
  return *queue;
}

void NcclCommunicator::prepare(const Collective& collective) {
  if (size() > 1) queue_of(collective);
}

Communicator::Ticket NcclCommunicator::start(const Collective& collective) {
  world_->check_alive();
  check_collective(collective, rank_, size());
  const Ticket ticket = next_ticket_++;
  if (size() == 1) {
    post_copies(collective, world_->queue());
  } else {
    NcclQueue& queue = queue_of(collective);
    world_->connect_announced();
    NcclQueue::Op* op = queue.post(collective, [&](const NcclPost& to) {
      post_calls(to, collective, {rank_, size(), pairs_}, world_->options().sums);
    });
    pending_.emplace(ticket, Pending{&queue, op});
  }
  count_bytes(collective);
  return ticket;
}

void NcclCommunicator::wait(Ticket ticket) {
  world_->check_alive();
  if (size() == 1) return;
  const auto found = pending_.find(ticket);
  if (found == pending_.end()) {
    fail(ErrorCode::kInternal, "group '{}' waits for a collective that it did not start", name_);
  }
  found->second.queue->wait(found->second.op);
  pending_.erase(found);
}

void NcclCommunicator::count_bytes(const Collective& collective) {
  WireCount& wire = counts_[static_cast<size_t>(collective.kind)];
  wire.calls += 1;
  if (size() == 1) return;
  wire.sent_bytes += collective_sent_bytes(collective, rank_, size());
  wire.received_bytes += received_bytes(collective, rank_, size());
}

}  // namespace skein
