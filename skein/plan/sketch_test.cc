#include "skein/plan/sketch.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace skein {
namespace {

TEST(ChunkPosition, IsMiddleOnlyBetweenTwoOthers) {
  EXPECT_EQ(position_of(0, 1), ChunkPosition::kFirst);
  EXPECT_EQ(position_of(0, 2), ChunkPosition::kFirst);
  EXPECT_EQ(position_of(1, 2), ChunkPosition::kLast);
  EXPECT_EQ(position_of(1, 8), ChunkPosition::kMiddle);
  EXPECT_EQ(position_of(7, 8), ChunkPosition::kLast);
}

TEST(SketchCache, LayoutsShareSketchesOnlyIfAllSettingsAreEqual) {
  SketchCache cache;
  int num_made = 0;
  const auto make = [&] {
    ++num_made;
    return std::make_shared<const ChunkSketches>();
  };
  const SketchKey key;
  const SketchCache::SharedSketches first = cache.get(key, make);
  EXPECT_EQ(cache.get(key, make), first);
  EXPECT_EQ(num_made, 1);
  // Settings that a search varies, and others.
  const std::vector<std::function<void(SketchKey&)>> changes = {
      [](SketchKey& other) { other.ranks = 2; },
      [](SketchKey& other) { other.config.parallel.tensor = 2; },
      [](SketchKey& other) { other.config.memory.recompute = "none"; },
      [](SketchKey& other) { other.config.parallel.sequence = false; },
      [](SketchKey& other) { other.config.parallel.reduction_width = 4; },
      [](SketchKey& other) { other.config.memory.offload_activations = true; },
      [](SketchKey& other) { other.config.precision.mode = "fp32"; },
  };
  for (const auto& change : changes) {
    SketchKey other = key;
    change(other);
    EXPECT_NE(cache.get(other, make), first);
  }
  EXPECT_EQ(num_made, 1 + std::ssize(changes));
}

}  // namespace
}  // namespace skein
