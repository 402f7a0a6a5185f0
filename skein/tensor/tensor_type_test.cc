#include "skein/tensor/tensor_type.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skein {
namespace {

TEST(Mesh, RanksAreRowMajor) {
  const Mesh mesh = Mesh::standard(2, 3, 1, 4);
  EXPECT_EQ(mesh.num_ranks(), 24);
  EXPECT_EQ(mesh.coordinates(0), (std::vector<int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(mesh.coordinates(23), (std::vector<int64_t>{1, 2, 0, 3}));
  EXPECT_EQ(mesh.coordinates(4), (std::vector<int64_t>{0, 1, 0, 0}));
  EXPECT_THROW(mesh.coordinates(24), Error);
  EXPECT_EQ(mesh.size("dp"), 3);
  EXPECT_EQ(mesh.size("replica"), 1);
}

TEST(TensorType, LocalShapeFollowsFromThePlacements) {
  const Mesh mesh({{"dp", 2}, {"kv", 2}, {"replica", 3}});
  TensorType type = TensorType::replicated(DType::kBF16, {12, 24}, mesh);
  EXPECT_EQ(type.local_shape(mesh), (Shape{12, 24}));
  type.placements = {Placement::sharded(0), Placement::sharded(1), Placement::sharded(1)};
  EXPECT_EQ(type.local_shape(mesh), (Shape{6, 4}));
  EXPECT_EQ(type.local_bytes(mesh), 6 * 4 * 2);
  EXPECT_EQ(type.to_string(mesh), "bf16[12, 24]{dp:S0 kv:S1 replica:S1}");
  type.placements[0] = Placement::partial();
  EXPECT_EQ(type.local_shape(mesh), (Shape{12, 4}));
}

TEST(TensorType, RefusesASplitThatDoesNotDivide) {
  const Mesh mesh({{"tp", 4}});
  TensorType type = TensorType::replicated(DType::kF32, {6}, mesh);
  type.placements[0] = Placement::sharded(0);
  try {
    type.local_shape(mesh);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[6]: dim 0 cannot be split 4 ways over axis tp");
  }
}

TEST(Placement, ParsesWhatItPrints) {
  for (const Placement placement : {Placement::replicated(), Placement::partial(),
                                    Placement::sharded(0), Placement::sharded(12)}) {
    EXPECT_EQ(Placement::parse(placement.to_string()), placement);
  }
  for (const char* text : {"", "S", "S-1", "Sx", "Q", "S1x"}) {
    EXPECT_THROW(Placement::parse(text), Error) << text;
  }
}

TEST(Bfloat16, RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(bfloat16(1.0f)), 1.0f);
  EXPECT_EQ(bfloat16(1.0f + 0x1p-8f).bits, bfloat16(1.0f).bits);                // a tie, to even
  EXPECT_EQ(static_cast<float>(bfloat16(1.0f + 3 * 0x1p-8f)), 1.0f + 0x1p-6f);  // a tie, up
  EXPECT_EQ(static_cast<float>(bfloat16(1.0f + 0x1.1p-8f)), 1.0f + 0x1p-7f);
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(std::nanf("")))));
  EXPECT_TRUE(std::isinf(static_cast<float>(bfloat16(3.4e38f))));
}

TEST(TensorType, FlatRangesAreGranulesInRankOrder) {
  const Mesh mesh = Mesh::standard(1, 4, 1, 2);
  TensorType type = TensorType::replicated(DType::kF32, {6, 1000}, mesh);
  type.placements[1] = Placement::flat();
  type.placements[3] = Placement::sharded(1);
  EXPECT_EQ(type.to_string(mesh), "f32[6, 1000]{dp:F tp:S1}");
  EXPECT_EQ(type.local_shape(mesh), Shape{1024});  // 3000 elements are 3 granules
  EXPECT_EQ(type.local_box(mesh, 3), (Box{{0, 500}, {6, 500}}));
  int64_t covered = 0;
  for (int64_t dp = 0; dp < 4; ++dp) {
    const FlatRange range = type.local_range(mesh, dp * 2);
    EXPECT_EQ(range.begin, std::min<int64_t>(3000, dp * 1024));
    covered += range.count;
  }
  EXPECT_EQ(covered, 3000);
}

// A range over dp is cut into ranges over cp, none of which reaches into the next one over dp.
TEST(TensorType, TheOuterAxisTakesItsRangeFirst) {
  const Mesh mesh = Mesh::standard(1, 2, 2, 1);
  TensorType type = TensorType::replicated(DType::kF32, {5, 1000}, mesh);  // 5 granules
  type.placements[1] = type.placements[2] = Placement::flat();
  EXPECT_EQ(type.to_string(mesh), "f32[5, 1000]{dp:F cp:F}");
  EXPECT_EQ(type.local_shape(mesh), Shape{2048});
  const FlatRange ranges[] = {{0, 2048}, {2048, 1024}, {3072, 1928}, {5000, 0}};
  for (int64_t rank = 0; rank < 4; ++rank) EXPECT_EQ(type.local_range(mesh, rank), ranges[rank]);
  type.placements[2] = Placement::replicated();
  EXPECT_EQ(type.local_range(mesh, 0), (FlatRange{0, 3072}));
  EXPECT_EQ(type.local_range(mesh, 3), (FlatRange{3072, 1928}));
}

TEST(TensorType, TheOuterAxisCutsADimFirst) {
  const Mesh mesh({{"kv", 2}, {"replica", 3}});
  const TensorType type{DType::kF32, {12}, {Placement::sharded(0), Placement::sharded(0)}};
  EXPECT_EQ(type.local_box(mesh, 4), (Box{{8}, {2}}));  // the second half's second third
}

}  // namespace
}  // namespace skein
