#include "skein/ops/sum/sum.h"

#include "skein/ops/testing/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Outputs reference(const Tensors& in) {
  double sum = in[0][0];
  for (const double term : in[1].values) sum += term;
  return {{sum}};
}

TEST(AddToSum, MeetsItsReference) {
  for (const int64_t count : {1, 2, 3, 7, 64, 1025}) {
    Tensor sum = random_tensor(DType::kF64, {1}, 1);
    check_op({.op = &kAddToSum,
              .inputs = {sum, random_tensor(DType::kF32, {count}, 2)},
              .reference = reference,
              .tolerance = 1e-13,
              .unit_grad = true});
  }
}

TEST(AddToSum, IsAFixedTree) {
  // Exact only if the two large terms meet first.
  Tensor terms = make_tensor(DType::kF32, {4}, [](int64_t i) {
    return std::array<double, 4>{0x1p60, -0x1p60, 1, 2}[i];
  });
  const OpCase test{.op = &kAddToSum,
                    .inputs = {make_tensor(DType::kF64, {1}, [](int64_t) { return 0.0; }), terms}};
  const BuiltCase built = build(test, 1);
  const GraphRun run(built.graph, built.inputs, {});
  EXPECT_EQ(run.read(built.graph.nodes()[0].outputs[0]), std::vector<double>{3.0});
}

TEST(AddToSum, OfASplitBatchIsPartial) {
  Graph graph(Mesh::standard(1, 2, 1, 1));
  TensorType sum = TensorType::replicated(DType::kF64, {1}, graph.mesh());
  TensorType terms = TensorType::replicated(DType::kF32, {8}, graph.mesh());
  terms.placements[1] = Placement::sharded(0);
  const ValueId t = graph.add_input(Role::kInput, "terms", terms);
  const ValueId whole = graph.add_input(Role::kGradient, "whole", sum);
  EXPECT_THROW(add_to_sum(graph, whole, t), Error);  // would count `whole` twice
  sum.placements[1] = Placement::partial();
  const ValueId part = graph.add_input(Role::kGradient, "part", sum);
  EXPECT_EQ(graph.type(add_to_sum(graph, part, t)).placements[1], Placement::partial());
}

}  // namespace
}  // namespace skein
