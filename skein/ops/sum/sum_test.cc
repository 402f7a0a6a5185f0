#include "skein/ops/sum/sum.h"

#include "skein/base/numbers/exact_sum.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

const Shape kBinsShape = {exact_sum::kBins};

Tensor bins_of(const std::vector<double>& terms) {
  Tensor bins = make_tensor(DType::kF64, kBinsShape, [](int64_t) { return 0.0; });
  for (const double term : terms) exact_sum::add(bins.values.data(), term);
  return bins;
}

// Adds in reverse order, and the sum last.
Outputs reference(const Tensors& in) {
  Tensor bins = bins_of({in[1].values.rbegin(), in[1].values.rend()});
  exact_sum::add_all(bins.values.data(), in[0].values.data());
  return {bins.values};
}

std::vector<double> run_case(const OpCase& test) {
  const BuiltCase built = build(test, 1);
  const GraphRun run(built.graph, built.inputs, {});
  return run.read(built.graph.nodes()[0].outputs[0]);
}

TEST(AddToSum, MeetsItsReference) {
  for (const int64_t count : {1, 2, 3, 7, 64, 1025}) {
    check_op({.op = &kAddToSum,
              .inputs = {bins_of({0.5, 2, -1e-10}), random_tensor(DType::kF32, {count}, 2)},
              .reference = reference,
              .tolerance = 1e-13,
              .unit_grad = true});
  }
}

TEST(AddToSum, IsExactInAnyOrder) {
  const std::vector<double> values = {0x1p60, 1, -0x1p60, 0x1p-40, 2, -0x1p100, 0x1p100};
  for (size_t turn = 0; turn < values.size(); ++turn) {
    const Tensor terms =
        make_tensor(DType::kF32, {7}, [&](int64_t i) { return values[(i + turn) % 7]; });
    const auto sum = run_case({.op = &kAddToSum, .inputs = {bins_of({3}), terms}});
    EXPECT_EQ(exact_sum::total(sum.data()), 6 + 0x1p-40);
  }
}

TEST(AddToSum, OfASplitBatchIsPartial) {
  Graph graph(Mesh::standard(1, 2, 1, 1));
  TensorType sum = TensorType::replicated(DType::kF64, kBinsShape, graph.mesh());
  TensorType terms = TensorType::replicated(DType::kF32, {8}, graph.mesh());
  const ValueId all = graph.add_input(Role::kInput, "all", terms);
  const ValueId whole = graph.add_input(Role::kGradient, "whole", sum);
  EXPECT_EQ(graph.type(add_to_sum(graph, whole, all)).placements[1], Placement::replicated());
  terms.placements[1] = Placement::sharded(0);
  const ValueId split = graph.add_input(Role::kInput, "split", terms);
  EXPECT_THROW(add_to_sum(graph, whole, split), Error);  // would count `whole` twice
  sum.placements[1] = Placement::partial();
  const ValueId part = graph.add_input(Role::kGradient, "part", sum);
  EXPECT_EQ(graph.type(add_to_sum(graph, part, split)).placements[1], Placement::partial());
  EXPECT_THROW(add_to_sum(graph, part, all), Error);  // would count `all` twice
}

}  // namespace
}  // namespace skein
