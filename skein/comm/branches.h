// How ranks share the leaves of one canonical tree (comm/tree_sum.h): each has a whole branch of
// it, and so one term to send, however many leaves that is.
//
// Formula   The leaves are cut into blocks of s = 2^j, the last one of what is left, with the
//           smallest s that makes no more blocks than ranks. Where there are more ranks than
//           blocks, the last full blocks have two ranks each, s/2 leaves a rank. So rank r's leaves
//           precede those of rank r + 1, and all but the last rank have s or s/2 of them
// Examples  4 leaves: 2 1 1 over 3 ranks. 8 leaves: 4 2 2 over 3, 2 2 2 1 1 over 5. 6 leaves: 4 2
//           over 2, 2 2 1 1 over 4. Equal branches wherever there can be some
// Balance   the most is the smallest that whole branches allow. With ranks >= leaves / 2 it is at
//           most 2, as with any way to deal whole leaves; below, at most the next power of two from
//           leaves / ranks on
// Errors    Error{kInternal} unless 1 <= ranks <= leaves
#pragma once

#include <cstdint>
#include <vector>

#include "skein/comm/tree_sum.h"

namespace skein {

struct Branch {
  int64_t first = 0;  // leaf
  int64_t count = 1;
  bool operator==(const Branch&) const = default;
};

class Branches {
 public:
  Branches(int64_t leaves, int64_t ranks);

  Branch of(int64_t rank) const;
  // A rank with each number of leaves that there is, the most first.
  std::vector<int64_t> kinds() const;
  int64_t most() const { return of(kinds().front()).count; }
  int64_t least() const { return of(kinds().back()).count; }
  bool are_equal() const { return kinds().size() == 1; }
  // How tree_sum has to add the terms of the ranks.
  TreePairs pairs() const { return {full_ - halved_, halved_}; }

 private:
  int64_t leaves_, ranks_;
  int64_t size_ = 1;    // of a block
  int64_t full_ = 0;    // blocks of that size
  int64_t halved_ = 0;  // those of them that have two ranks each
};

// The pairs of a group of `ranks` whose members have branches of so many leaves; 0: one leaf each.
TreePairs pairs_of_group(int64_t leaves, int64_t ranks);

}  // namespace skein
