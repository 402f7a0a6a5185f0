#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/comm/shares.h"

namespace skein {

std::string_view collective_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kAllToAll:
      return "all-to-all";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kSend:
      return "send";
    case CollectiveKind::kReceive:
      return "receive";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "?";
}

int64_t share_elements(const Collective& collective, const CollectivePart& part, int size) {
  return collective.kind == CollectiveKind::kAllReduce ? ceil_div(part.elements, size) : part.share;
}

ByteSpan share_of(const Collective& collective, const CollectivePart& part, int size, int rank) {
  const int64_t share = share_elements(collective, part, size);
  const int64_t begin = std::min(rank * share, part.elements);
  const int64_t end = std::min(begin + share, part.elements);
  return {begin * size_of(collective.dtype), (end - begin) * size_of(collective.dtype)};
}

int64_t scratch_slot_bytes(const Collective& collective, const CollectivePart& part, int size) {
  constexpr int64_t kAlignment = 64;
  return round_up(share_elements(collective, part, size) * size_of(collective.dtype), kAlignment);
}

int64_t scratch_offset(const Collective& collective, size_t part, int size, int rank, int peer) {
  int64_t offset = 0;
  for (size_t i = 0; i < part; ++i) {
    offset += (size - 1) * scratch_slot_bytes(collective, collective.parts[i], size);
  }
  const int index = peer < rank ? peer : peer - 1;
  return offset + index * scratch_slot_bytes(collective, collective.parts[part], size);
}

int64_t collective_scratch_bytes(const Collective& collective, int size) {
  int64_t bytes = 0;
  if (collective.kind == CollectiveKind::kReduceScatter ||
      collective.kind == CollectiveKind::kAllReduce) {
    for (const CollectivePart& part : collective.parts) {
      bytes += (size - 1) * scratch_slot_bytes(collective, part, size);
    }
  }
  return bytes;
}

int64_t collective_sent_bytes(const Collective& collective, int rank, int size) {
  int64_t bytes = 0;
  for (const CollectivePart& part : collective.parts) {
    const int64_t whole = part.elements * size_of(collective.dtype);
    const int64_t own = share_of(collective, part, size, rank).bytes;
    switch (collective.kind) {
      case CollectiveKind::kAllGather:
        bytes += (size - 1) * own;
        break;
      case CollectiveKind::kReduceScatter:
      case CollectiveKind::kAllToAll:
        bytes += whole - own;
        break;
      case CollectiveKind::kAllReduce:
        bytes += whole - own + (size - 1) * own;
        break;
      case CollectiveKind::kBroadcast:
        bytes += collective.peer == rank ? (size - 1) * whole : 0;
        break;
      case CollectiveKind::kSend:
        bytes += whole;
        break;
      case CollectiveKind::kReceive:
      case CollectiveKind::kBarrier:
        break;
    }
  }
  return bytes;
}

namespace {

std::string describe(const Collective& collective) {
  return fmt::format("[{}] {}", collective_name(collective.kind), collective.label);
}

void check_part(const Collective& collective, const CollectivePart& part, int size) {
  const auto kind = collective.kind;
  if (part.elements < 0 || part.share < 0) {
    fail(ErrorCode::kInternal, "{}: {} elements in shares of {}", describe(collective),
         part.elements, part.share);
  }
  const bool shared = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
  if (shared && part.share * size < part.elements) {
    fail(ErrorCode::kInternal, "{}: {} shares of {} do not cover {} elements", describe(collective),
         size, part.share, part.elements);
  }
  if (kind == CollectiveKind::kAllToAll && part.share * size != part.elements) {
    fail(ErrorCode::kInternal, "{}: {} blocks of {} are not {} elements", describe(collective),
         size, part.share, part.elements);
  }
}

}  // namespace

void check_collective(const Collective& collective, int rank, int size) {
  const auto kind = collective.kind;
  const bool pairwise = kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
  if (collective.peer < 0 || collective.peer >= size || (pairwise && collective.peer == rank)) {
    fail(ErrorCode::kInternal, "{}: rank {} of {} names peer {}", describe(collective), rank, size,
         collective.peer);
  }
  if (collective.scratch == nullptr && collective_scratch_bytes(collective, size) > 0) {
    fail(ErrorCode::kInternal, "{} over {} ranks needs {} bytes of scratch, got none",
         describe(collective), size, collective_scratch_bytes(collective, size));
  }
  for (const CollectivePart& part : collective.parts) check_part(collective, part, size);
}

void check_members(const std::vector<int>& members, const Communicator& whole,
                   const std::string& name) {
  const bool ascending =
      std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) == members.end();
  const bool inside = !members.empty() && members.front() >= 0 && members.back() < whole.size();
  if (!ascending || !inside || !std::binary_search(members.begin(), members.end(), whole.rank())) {
    fail(ErrorCode::kInternal,
         "group '{}' of '{}': [{}] are not ascending ranks of {}, rank {} among them", name,
         whole.name(), fmt::join(members, ", "), whole.size(), whole.rank());
  }
}

}  // namespace skein
