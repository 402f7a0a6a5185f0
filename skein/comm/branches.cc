#include "skein/comm/branches.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/units.h"

namespace skein {

Branches::Branches(int64_t leaves, int64_t ranks) : leaves_(leaves), ranks_(ranks) {
  if (ranks < 1 || ranks > leaves) {
    fail(ErrorCode::kInternal, "a tree of {} leaves has no {} branches", leaves, ranks);
  }
  while (ceil_div(leaves, size_) > ranks) size_ *= 2;
  full_ = leaves / size_;
  halved_ = ranks - ceil_div(leaves, size_);
}

Branch Branches::of(int64_t rank) const {
  const int64_t whole = full_ - halved_, half = size_ / 2;
  if (rank < whole) return {rank * size_, size_};
  if (rank < whole + 2 * halved_) return {whole * size_ + (rank - whole) * half, half};
  return {full_ * size_, leaves_ - full_ * size_};
}

std::vector<int64_t> Branches::kinds() const {
  // A full block, a half, what is left.
  std::vector<int64_t> ranks = {0, std::min(full_ - halved_, ranks_ - 1), ranks_ - 1};
  const auto count = [&](int64_t rank) { return of(rank).count; };
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](int64_t a, int64_t b) { return count(a) > count(b); });
  ranks.erase(std::unique(ranks.begin(), ranks.end(),
                          [&](int64_t a, int64_t b) { return count(a) == count(b); }),
              ranks.end());
  return ranks;
}

TreePairs pairs_of_group(int64_t leaves, int64_t ranks) {
  return leaves == 0 ? TreePairs{} : Branches(leaves, ranks).pairs();
}

}  // namespace skein
