#include "skein/ops/rope/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/largest_testing.h"

namespace skein {
namespace {

using op_test::OpCase;
using op_test::Outputs;
using op_test::random_tensor;
using op_test::Tensor;
using op_test::Tensors;

constexpr int64_t kPositions = 19;

Tensor table_of(int64_t head_dim) {
  const int64_t half = head_dim / 2;
  return op_test::make_tensor(DType::kF32, {kPositions, head_dim}, [&](int64_t i) {
    const double pair = static_cast<double>(i % half);
    const double angle = static_cast<double>(i / head_dim) * std::pow(100.0, -pair / half);
    return i % head_dim < half ? std::cos(angle) : std::sin(angle);
  });
}

// Rotates the pair (x1, x2) as the complex number x1 + i x2.
std::vector<double> turned(const Tensor& x, const Tensor& positions, const Tensor& table,
                           bool inverse) {
  const int64_t head_dim = table.shape.cols(), half = head_dim / 2;
  std::vector<double> y(x.values.size());
  for (int64_t row = 0; row < x.shape.rows(); ++row) {
    for (int64_t col = 0; col < x.shape.cols(); ++col) {
      const int64_t in_head = col % head_dim, pair = in_head % half;
      const auto position = static_cast<int64_t>(positions[row]);
      const double cosine = table.at(position, pair);
      const double sine = table.at(position, half + pair) * (inverse ? -1 : 1);
      const bool first = in_head < half;
      const double other = x.at(row, first ? col + half : col - half);
      y[row * x.shape.cols() + col] = x.at(row, col) * cosine + (first ? -other : other) * sine;
    }
  }
  return y;
}

OpCase case_of(DType dtype, int64_t tokens, int64_t heads, int64_t kv_heads, int64_t head_dim,
               bool inverse) {
  Tensor table = table_of(head_dim);
  table.role = Role::kOptimizer;  // as everything without a gradient
  return {.op = &kRope,
          .attrs = {{"head_dim", head_dim}, {"inverse", inverse}},
          .inputs = {random_tensor(dtype, {tokens, heads * head_dim}, 1),
                     random_tensor(dtype, {tokens, kv_heads * head_dim}, 2),
                     op_test::random_ids({tokens}, kPositions), table},
          .reference =
              [inverse](const Tensors& in) {
                return Outputs{turned(in[0], in[2], in[3], inverse),
                               turned(in[1], in[2], in[3], inverse)};
              },
          .tolerance = 1e-6,
          .output_grads = {0, 1}};
}

// Blocks of whole warps and of others.
TEST(Rope, FindsTheLargestMagnitudeWhenAsked) {
  for (const int64_t head_dim : {2, 6, 40, 128}) {
    for (const auto& [tokens, heads] : {std::pair{1, 1}, {9, 4}, {70, 3}}) {
      OpCase test = case_of(DType::kBF16, tokens, heads, 1, head_dim, true);
      test.inputs[tokens == 9 ? 0 : 1].values.back() = -50;
      if (tokens == 70) test.inputs[0].values[1] = std::nan("");
      op_test::check_largest(std::move(test), 2);
    }
  }
}

TEST(Rope, MatchesTheDefinition) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool inverse : {false, true}) {
      for (const int64_t head_dim : {2, 6, 24, 40, 64, 96, 128}) {
        op_test::check_op(case_of(dtype, 9, 4, 2, head_dim, inverse));
      }
    }
  }
}

Graph graph_of(const TensorType& q, const TensorType& k, const TensorType& positions,
               const TensorType& table, const Mesh& mesh, int64_t head_dim) {
  Graph graph(mesh);
  const ValueId ids[] = {graph.add_input(Role::kActivation, "q", q),
                         graph.add_input(Role::kActivation, "k", k),
                         graph.add_input(Role::kInput, "positions", positions),
                         graph.add_input(Role::kInput, "table", table)};
  rope(graph, ids[0], ids[1], ids[2], ids[3], head_dim, "q_turned", "k_turned");
  return graph;
}

TEST(Rope, Placements) {
  const Mesh mesh({{"dp", 2}, {"kv", 2}, {"replica", 2}});
  const auto type = [&](DType dtype, Shape shape, const std::string& placements) {
    TensorType result{dtype, std::move(shape), {}};
    for (size_t i = 0; i < placements.size(); ++i) {
      result.placements.push_back(placements[i] == 'R' ? Placement::replicated()
                                                       : Placement::sharded(placements[i] - '0'));
    }
    return result;
  };
  const TensorType positions = type(DType::kI32, {8}, "0RR");
  const TensorType table = type(DType::kF32, {16, 4}, "RRR");
  const Graph graph = graph_of(type(DType::kBF16, {8, 32}, "011"),
                               type(DType::kBF16, {8, 8}, "01R"), positions, table, mesh, 4);
  EXPECT_EQ(graph.type(graph.find("q_turned")), type(DType::kBF16, {8, 32}, "011"));
  EXPECT_EQ(graph.type(graph.find("k_turned")), type(DType::kBF16, {8, 8}, "01R"));
  // Half a head per rank.
  EXPECT_THROW(graph_of(type(DType::kBF16, {8, 32}, "01R"), type(DType::kBF16, {8, 4}, "01R"),
                        positions, table, mesh, 4),
               Error);
  // An odd head_dim.
  EXPECT_THROW(graph_of(type(DType::kBF16, {8, 6}, "0RR"), type(DType::kBF16, {8, 6}, "0RR"),
                        positions, type(DType::kF32, {16, 3}, "RRR"), mesh, 3),
               Error);
  // A table for another head_dim.
  EXPECT_THROW(graph_of(type(DType::kBF16, {8, 32}, "011"), type(DType::kBF16, {8, 8}, "01R"),
                        positions, type(DType::kF32, {16, 8}, "RRR"), mesh, 4),
               Error);
}

// Positions that the data loader should have rejected stay inside the table.
TEST(Rope, ClampsPositions) {
  OpCase test = case_of(DType::kF32, 2, 1, 1, 4, false);
  test.inputs[2].values = {-5, kPositions + 3};
  test.reference = [](const Tensors& in) {
    Tensor positions = in[2];
    positions.values = {0, kPositions - 1};
    return Outputs{turned(in[0], positions, in[3], false), turned(in[1], positions, in[3], false)};
  };
  op_test::check_forward(test, test.reference(test.inputs));
}

}  // namespace
}  // namespace skein
