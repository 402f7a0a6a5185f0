#include "skein/prepare/dedup/partitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "skein/prepare/dedup/union_find.h"
#include "tests/error_of.h"

namespace skein {
namespace {

fs::path out() { return fs::path(testing::TempDir()) / "partitions.arrow"; }
bool keeps_all(const KeyValue&) { return true; }

TEST(Partitions, SortMoreThanFitsInMemory) {
  std::mt19937_64 random(1);
  constexpr int64_t kMemoryBytes = 64 << 10;  // chunks of 2048 pairs: partitions are read in parts
  Partitions partitions(out(), kMemoryBytes);
  std::vector<KeyValue> all;
  for (uint64_t i = 0; i < 1000'000; ++i) {
    // Some keys have a hundred values.
    all.push_back({i % 8 == 0 ? (i / 8 % 1250 + 1) * 0x9e3779b97f4a7c15 : random(), i});
  }
  for (const KeyValue& pair : all) partitions.add(pair);
  EXPECT_EQ(partitions.num_pairs(), static_cast<int64_t>(all.size()));
  std::erase_if(all, [](const KeyValue& pair) { return pair.value % 3 == 0; });
  std::sort(all.begin(), all.end());
  std::vector<KeyValue> found;
  size_t largest = 0;
  partitions.for_each_chunk([](const KeyValue& pair) { return pair.value % 3 != 0; },
                            [&](std::span<KeyValue> chunk) {
                              if (!found.empty()) {
                                EXPECT_LT(found.back().key, chunk.front().key);
                              }
                              found.insert(found.end(), chunk.begin(), chunk.end());
                              largest = std::max(largest, chunk.size());
                            });
  EXPECT_TRUE(found == all);
  EXPECT_LE(largest, kMemoryBytes / 2 / sizeof(KeyValue));
}

TEST(Partitions, RefuseAKeyThatDoesNotFit) {
  Partitions partitions(out(), 64 << 10);
  for (uint64_t i = 0; i < 5000; ++i) partitions.add({42, i});
  EXPECT_NE(test::error_of([&] {
              partitions.for_each_chunk(keeps_all, [](std::span<KeyValue>) {});
            }).find("--memory is too small"),
            std::string::npos);
}

TEST(Partitions, OfNothingAreNothing) {
  Partitions partitions(out(), 64 << 10);
  EXPECT_TRUE(partitions.next_chunk(keeps_all).empty());
  EXPECT_TRUE(partitions.next_chunk(keeps_all).empty());
}

TEST(UnionFind, NamesComponentsByTheirSmallestMember) {
  std::mt19937_64 random(4);
  constexpr uint32_t kNum = 2000;
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (int i = 0; i < 1500; ++i) edges.emplace_back(random() % kNum, random() % kNum);
  std::vector<uint32_t> wanted(kNum);  // by repeated relaxation
  std::iota(wanted.begin(), wanted.end(), 0U);
  for (bool changes = true; changes;) {
    changes = false;
    for (const auto& [a, b] : edges) {
      const uint32_t least = std::min(wanted[a], wanted[b]);
      changes = changes || wanted[a] != least || wanted[b] != least;
      wanted[a] = wanted[b] = least;
    }
  }
  for (int round = 0; round < 3; ++round) {
    UnionFind components(kNum);
    for (const auto& [a, b] : edges) components.join(a, b);
    for (uint32_t i = 0; i < kNum; ++i) ASSERT_EQ(components.find(i), wanted[i]);
    std::shuffle(edges.begin(), edges.end(), random);
  }
}

}  // namespace
}  // namespace skein
