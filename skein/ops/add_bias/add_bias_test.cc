#include "skein/ops/add_bias/add_bias.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Outputs reference(const Tensors& in) {
  const int64_t cols = in[0].shape.dim(1);
  std::vector<double> y(in[0].values.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = in[0][i] + in[1][static_cast<int64_t>(i) % cols];
  return {y};
}

TEST(AddBias, MeetsItsReference) {
  for (const auto& [dtype, bias_dtype] : {std::pair{DType::kF32, DType::kF32},
                                          {DType::kBF16, DType::kBF16},
                                          {DType::kBF16, DType::kF32}}) {
    for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 7}, {130, 33}, {64, 128}}) {
      check_op({.op = &kAddBias,
                .inputs = {random_tensor(dtype, {rows, cols}, 1),
                           random_tensor(bias_dtype, {cols}, 2, 1.0, Role::kParameter)},
                .reference = reference});
    }
  }
}

TEST(AddBias, IsAddedOnceWhereTokensAreSplit) {
  Graph graph(Mesh::standard(1, 1, 1, 2));
  const int axis = graph.mesh().find("tp");
  TensorType type = TensorType::replicated(DType::kF32, {4, 8}, graph.mesh());
  const ValueId b = graph.add_input(Role::kParameter, "b",
                                    TensorType::replicated(DType::kF32, {8}, graph.mesh()));
  type.placements[axis] = Placement::sharded(0);
  const ValueId rows = graph.add_input(Role::kInput, "rows", type);
  EXPECT_EQ(graph.type(add_bias(graph, rows, b, "y")).placements[axis], Placement::sharded(0));
  type.placements[axis] = Placement::partial();
  const ValueId terms = graph.add_input(Role::kInput, "terms", type);
  EXPECT_THROW(add_bias(graph, terms, b, "z"), Error);  // every rank would add it
}

}  // namespace
}  // namespace skein
