#include "skein/checkpoint/save/stored_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/numbers/philox.h"

namespace skein {
namespace {

Placements placed(const Mesh& mesh, const std::map<std::string, Placement>& by_axis) {
  Placements placements(mesh.num_axes(), Placement::replicated());
  for (const auto& [axis, placement] : by_axis) placements.at(mesh.find(axis)) = placement;
  return placements;
}

// How often each element of the tensor is stored by the ranks of pipeline stage `stage`.
std::vector<int> times_stored(const TensorType& type, const Mesh& mesh, int64_t stage) {
  std::vector<int> times(type.shape.num_elements(), 0);
  for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
    const int pp = mesh.find("pp");
    if (pp >= 0 && mesh.coordinates(rank)[pp] != stage) continue;
    const StoredPart part = stored_part(type, mesh, rank);
    // A matrix: element e of the box is at (e / cols, e % cols) of it.
    for (int64_t e = part.range.begin; e < part.range.begin + part.range.count; ++e) {
      const int64_t cols = part.box.shape.dim(1);
      const int64_t row = part.box.offset[0] + e / cols, col = part.box.offset[1] + e % cols;
      ++times.at(row * type.shape.dim(1) + col);
    }
    // What is stored lies in this rank's memory, at the given place.
    const FlatRange held = type.local_range(mesh, rank);
    EXPECT_EQ(part.box, type.local_box(mesh, rank));
    if (part.range.count == 0) continue;
    EXPECT_EQ(held.begin + part.local_begin, part.range.begin);
    EXPECT_LE(part.local_begin + part.range.count, held.count);
  }
  return times;
}

TEST(StoredPart, EveryElementOnceWhateverThePlacement) {
  const std::vector<Mesh> meshes = {
      Mesh::standard(1, 1, 1, 1), Mesh::standard(2, 3, 1, 2), Mesh::standard(1, 2, 2, 4),
      Mesh({{"pp", 2}, {"dp", 2}, {"cp", 1}, {"kv", 2}, {"replica", 3}})};
  const Philox random(3, RandomPurpose::kDataOrder, 0, 0);
  uint64_t draw = 0;
  for (const Mesh& mesh : meshes) {
    for (int trial = 0; trial < 40; ++trial) {
      TensorType type = TensorType::replicated(DType::kF32, {48, 96}, mesh);
      for (int axis = mesh.find("pp") + 1; axis < mesh.num_axes(); ++axis) {
        const int choice = static_cast<int>(random.word(draw++) % 4);
        if (choice < 2) type.placements[axis] = Placement::sharded(choice);
        if (choice == 2) type.placements[axis] = Placement::flat();
      }
      for (int64_t stage = 0; stage < mesh.size("pp"); ++stage) {
        const std::vector<int> times = times_stored(type, mesh, stage);
        EXPECT_EQ(std::count(times.begin(), times.end(), 1), type.shape.num_elements())
            << type.to_string(mesh) << " on " << mesh.to_string();
      }
    }
  }
}

TEST(StoredPart, DataParallelRanksShareWhatTheyAllHold) {
  const Mesh mesh = Mesh::standard(1, 4, 1, 1);
  const TensorType type = TensorType::replicated(DType::kBF16, {100, 64}, mesh);  // 6.25 granules
  int64_t next = 0;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const StoredPart part = stored_part(type, mesh, rank);
    EXPECT_EQ(part.range.begin, next);
    EXPECT_EQ(part.local_begin, next);
    EXPECT_EQ(part.range.count, rank < 3 ? 2 * kFlatGranule : 100 * 64 - 6 * kFlatGranule);
    next += part.range.count;
  }
  const TensorType norm = TensorType::replicated(DType::kBF16, {500}, mesh);
  EXPECT_EQ(stored_part(norm, mesh, 0).range.count, 500);
  EXPECT_EQ(stored_part(norm, mesh, 1).range.count, 0);
}

TEST(StoredPart, OfAFlatValueIsWhatTheRankHolds) {
  const Mesh mesh = Mesh::standard(1, 2, 1, 2);
  const TensorType type{DType::kF32,
                        {64, 64},
                        placed(mesh, {{"dp", Placement::flat()}, {"tp", Placement::sharded(1)}})};
  const StoredPart part = stored_part(type, mesh, 3);  // dp 1, tp 1
  EXPECT_EQ(part.box, (Box{{0, 32}, {64, 32}}));
  EXPECT_EQ(part.range.begin, kFlatGranule);
  EXPECT_EQ(part.range.count, kFlatGranule);
  EXPECT_EQ(part.local_begin, 0);
}

TEST(StoredPart, RefusesASumThatIsOwed) {
  const Mesh mesh = Mesh::standard(1, 2, 1, 1);
  const TensorType type{DType::kF32, {4}, placed(mesh, {{"dp", Placement::partial()}})};
  EXPECT_THROW(stored_part(type, mesh, 0), Error);
}

}  // namespace
}  // namespace skein
