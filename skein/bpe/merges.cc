#include "skein/bpe/merges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <queue>
#include <tuple>

namespace skein::bpe {
namespace {

constexpr size_t kFew = 48;  // symbols: up to here looking through all pairs beats a heap

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

Merges::Merges(size_t expected) { grow(std::bit_ceil(std::max<size_t>(16, 2 * expected))); }

size_t Merges::home(uint64_t pair) const {
  const uint64_t mixed = (pair ^ pair >> 29) * 0x9e3779b97f4a7c15;
  return static_cast<size_t>(mixed >> 20) & (slots_.size() - 1);
}

void Merges::grow(size_t num_slots) {
  std::vector<Slot> before(num_slots);
  before.swap(slots_);
  for (const Slot& slot : before) {
    if (slot.pair == UINT64_MAX) continue;
    size_t at = home(slot.pair);
    while (slots_[at].pair != UINT64_MAX) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

void Merges::add(int32_t left, int32_t right, Merge merge) {
  if (2 * (size_ + 1) > slots_.size()) grow(2 * slots_.size());
  const uint64_t pair = pair_of(left, right);
  size_t at = home(pair);
  while (slots_[at].pair != UINT64_MAX && slots_[at].pair != pair) {
    at = (at + 1) & (slots_.size() - 1);
  }
  if (slots_[at].pair == UINT64_MAX) {
    slots_[at] = {pair, merge};
    ++size_;
  } else if (merge.rank < slots_[at].merge.rank) {
    slots_[at].merge = merge;
  }
}

Merges::Merge Merges::find(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  for (size_t at = home(pair);; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].pair == pair) return slots_[at].merge;
    if (slots_[at].pair == UINT64_MAX) return {};
  }
}

void Merges::apply(std::vector<int32_t>& symbols) const {
  if (symbols.size() <= kFew) {
    apply_to_few(symbols);
  } else {
    apply_to_many(symbols);
  }
}

void Merges::apply_to_few(std::vector<int32_t>& symbols) const {
  if (symbols.size() < 2) return;
  std::array<Merge, kFew> merges;  // [i] of symbols i and i + 1
  size_t num_pairs = symbols.size() - 1;
  for (size_t i = 0; i < num_pairs; ++i) merges[i] = find(symbols[i], symbols[i + 1]);
  while (num_pairs > 0) {
    size_t best = 0;
    for (size_t i = 1; i < num_pairs; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == kNone) break;
    symbols[best] = merges[best].symbol;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    std::copy(merges.begin() + best + 1, merges.begin() + num_pairs, merges.begin() + best);
    --num_pairs;
    if (best > 0) merges[best - 1] = find(symbols[best - 1], symbols[best]);
    if (best < num_pairs) merges[best] = find(symbols[best], symbols[best + 1]);
  }
}

void Merges::apply_to_many(std::vector<int32_t>& symbols) const {
  struct Linked {
    int32_t symbol;
    size_t before, next;  // SIZE_MAX: none
  };
  struct Candidate {
    Merge merge;
    size_t at;
    bool operator<(const Candidate& other) const {  // a heap's top is its largest
      return std::tie(other.merge.rank, other.at) < std::tie(merge.rank, at);
    }
  };
  std::vector<Linked> list(symbols.size());
  for (size_t i = 0; i < list.size(); ++i) {
    list[i] = {symbols[i], i - 1, i + 1 < list.size() ? i + 1 : SIZE_MAX};
  }
  std::vector<Candidate> first;
  first.reserve(symbols.size());
  const auto merge_at = [&](size_t at) {
    const size_t next = list[at].next;
    return next == SIZE_MAX ? Merge{} : find(list[at].symbol, list[next].symbol);
  };
  for (size_t i = 0; i < list.size(); ++i) {
    if (const Merge merge = merge_at(i); merge.rank != kNone) first.push_back({merge, i});
  }
  std::priority_queue<Candidate> candidates({}, std::move(first));
  while (!candidates.empty()) {
    const auto [merge, at] = candidates.top();
    candidates.pop();
    // What stands there may have merged with others since.
    if (list[at].symbol < 0) continue;
    if (const Merge now = merge_at(at); now.rank != merge.rank || now.symbol != merge.symbol) {
      continue;
    }
    const size_t gone = list[at].next;
    list[at] = {merge.symbol, list[at].before, list[gone].next};
    list[gone].symbol = -1;
    if (list[at].next != SIZE_MAX) list[list[at].next].before = at;
    for (const size_t i : {list[at].before, at}) {
      if (i == SIZE_MAX) continue;
      if (const Merge other = merge_at(i); other.rank != kNone) candidates.push({other, i});
    }
  }
  symbols.clear();
  for (size_t i = 0; i != SIZE_MAX; i = list[i].next) symbols.push_back(list[i].symbol);
}

}  // namespace skein::bpe
