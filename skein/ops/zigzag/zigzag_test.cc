#include "skein/ops/zigzag/zigzag.h"

#include <numeric>

#include "tests/ops/op_harness.h"
#include "tests/ops/rank_run.h"

namespace skein {
namespace {

using namespace op_test;

TEST(Zigzag, DealsPiecesFromBothEnds) {
  EXPECT_EQ(zigzag_rows(1, 8, 2, 0), (std::vector<int64_t>{0, 1, 6, 7}));
  EXPECT_EQ(zigzag_rows(1, 8, 2, 1), (std::vector<int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(zigzag_rows(2, 6, 3, 1), (std::vector<int64_t>{1, 4, 7, 10}));
  EXPECT_EQ(zigzag_rows(2, 4, 1, 0), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_THROW(zigzag_rows(1, 6, 2, 0), Error);
  EXPECT_THROW(zigzag_rows(1, 8, 2, 2), Error);
}

TEST(Zigzag, IsAPermutationOfWhichEachRankHoldsAsManyPairs) {
  for (const int64_t parts : {1, 2, 3, 4, 7}) {
    const int64_t sequences = 3, length = 10 * parts;
    std::vector<int64_t> all;
    for (int64_t rank = 0; rank < parts; ++rank) {
      int64_t pairs = 0;
      for (const int64_t row : zigzag_rows(sequences, length, parts, rank)) {
        all.push_back(row);
        pairs += row % length + 1;
      }
      EXPECT_EQ(pairs, sequences * length * (length + 1) / 2 / parts);
    }
    std::sort(all.begin(), all.end());
    std::vector<int64_t> natural(sequences * length);
    std::iota(natural.begin(), natural.end(), 0);
    EXPECT_EQ(all, natural);
  }
}

Outputs reference(const Tensors& in, int64_t length, int64_t parts, bool inverse) {
  const int64_t rows = in[0].shape.dim(0), cols = in[0].shape.num_elements() / rows;
  std::vector<double> y(in[0].values.size());
  int64_t i = 0;
  for (int64_t rank = 0; rank < parts; ++rank) {
    for (const int64_t row : zigzag_rows(rows / length, length, parts, rank)) {
      for (int64_t col = 0; col < cols; ++col) {
        y[(inverse ? row : i) * cols + col] = in[0][(inverse ? i : row) * cols + col];
      }
      ++i;
    }
  }
  return {y};
}

TEST(Zigzag, MeetsItsReference) {
  for (const bool inverse : {false, true}) {
    for (const int64_t parts : {1, 2, 3, 4}) {
      for (const Tensor& x :
           {random_tensor(DType::kF32, {48, 5}), random_tensor(DType::kBF16, {72, 33}),
            random_tensor(DType::kF32, {48})}) {
        check_op(
            {.op = &kZigzag,
             .attrs = {{"sequence_length", int64_t{24}}, {"parts", parts}, {"inverse", inverse}},
             .inputs = {x},
             .reference = [&](const Tensors& in) { return reference(in, 24, parts, inverse); },
             .tolerance = 0.0});
      }
    }
  }
}

TEST(Zigzag, RanksPermuteTheirOwnRows) {
  Graph graph(Mesh({{"dp", 2}, {"cp", 2}, {"tp", 2}}));
  const Tensor x = random_tensor(DType::kF32, {32, 6});
  const ValueId id = graph.add_input(Role::kInput, "x", placed_type(x.dtype, x.shape, "S0 P S1"));
  const ValueId there = zigzag(graph, id, 8, 2, false, "there");
  const ValueId back = zigzag(graph, there, 8, 2, true, "back");
  EXPECT_EQ(graph.type(back), graph.type(id));
  const RankRun run(graph, {{id, x}}, 3);
  EXPECT_EQ(run.whole(back), x.values);
  EXPECT_NE(run.whole(there), x.values);
  EXPECT_THROW(zigzag(graph, id, 12, 2, false, "y"), Error);  // 16 rows a rank
  EXPECT_THROW(zigzag(graph, id, 8, 3, false, "y"), Error);
}

}  // namespace
}  // namespace skein
