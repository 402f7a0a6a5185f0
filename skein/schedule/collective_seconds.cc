#include "skein/schedule/collective_seconds.h"

#include <algorithm>
#include <bit>

#include "skein/base/error.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

// The numbers of the formulas, as doubles.
struct Terms {
  double n, nodes, k;
  double intra_rounds, inter_rounds;    // of a tree within a node, and between nodes
  double intra_latency, inter_latency;  // 0 where the group does not use the link
  double intra_per_byte, inter_per_byte;

  double slowest_latency() const { return std::max(intra_latency, inter_latency); }
};

double rounds(int64_t count) {
  return static_cast<double>(std::bit_width(static_cast<uint64_t>(count - 1)));
}

Terms terms_of(const GroupPlace& group, const Hardware& hardware) {
  const bool intra = group.size > group.num_nodes;
  const bool inter = group.num_nodes > 1;
  if (intra && !(hardware.intra_node.bytes_per_s > 0)) {
    fail(ErrorCode::kUsage,
         "hardware {}: {} ranks share nodes, but it has no [intra_node] link: add one",
         hardware.name, group.size);
  }
  if (inter && !(hardware.inter_node.bytes_per_s > 0)) {
    fail(ErrorCode::kUsage,
         "hardware {}: {} ranks need {} nodes of {} devices, but it has no [inter_node] link: add "
         "one, or use at most {} ranks",
         hardware.name, group.size, group.num_nodes, hardware.devices_per_node,
         hardware.devices_per_node);
  }
  Terms terms{};
  terms.n = static_cast<double>(group.size);
  terms.nodes = static_cast<double>(group.num_nodes);
  terms.k = static_cast<double>(group.ranks_per_node);
  terms.intra_rounds = rounds(ceil_div(group.size, group.num_nodes));
  terms.inter_rounds = rounds(group.num_nodes);
  if (intra) {
    terms.intra_latency = hardware.intra_node.latency_s;
    terms.intra_per_byte = 1 / hardware.intra_node.bytes_per_s;
  }
  if (inter) {
    terms.inter_latency = hardware.inter_node.latency_s;
    terms.inter_per_byte = 1 / hardware.inter_node.bytes_per_s;
  }
  return terms;
}

double all_gather(double bytes, const Terms& t) {
  const double ring = (t.n - t.nodes) * t.intra_latency + (t.nodes - 1) * t.inter_latency +
                      (t.n - 1) / t.n * bytes * std::max(t.intra_per_byte, t.inter_per_byte / t.k);
  if (t.nodes * t.k != t.n) return ring;
  const double levels = t.intra_rounds * t.intra_latency + t.inter_rounds * t.inter_latency +
                        (t.nodes - 1) / t.n * bytes * t.inter_per_byte +
                        (t.k - 1) / t.k * bytes * t.intra_per_byte;
  return std::min(ring, levels);
}

double all_to_all(double bytes, const Terms& t) {
  return t.slowest_latency() + std::max((t.k - 1) / t.n * bytes * t.intra_per_byte,
                                        (t.n - t.k) / t.n * bytes * t.inter_per_byte);
}

double broadcast(double bytes, const Terms& t) {
  return t.intra_rounds * (t.intra_latency + bytes * t.intra_per_byte) +
         t.inter_rounds * (t.inter_latency + bytes * t.inter_per_byte);
}

double send(double bytes, const Terms& t) {
  return std::max(t.intra_latency + bytes * t.intra_per_byte,
                  t.inter_latency + bytes * t.inter_per_byte);
}

}  // namespace

GroupPlace place_group(int64_t size, int64_t stride, int64_t world, const Hardware& hardware) {
  if (size < 1 || stride < 1 || world < 1 || world % (size * stride) != 0) {
    fail(ErrorCode::kInternal, "place_group: {} ranks, {} apart, do not tile {} ranks", size,
         stride, world);
  }
  GroupPlace worst{size, 0, size};
  for (int64_t block = 0; block < world; block += size * stride) {
    for (int64_t first = block; first < block + stride; ++first) {
      // Ranks ascend, so those of a node are adjacent.
      GroupPlace place{size, 0, size};
      int64_t node = -1, on_node = 0;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t next = (first + i * stride) / hardware.devices_per_node;
        if (next != node) {
          if (node >= 0) place.ranks_per_node = std::min(place.ranks_per_node, on_node);
          ++place.num_nodes;
          on_node = 0;
        }
        node = next;
        ++on_node;
      }
      place.ranks_per_node = std::min(place.ranks_per_node, on_node);
      const bool worse =
          place.num_nodes > worst.num_nodes ||
          (place.num_nodes == worst.num_nodes && place.ranks_per_node < worst.ranks_per_node);
      if (worse) worst = place;
    }
  }
  return worst;
}

double collective_seconds(CollectiveKind kind, double bytes_whole, const GroupPlace& group,
                          const Hardware& hardware) {
  if (group.size <= 1) return 0;
  const Terms terms = terms_of(group, hardware);
  switch (kind) {
    case CollectiveKind::kAllGather:
      return all_gather(bytes_whole, terms);
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return all_to_all(bytes_whole, terms);
    case CollectiveKind::kAllReduce:
      return all_to_all(bytes_whole, terms) + all_gather(bytes_whole, terms);
    case CollectiveKind::kBroadcast:
      return broadcast(bytes_whole, terms);
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
      return send(bytes_whole, terms);
    case CollectiveKind::kBarrier:
      return broadcast(0, terms);
  }
  fail(ErrorCode::kInternal, "a collective of kind {} has no price", static_cast<int>(kind));
}

}  // namespace skein
