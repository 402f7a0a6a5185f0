// Gives values of the workspace their places by lifetime.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "skein/ir/graph.h"

namespace skein {

// Offsets such that intervals that overlap in time do not overlap in memory: largest first, each in
// the lowest gap that holds it. What forward and backward use overlaps, too, where they run
// together.
class IntervalPacker {
 public:
  explicit IntervalPacker(bool in_pairs) : in_pairs_(in_pairs) {}

  int64_t place(int64_t bytes, int first, int last, Phase phase) {
    const auto run_together = [&](Phase other) {
      return in_pairs_ && phase != other && phase != Phase::kUpdate && other != Phase::kUpdate;
    };
    std::vector<const Interval*> rivals;
    for (const Interval& interval : placed_) {
      const bool at_once = interval.first <= last && first <= interval.last;
      if (at_once || run_together(interval.phase)) rivals.push_back(&interval);
    }
    std::sort(rivals.begin(), rivals.end(),
              [](const Interval* a, const Interval* b) { return a->offset < b->offset; });
    int64_t offset = 0;
    for (const Interval* rival : rivals) {
      if (offset + bytes <= rival->offset) break;
      offset = std::max(offset, rival->offset + rival->bytes);
    }
    placed_.push_back({offset, bytes, first, last, phase});
    peak_ = std::max(peak_, offset + bytes);
    return offset;
  }
  int64_t peak_bytes() const { return peak_; }

 private:
  struct Interval {
    int64_t offset, bytes;
    int first, last;
    Phase phase;
  };
  const bool in_pairs_;
  std::vector<Interval> placed_;
  int64_t peak_ = 0;
};

}  // namespace skein
