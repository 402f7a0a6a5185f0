#include "skein/ops/sum_squares/sum_squares.h"

#include "skein/ops/testing/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Outputs reference(const Tensors& in) {
  Outputs chunks;
  for (const Tensor& x : in) {
    chunks.emplace_back();
    for (size_t i = 0; i < x.values.size(); ++i) {
      if (i % kSumSquaresChunk == 0) chunks.back().push_back(0);
      chunks.back().back() += x[i] * x[i];
    }
  }
  return chunks;
}

Tensor parameter(DType dtype, const Shape& shape, uint32_t stream) {
  return random_tensor(dtype, shape, stream, 1.0, Role::kParameter);
}

TEST(SumSquares, MeetsItsReference) {
  check_op({.op = &kSumSquares,
            .inputs = {parameter(DType::kF32, {1}, 1), parameter(DType::kBF16, {3, 7}, 2),
                       parameter(DType::kF32, {65536}, 3), parameter(DType::kBF16, {65537}, 4),
                       parameter(DType::kF32, {401, 333}, 5), parameter(DType::kF32, {31}, 6)},
            .reference = reference,
            .tolerance = 1e-13});
}

TEST(TreeSum, MeetsItsReference) {
  for (const int64_t count : {1, 2, 5, 100}) {
    check_op(
        {.op = &kTreeSum,
         .inputs = {random_tensor(DType::kF64, {count}, 1), random_tensor(DType::kF64, {3}, 2)},
         .reference =
             [](const Tensors& in) {
               double sum = 0;
               for (const Tensor& x : in) {
                 for (const double term : x.values) sum += term;
               }
               return Outputs{{sum}};
             },
         .tolerance = 1e-12});
  }
}

// The sum must not depend on how the chunks are grouped into tensors.
TEST(TreeSum, GivesTheSameBitsHoweverTheChunksAreGrouped) {
  const Tensor all = random_tensor(DType::kF64, {37}, 1);
  std::vector<double> sums;
  for (const int64_t cut : {1, 8, 17, 36}) {
    Tensor head{DType::kF64, {cut}, {all.values.begin(), all.values.begin() + cut}};
    Tensor tail{DType::kF64, {37 - cut}, {all.values.begin() + cut, all.values.end()}};
    const BuiltCase built = build({.op = &kTreeSum, .inputs = {head, tail}}, 1);
    const GraphRun run(built.graph, built.inputs, {});
    sums.push_back(run.read(built.graph.nodes()[0].outputs[0])[0]);
  }
  for (const double sum : sums) EXPECT_EQ(sum, sums[0]);
}

TEST(SumSquares, KeepsChunksWholeOnEveryRank) {
  Graph graph(Mesh::standard(1, 2, 1, 1));
  TensorType type = TensorType::replicated(DType::kF32, {4, 65536}, graph.mesh());
  type.placements[1] = Placement::sharded(0);
  const ValueId whole = graph.add_input(Role::kGradient, "whole", type);
  EXPECT_EQ(graph.type(sum_squares(graph, {whole}, {"a"})[0]).placements[1], Placement::sharded(0));
  type.shape = {4, 100};
  const ValueId cut = graph.add_input(Role::kGradient, "cut", type);
  EXPECT_THROW(sum_squares(graph, {cut}, {"b"}), Error);
  type.placements[1] = Placement::partial();
  const ValueId owed = graph.add_input(Role::kGradient, "owed", type);
  EXPECT_THROW(sum_squares(graph, {owed}, {"c"}), Error);
}

}  // namespace
}  // namespace skein
