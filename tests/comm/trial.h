// One collective with its memory, and what must come out of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "skein/comm/branches.h"
#include "skein/comm/shares.h"
#include "tests/comm/terms.h"

namespace skein::comm_test {

inline constexpr CollectiveKind kTrialKinds[] = {
    CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
    CollectiveKind::kAllToAll,  CollectiveKind::kBroadcast,     CollectiveKind::kBarrier};
inline constexpr CollectiveKind kSums[] = {CollectiveKind::kReduceScatter,
                                           CollectiveKind::kAllReduce};
inline constexpr DType kTrialDTypes[] = {DType::kF32, DType::kF64, DType::kI32, DType::kBF16};

// Of a device, or of the host.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual char* hold(const Bytes& bytes) = 0;  // as long as this
  virtual Bytes read(const void* at, size_t bytes) = 0;
};

class HostMemory : public Memory {
 public:
  char* hold(const Bytes& bytes) override { return held_.emplace_back(bytes).data(); }
  Bytes read(const void* at, size_t bytes) override {
    const char* begin = static_cast<const char*>(at);
    return {begin, begin + bytes};
  }

 private:
  std::deque<Bytes> held_;
};

class Trial {
 public:
  Trial(Communicator& group, CollectiveKind kind, DType dtype, const std::vector<int64_t>& sizes,
        bool in_place, uint64_t seed,
        std::unique_ptr<Memory> memory = std::make_unique<HostMemory>())
      : group_(group), seed_(seed), memory_(std::move(memory)) {
    call_ = {.kind = kind, .dtype = dtype, .label = "trial"};
    call_.peer = static_cast<int>(seed % static_cast<uint64_t>(group.size()));
    for (int64_t elements : sizes) {
      const int64_t n = group.size(), share = (elements + n - 1) / n;
      if (kind == CollectiveKind::kAllToAll) elements = share * n;
      const bool shared = kind != CollectiveKind::kAllReduce && kind != CollectiveKind::kBroadcast;
      if (kind != CollectiveKind::kBarrier)
        call_.parts.push_back({.elements = elements, .share = shared ? share : 0});
    }
    for (size_t i = 0; i < call_.parts.size(); ++i) prepare(i, in_place);
    call_.scratch =
        memory_->hold(Bytes(static_cast<size_t>(collective_scratch_bytes(call_, group.size()))));
  }

  // Of a group whose members hold branches of a tree of so many leaves.
  Trial& of_tree(int64_t leaves) {
    pairs_ = pairs_of_group(leaves, group_.size());
    return *this;
  }

  const Collective& call() const { return call_; }
  void announce() { group_.prepare(call_); }
  Communicator::Ticket start() { return ticket_ = group_.start(call_); }
  void wait() { group_.wait(ticket_); }

  void run_and_check() {
    const WireCount before = group_.count(call_.kind);
    start();
    wait();
    check();
    const WireCount after = group_.count(call_.kind);
    EXPECT_EQ(after.calls - before.calls, 1);
    EXPECT_EQ(after.sent_bytes - before.sent_bytes,
              collective_sent_bytes(call_, group_.rank(), group_.size()))
        << collective_name(call_.kind);
  }

  void check() const {
    for (size_t i = 0; i < call_.parts.size(); ++i) {
      const Bytes expected = expected_of(i);
      ASSERT_EQ(read(i, expected.size()), expected)
          << collective_name(call_.kind) << " of " << call_.parts[i].elements << " "
          << dtype_name(call_.dtype) << " over " << group_.size() << ", part " << i;
    }
  }

  Bytes read(size_t part, size_t bytes) const {
    return memory_->read(call_.parts[part].output, bytes);
  }

  Bytes expected_of(size_t i) const {
    std::vector<Bytes> all;
    for (int rank = 0; rank < group_.size(); ++rank) all.push_back(whole_of(rank, i));
    Bytes joined;
    switch (call_.kind) {
      case CollectiveKind::kAllReduce:
        return serial_sum(call_.dtype, all, pairs_);
      case CollectiveKind::kReduceScatter:
        return share_bytes(serial_sum(call_.dtype, all, pairs_), i, group_.rank());
      case CollectiveKind::kBroadcast:
        return all[static_cast<size_t>(call_.peer)];
      default:
        break;
    }
    for (int rank = 0; rank < group_.size(); ++rank) {
      const int which = call_.kind == CollectiveKind::kAllToAll ? group_.rank() : rank;
      const Bytes share = share_bytes(all[static_cast<size_t>(rank)], i, which);
      joined.insert(joined.end(), share.begin(), share.end());
    }
    return joined;
  }

 private:
  Bytes whole_of(int rank, size_t part) const {
    return term(call_.dtype, call_.parts[part].elements,
                seed_ * 1000 + part * 100 + static_cast<uint64_t>(rank));
  }
  Bytes share_bytes(const Bytes& whole, size_t part, int rank) const {
    const auto [begin, bytes] = share_of(call_, call_.parts[part], group_.size(), rank);
    return {whole.begin() + begin, whole.begin() + begin + bytes};
  }

  void prepare(size_t i, bool in_place) {
    const CollectiveKind kind = call_.kind;
    CollectivePart& part = call_.parts[i];
    const Bytes whole = whole_of(group_.rank(), i);
    const Bytes input =
        kind == CollectiveKind::kAllGather ? share_bytes(whole, i, group_.rank()) : whole;
    const auto own = share_of(call_, part, group_.size(), group_.rank());
    Bytes output(whole.size(), 0x55);
    if (in_place && kind == CollectiveKind::kAllGather) {
      std::copy(input.begin(), input.end(), output.begin() + own.begin);
      part.output = memory_->hold(output);
      part.input = static_cast<char*>(part.output) + own.begin;
      return;
    }
    char* from = memory_->hold(input);
    part.input = from;
    if (in_place && kind == CollectiveKind::kReduceScatter) {
      part.output = from + own.begin;
    } else if (in_place &&
               (kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kBroadcast)) {
      part.output = from;
    } else {
      part.output = memory_->hold(output);
    }
  }

  Communicator& group_;
  uint64_t seed_;
  TreePairs pairs_;
  std::unique_ptr<Memory> memory_;
  Collective call_;
  Communicator::Ticket ticket_ = -1;
};

}  // namespace skein::comm_test
