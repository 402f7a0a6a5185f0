#include "skein/prepare/dedup/clusters/partitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "skein/base/threads/parallel_for.h"
#include "skein/prepare/dedup/clusters/union_find.h"
#include "tests/error_of.h"

namespace skein {
namespace {

fs::path out() { return fs::path(testing::TempDir()) / "partitions.arrow"; }
constexpr int64_t kPendingBytes = 16 << 10, kChunkBytes = 32 << 10;  // chunks of 2048 pairs
bool keeps_all(const KeyedValue&) { return true; }

// All pairs of for_each_chunk(), in order. `largest` is the most of a chunk.
std::vector<KeyedValue> sorted(const Partitions& partitions, int num_threads,
                               const Partitions::Keeps& keeps, size_t& largest) {
  Mutex mutex;
  std::vector<std::vector<KeyedValue>> chunks;
  partitions.for_each_chunk(num_threads, keeps, [&](std::span<KeyedValue> chunk) {
    const Lock lock(mutex);
    chunks.emplace_back(chunk.begin(), chunk.end());
  });
  std::sort(chunks.begin(), chunks.end());
  std::vector<KeyedValue> all;
  for (const std::vector<KeyedValue>& chunk : chunks) {
    if (!all.empty()) {
      EXPECT_LT(all.back().key, chunk.front().key);
    }
    all.insert(all.end(), chunk.begin(), chunk.end());
    largest = std::max(largest, chunk.size());
  }
  return all;
}

TEST(Partitions, SortMoreThanFitsInMemory) {
  std::mt19937_64 random(1);
  Partitions partitions(out(), kPendingBytes, kChunkBytes);
  std::vector<KeyedValue> all;
  for (uint64_t i = 0; i < 1000'000; ++i) {
    // Some keys have a hundred values, and one of the thousand partitions has a fifth of all.
    uint64_t key = i % 8 == 0 ? (i / 8 % 1250 + 1) * 0x9e3779b97f4a7c15 : random();
    if (i % 5 == 1) key = key >> 10 | uint64_t{77} << 54;
    all.push_back({key, i});
  }
  std::vector<int> threads = {0, 1, 2};
  parallel_for_each(threads, 3, [&](int thread) {
    for (size_t i = static_cast<size_t>(thread); i < all.size(); i += 3) partitions.add(all[i]);
  });
  partitions.finish();
  EXPECT_EQ(partitions.num_pairs(), static_cast<int64_t>(all.size()));
  std::erase_if(all, [](const KeyedValue& pair) { return pair.value % 3 == 0; });
  std::sort(all.begin(), all.end());
  for (const int num_threads : {1, 2, 8}) {
    size_t largest = 0;
    const auto keeps = [](const KeyedValue& pair) { return pair.value % 3 != 0; };
    EXPECT_TRUE(sorted(partitions, num_threads, keeps, largest) == all);
    EXPECT_LE(largest, kChunkBytes / sizeof(KeyedValue));
  }
  const uint64_t first = all[all.size() / 5].key, last = all[all.size() / 2].key;
  const Partitions::Keeps keeps = [](const KeyedValue& pair) { return pair.value % 3 != 0; };
  Partitions::Reader reader(partitions, first, last, 1000, keeps);
  std::vector<KeyedValue> found;
  for (auto chunk = reader.next(); !chunk.empty(); chunk = reader.next()) {
    EXPECT_LE(chunk.size(), 1000u);
    found.insert(found.end(), chunk.begin(), chunk.end());
  }
  std::erase_if(all, [&](const KeyedValue& pair) { return pair.key < first || pair.key > last; });
  EXPECT_TRUE(found == all);
}

// Whether a key fits does not depend on the number of threads that share the memory.
TEST(Partitions, RefuseAKeyThatDoesNotFit) {
  for (const uint64_t num_pairs : {2000, 2048, 2049, 5000}) {
    Partitions partitions(out(), kPendingBytes, kChunkBytes);
    for (uint64_t i = 0; i < num_pairs; ++i) partitions.add({42, i});
    for (uint64_t key = 0; key < 1000; ++key) partitions.add({key, 1});
    for (uint64_t key = 1; key < 1000; ++key) partitions.add({key << 54, 1});
    partitions.finish();
    for (const int num_threads : {1, 8}) {
      size_t largest = 0;
      const std::string error =
          test::error_of([&] { sorted(partitions, num_threads, keeps_all, largest); });
      EXPECT_EQ(error.find("--memory is too small") != std::string::npos, num_pairs + 1 > 2048)
          << num_pairs << " " << num_threads << error;
    }
  }
}

TEST(Partitions, OfNothingAreNothing) {
  Partitions partitions(out(), kPendingBytes, kChunkBytes);
  partitions.finish();
  size_t largest = 0;
  EXPECT_TRUE(sorted(partitions, 4, keeps_all, largest).empty());
  const Partitions::Keeps keeps = keeps_all;
  EXPECT_TRUE(Partitions::Reader(partitions, 0, ~uint64_t{0}, 10, keeps).next().empty());
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
    parallel_for_each(edges, round + 1,
                      [&](const auto& edge) { components.join(edge.first, edge.second); });
    for (uint32_t i = 0; i < kNum; ++i) ASSERT_EQ(components.find(i), wanted[i]);
    std::shuffle(edges.begin(), edges.end(), random);
  }
}

}  // namespace
}  // namespace skein
