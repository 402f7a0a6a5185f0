#include "skein/comm/gloo/tree_communicator.h"

#include <algorithm>
#include <numeric>

#include "skein/base/error.h"
#include "skein/comm/shares.h"
#include "skein/comm/tree_sum.h"

namespace skein {
namespace {

using Kind = CollectiveKind;

std::vector<int> first_ranks(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

bool goes_through_the_tree(Kind kind) {
  return kind == Kind::kBarrier || kind == Kind::kBroadcast || kind == Kind::kAllGather ||
         kind == Kind::kAllReduce;
}

int64_t padded(int64_t bytes) { return (bytes + 3) / 4 * 4; }

}  // namespace

TreeCommunicator::TreeCommunicator(std::shared_ptr<GlooWorld> world, int fan_out)
    : all_(world, first_ranks(world->size()), "world"), fan_out_(fan_out) {
  std::vector<int> neighbours = children();
  if (rank() > 0) neighbours.insert(neighbours.begin(), parent());
  world->connect(neighbours);
}

std::vector<int> TreeCommunicator::children() const {
  std::vector<int> ranks;
  const int64_t first = int64_t{rank()} * fan_out_ + 1;
  for (int64_t child = first; child < std::min<int64_t>(first + fan_out_, size()); ++child) {
    ranks.push_back(static_cast<int>(child));
  }
  return ranks;
}

bool TreeCommunicator::is_below(int rank, int root) const {
  while (rank > root) rank = (rank - 1) / fan_out_;
  return rank == root;
}

// `root` and then each child's subtree: the order in which shares go up.
std::vector<int> TreeCommunicator::order_below(int root) const {
  std::vector<int> order, stack = {root};
  while (!stack.empty()) {
    const int rank = stack.back();
    stack.pop_back();
    order.push_back(rank);
    const int64_t first = int64_t{rank} * fan_out_ + 1;
    for (int64_t child = std::min<int64_t>(first + fan_out_, size()) - 1; child >= first; --child) {
      stack.push_back(static_cast<int>(child));
    }
  }
  return order;
}

void TreeCommunicator::move(const Collective& of, Kind kind, int peer, void* data, int64_t bytes) {
  Collective message{.kind = kind, .dtype = DType::kI32, .peer = peer};
  message.parts.push_back({.input = data, .output = data, .elements = bytes / 4});
  message.timeout_s = of.timeout_s;
  message.label = of.label;
  all_.run(message);
  WireCount& count = counts_[static_cast<size_t>(of.kind)];
  (kind == Kind::kSend ? count.sent_bytes : count.received_bytes) += bytes;
}

// The bytes of all ranks, in rank order, on every rank; all have equally many, a multiple of 4.
std::vector<char> TreeCommunicator::gather(const Collective& of, std::vector<char> own) {
  const auto share = static_cast<int64_t>(own.size());
  std::vector<char> data = std::move(own);  // of this subtree, in order_below
  for (const int child : children()) {
    const auto below = static_cast<int64_t>(order_below(child).size()) * share;
    const size_t at = data.size();
    data.resize(at + static_cast<size_t>(below));
    move(of, Kind::kReceive, child, data.data() + at, below);
  }
  if (rank() > 0) {
    move(of, Kind::kSend, parent(), data.data(), static_cast<int64_t>(data.size()));
  } else {
    std::vector<char> sorted(data.size());
    size_t at = 0;
    for (const int from : order_below(0)) {
      std::copy_n(data.data() + at, share, sorted.data() + from * share);
      at += static_cast<size_t>(share);
    }
    data = std::move(sorted);
  }
  data.resize(static_cast<size_t>(share) * static_cast<size_t>(size()));
  broadcast_down(of, data);
  return data;
}

void TreeCommunicator::broadcast_down(const Collective& of, std::vector<char>& data) {
  const auto bytes = static_cast<int64_t>(data.size());
  if (rank() > 0) move(of, Kind::kReceive, parent(), data.data(), bytes);
  for (const int child : children()) move(of, Kind::kSend, child, data.data(), bytes);
}

// The root sends its data to rank 0 first, if it is another rank.
void TreeCommunicator::broadcast(const Collective& collective) {
  for (const CollectivePart& part : collective.parts) {
    const int64_t bytes = part.elements * size_of(collective.dtype);
    std::vector<char> data(static_cast<size_t>(padded(bytes)));
    const int root = collective.peer;
    if (rank() == root) std::copy_n(static_cast<const char*>(part.input), bytes, data.data());
    if (is_below(root, rank()) && rank() != root) {
      for (const int child : children()) {
        if (is_below(root, child))
          move(collective, Kind::kReceive, child, data.data(), padded(bytes));
      }
    }
    if (is_below(root, rank()) && rank() > 0) {
      move(collective, Kind::kSend, parent(), data.data(), padded(bytes));
    }
    broadcast_down(collective, data);
    if (part.output != nullptr) std::copy_n(data.data(), bytes, static_cast<char*>(part.output));
  }
}

void TreeCommunicator::all_gather(const Collective& collective) {
  for (const CollectivePart& part : collective.parts) {
    const auto own = share_of(collective, part, size(), rank());
    std::vector<char> mine(static_cast<size_t>(padded(part.share * size_of(collective.dtype))));
    // A rank may have nothing, and no place for it.
    std::copy_n(static_cast<const char*>(part.input), own.bytes, mine.data());
    const size_t stride = mine.size();
    const std::vector<char> all = gather(collective, std::move(mine));
    for (int peer = 0; peer < size(); ++peer) {
      const auto [begin, bytes] = share_of(collective, part, size(), peer);
      std::copy_n(all.data() + static_cast<size_t>(peer) * stride, bytes,
                  static_cast<char*>(part.output) + begin);
    }
  }
}

void TreeCommunicator::all_reduce(const Collective& collective) {
  for (const CollectivePart& part : collective.parts) {
    const auto bytes = static_cast<size_t>(part.elements * size_of(collective.dtype));
    std::vector<char> mine(static_cast<size_t>(padded(static_cast<int64_t>(bytes))));
    std::copy_n(static_cast<const char*>(part.input), bytes, mine.data());
    const size_t stride = mine.size();
    const std::vector<char> all = gather(collective, std::move(mine));
    std::vector<const void*> terms;
    for (int peer = 0; peer < size(); ++peer) {
      terms.push_back(all.data() + static_cast<size_t>(peer) * stride);
    }
    tree_sum(collective.dtype, terms, part.output, part.elements);
  }
}

void TreeCommunicator::run_tree(const Collective& collective) {
  check_collective(collective, rank(), size());
  ++counts_[static_cast<size_t>(collective.kind)].calls;
  if (collective.kind == Kind::kBarrier) {
    gather(collective, std::vector<char>(4));
  } else if (collective.kind == Kind::kBroadcast) {
    broadcast(collective);
  } else if (collective.kind == Kind::kAllGather) {
    all_gather(collective);
  } else {
    all_reduce(collective);
  }
}

Communicator::Ticket TreeCommunicator::start(const Collective& collective) {
  if (!goes_through_the_tree(collective.kind)) return all_.start(collective);
  run_tree(collective);
  return next_ticket_--;
}

void TreeCommunicator::wait(Ticket ticket) {
  if (ticket >= 0) all_.wait(ticket);
}

void TreeCommunicator::prepare(const Collective& collective) {
  if (!goes_through_the_tree(collective.kind)) all_.prepare(collective);
}

WireCount TreeCommunicator::count(CollectiveKind kind) const {
  return goes_through_the_tree(kind) ? counts_[static_cast<size_t>(kind)] : all_.count(kind);
}

}  // namespace skein
