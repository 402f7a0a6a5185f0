#include "skein/comm/gloo/packed_parts.h"

#include <algorithm>
#include <cstring>

#include "skein/base/text/units.h"
#include "skein/comm/shares.h"

namespace skein {
namespace {

using Kind = CollectiveKind;

// Up to this size, sending a message costs about as much as setting it up.
constexpr int64_t kSmallBytes = 64 << 10;
constexpr size_t kUnderWay = 3;
constexpr int64_t kAlignment = 64;

bool sums(Kind kind) { return kind == Kind::kReduceScatter || kind == Kind::kAllReduce; }
bool gathers(Kind kind) { return kind == Kind::kAllGather || kind == Kind::kAllReduce; }

int64_t all_bytes(const Collective& collective) {
  int64_t bytes = 0;
  for (const CollectivePart& part : collective.parts) {
    bytes += part.elements * size_of(collective.dtype);
  }
  return bytes;
}

void copy(char* to, const void* from,
          int64_t bytes) {  // a part without elements may have no memory
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

void PackingMemory::expect(int64_t bytes) {
  expected_bytes_ = std::max(expected_bytes_, bytes);
  while (free_.size() < kUnderWay) free_.push_back(std::make_unique<Block>());
  for (const auto& block : free_) {
    if (std::ssize(*block) < expected_bytes_) block->resize(static_cast<size_t>(expected_bytes_));
  }
}

std::unique_ptr<PackingMemory::Block> PackingMemory::take(int64_t bytes) {
  std::unique_ptr<Block> block;
  if (free_.empty()) {
    block = std::make_unique<Block>();
  } else {
    block = std::move(free_.back());
    free_.pop_back();
  }
  if (std::ssize(*block) < bytes) block->resize(static_cast<size_t>(bytes));
  return block;
}

bool PackedParts::is_worth(const Collective& collective, int size) {
  if (collective.parts.size() < 2 || !(sums(collective.kind) || gathers(collective.kind))) {
    return false;
  }
  return std::all_of(
      collective.parts.begin(), collective.parts.end(), [&](const CollectivePart& part) {
        return share_elements(collective, part, size) * size_of(collective.dtype) <= kSmallBytes;
      });
}

int64_t PackedParts::bytes(const Collective& collective) {
  const int64_t whole = round_up(all_bytes(collective), kAlignment);
  return (sums(collective.kind) ? whole : 0) + (gathers(collective.kind) ? whole : 0);
}

PackedParts::PackedParts(const Collective& collective, int rank, int size, PackingMemory& memory)
    : collective_(collective), rank_(rank), size_(size), memory_(memory) {
  for (int peer = 0; peer <= size; ++peer) {
    begin_.push_back(peer == 0 ? 0 : begin_.back() + share_bytes(peer - 1));
  }
  int64_t at = 0;
  for (const CollectivePart& part : collective.parts) {
    own_part_.push_back(at);
    at += share_of(collective, part, size, rank).bytes;
  }
  block_ = memory.take(bytes(collective));
  sends_ = gathered_ = block_->data();
  if (sums(collective.kind)) gathered_ += round_up(all_bytes(collective), kAlignment);
}

int64_t PackedParts::share_bytes(int rank) const {
  int64_t bytes = 0;
  for (const CollectivePart& part : collective_.parts) {
    bytes += share_of(collective_, part, size_, rank).bytes;
  }
  return bytes;
}

std::span<char> PackedParts::pack_for(int peer) {
  const auto first = static_cast<size_t>(peer);
  char* to = sends_ + begin_[first];
  for (const CollectivePart& part : collective_.parts) {
    const auto [begin, bytes] = share_of(collective_, part, size_, peer);
    copy(to, static_cast<const char*>(part.input) + begin, bytes);
    to += bytes;
  }
  return {sends_ + begin_[first], static_cast<size_t>(begin_[first + 1] - begin_[first])};
}

// Fits into the scratch, which is sized for parts that are rounded up one by one.
std::span<char> PackedParts::term_of(int peer) const {
  const int64_t bytes = begin_[static_cast<size_t>(rank_) + 1] - begin_[static_cast<size_t>(rank_)];
  const int index = peer < rank_ ? peer : peer - 1;
  return {static_cast<char*>(collective_.scratch) + index * round_up(bytes, kAlignment),
          static_cast<size_t>(bytes)};
}

const char* PackedParts::term_of(int peer, size_t i) const {
  return term_of(peer).data() + own_part_[i];
}

void PackedParts::pack_own() {
  char* to = own().data();
  for (const CollectivePart& part : collective_.parts) {
    const auto [begin, bytes] = share_of(collective_, part, size_, rank_);
    const bool is_share = collective_.kind == Kind::kAllGather;
    const char* from = is_share ? static_cast<const char*>(part.input)
                                : static_cast<const char*>(part.output) + begin;
    copy(to, from, bytes);
    to += bytes;
  }
}

std::span<char> PackedParts::own() const { return of_peer(rank_); }

std::span<char> PackedParts::of_peer(int peer) const {
  const auto first = static_cast<size_t>(peer);
  return {gathered_ + begin_[first], static_cast<size_t>(begin_[first + 1] - begin_[first])};
}

void PackedParts::unpack() {
  if (!gathers(collective_.kind)) return;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const char* from = of_peer(peer).data();
    for (const CollectivePart& part : collective_.parts) {
      const auto [begin, bytes] = share_of(collective_, part, size_, peer);
      copy(static_cast<char*>(part.output) + begin, from, bytes);
      from += bytes;
    }
  }
}

}  // namespace skein
