#include "skein/bpe/merges.h"

#include <gtest/gtest.h>

#include <random>

namespace skein::bpe {
namespace {

// What the rule says, looked up anew for every merge.
std::vector<int32_t> by_the_rule(const Merges& merges, std::vector<int32_t> symbols) {
  for (;;) {
    size_t best = 0;
    Merges::Merge merge;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const Merges::Merge other = merges.find(symbols[i], symbols[i + 1]);
      if (other.rank < merge.rank) {
        merge = other;
        best = i;
      }
    }
    if (merge.rank == Merges::kNone) return symbols;
    symbols[best] = merge.symbol;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

TEST(Merges, FindsWhatWasAdded) {
  Merges merges;
  for (int32_t i = 0; i < 10'000; ++i) merges.add(i, 7 * i, {static_cast<uint32_t>(i), i + 1});
  EXPECT_EQ(merges.size(), 10'000u);
  for (int32_t i = 0; i < 10'000; ++i) EXPECT_EQ(merges.find(i, 7 * i).symbol, i + 1);
  EXPECT_EQ(merges.find(7, 1).rank, Merges::kNone);
  merges.add(1, 7, {0, 50});  // a lower rank
  EXPECT_EQ(merges.find(1, 7).symbol, 50);
  merges.add(1, 7, {9, 60});
  EXPECT_EQ(merges.find(1, 7).symbol, 50);
}

TEST(Merges, TheLowestRankMergesFirstAndOfEqualOnesTheLeftmost) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const int num_symbols = 2 + static_cast<int>(random() % 6);
    Merges merges;
    int32_t next = num_symbols;
    for (int i = 0; i < 30; ++i) {  // ranks repeat, and results of merges merge on
      const auto left = static_cast<int32_t>(random() % static_cast<unsigned>(next));
      const auto right = static_cast<int32_t>(random() % static_cast<unsigned>(next));
      merges.add(left, right, {static_cast<uint32_t>(random() % 12), next});
      ++next;
    }
    std::vector<int32_t> symbols(random() % 200);  // both sides of where the way changes
    for (int32_t& symbol : symbols) symbol = static_cast<int32_t>(random() % num_symbols);
    std::vector<int32_t> merged = symbols;
    merges.apply(merged);
    EXPECT_EQ(merged, by_the_rule(merges, symbols)) << round;
  }
}

}  // namespace
}  // namespace skein::bpe
