#include "skein/ops/split/split.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Outputs split_reference(const Tensors& in, const std::vector<int64_t>& sizes) {
  Outputs slices;
  auto next = in[0].values.begin();
  const int64_t cols = in[0].shape.rank() == 1 ? 1 : in[0].shape.dim(1);
  for (const int64_t size : sizes) {
    slices.emplace_back(next, next + size * cols);
    next += size * cols;
  }
  return slices;
}

Outputs concat_reference(const Tensors& in) {
  std::vector<double> y;
  for (const Tensor& part : in) y.insert(y.end(), part.values.begin(), part.values.end());
  return {y};
}

TEST(Split, TakesRowSlices) {
  const std::vector<int64_t> sizes = {4, 1, 2};
  for (const Tensor& x : {random_tensor(DType::kF32, {7, 5}), random_tensor(DType::kBF16, {7, 5}),
                          random_ids({7}, 100)}) {
    check_op({.op = &kSplit,
              .attrs = {{"sizes", sizes}},
              .inputs = {x},
              .reference = [&](const Tensors& in) { return split_reference(in, sizes); },
              .tolerance = 0,
              .output_grads = {0, 1, 2}});
  }
}

TEST(Concat, JoinsRows) {
  check_op({.op = &kConcat,
            .inputs = {random_tensor(DType::kF32, {4, 5}, 1), random_tensor(DType::kF32, {1, 5}, 2),
                       random_tensor(DType::kF32, {2, 5}, 3)},
            .reference = concat_reference,
            .tolerance = 0});
  check_op({.op = &kConcat,
            .inputs = {random_ids({4}, 9), random_ids({3}, 9)},
            .reference = concat_reference,
            .tolerance = 0,
            .output_grads = {}});
}

TEST(Split, RefusesSizesThatDoNotFit) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{4, 4}, {4, 2}, {8, -1}, {7, 0}, {}, {INT64_MAX, INT64_MAX}}) {
    const OpCase test{
        .op = &kSplit, .attrs = {{"sizes", sizes}}, .inputs = {random_tensor(DType::kF32, {7, 5})}};
    EXPECT_THROW(build(test, static_cast<int>(sizes.size())), Error);
  }
}

TEST(Split, TakesEachRanksOwnRows) {
  Graph graph(Mesh::standard(1, 2, 1, 1));
  TensorType type = TensorType::replicated(DType::kF32, {8, 4}, graph.mesh());
  type.placements[1] = Placement::sharded(0);
  const ValueId x = graph.add_input(Role::kInput, "x", type);
  const auto slices = split(graph, x, {6, 2}, "slice");
  EXPECT_EQ(graph.type(slices[1]).placements[1], Placement::sharded(0));
  EXPECT_EQ(kSplit.layout(graph.call(graph.nodes()[0])).aliases[1].row_offset, 3);
  EXPECT_EQ(graph.type(concat(graph, slices, "y")), type);
  EXPECT_THROW(split(graph, x, {5, 3}, "odd"), Error);
}

}  // namespace
}  // namespace skein
