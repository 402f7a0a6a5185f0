#include "skein/ops/swiglu/swiglu.h"

#include "tests/ops/largest_testing.h"

namespace skein {
namespace {

using namespace op_test;

Outputs reference(const Tensors& in) {
  std::vector<double> y(in[0].values.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = in[0][i] / (1 + std::exp(-in[0][i])) * in[1][i];
  return {y};
}

TEST(Swiglu, MeetsItsReference) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 7}, {17, 33}, {9, 1408}}) {
      check_op({.op = &kSwiglu,
                .inputs = {random_tensor(dtype, {rows, cols}, 1, 3.0),
                           random_tensor(dtype, {rows, cols}, 2)},
                .reference = reference,
                .tolerance = 1e-6});
    }
  }
}

// Each element is accurate to a few ulp, over the whole range of the exponential.
TEST(Swiglu, IsAccurateForEveryGate) {
  const int64_t count = 20000;
  const Tensor gate =
      make_tensor(DType::kF32, {1, count}, [](int64_t i) { return (i - 10000) * 0.0087; });
  const Tensor up = make_tensor(DType::kF32, {1, count}, [](int64_t) { return 1.0; });
  const OpCase test{.op = &kSwiglu, .inputs = {gate, up}, .reference = reference};
  const Outputs want = reference(test.inputs);
  const BuiltCase built = build(test, 1);
  const GraphRun run(built.graph, built.inputs, {});
  const std::vector<double> got = run.read(built.graph.nodes()[0].outputs[0]);
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_NEAR(got[i], want[0][i], 6e-7 * std::abs(want[0][i]) + 1e-36) << "gate " << gate[i];
  }
}

TEST(Swiglu, IsFiniteForHugeGates) {
  const Tensor gate = make_tensor(DType::kF32, {1, 4}, [](int64_t i) {
    return std::array<double, 4>{-1e30, -200, 200, 1e30}[i];
  });
  const Tensor up = make_tensor(DType::kF32, {1, 4}, [](int64_t) { return 1.0; });
  const OpCase test{.op = &kSwiglu, .inputs = {gate, up}, .reference = reference};
  BuiltCase built = build(test, 1);
  const SingleNodeBackward backward(built.graph, test, built.inputs);
  const GraphRun run(built.graph, built.inputs, {});
  for (const ValueId id : {built.graph.nodes()[0].outputs[0], backward.grad(0), backward.grad(1)}) {
    for (const double value : run.read(id)) EXPECT_TRUE(std::isfinite(value)) << value;
  }
}

// In bf16 powers and reciprocals are coarse, which must not show, however large the gate is.
TEST(Swiglu, RoundsToBf16ForEveryGate) {
  const int64_t count = 4000;
  const Tensor gate = make_tensor(DType::kBF16, {1, count}, [](int64_t i) {
    const double near = (static_cast<double>(i) - 2000) * 0.04;
    return i % 4 == 0 && near > 0 ? near * near * near : near;  // up to half a million
  });
  const Tensor one = make_tensor(DType::kBF16, {1, count}, [](int64_t) { return 1.0; });
  const OpCase test{.op = &kSwiglu, .inputs = {gate, one}, .reference = reference};
  BuiltCase built = build(test, 1);
  const SingleNodeBackward backward(built.graph, test, built.inputs);
  const GraphRun run(built.graph, built.inputs, {});
  const std::vector<double> y = run.read(built.graph.nodes()[0].outputs[0]);
  const Tensor grad_y = random_tensor(DType::kBF16, {1, count}, 900);  // what backward takes
  const std::vector<double> dgate = run.read(backward.grad(0));
  for (int64_t i = 0; i < count; ++i) {
    const double g = gate[i], s = 1 / (1 + std::exp(-g));
    ASSERT_NEAR(y[i], g * s, 0x1.1p-8 * std::abs(g * s) + 1e-35) << "gate " << g;
    const double want = grad_y[i] * s * (1 + g / (1 + std::exp(g)));
    ASSERT_NEAR(dgate[i], want, 0x1.1p-8 * std::abs(want) + 1e-5 * std::abs(grad_y[i] * s)) << g;
  }
}

TEST(Swiglu, FindsTheLargestMagnitudeWhenAsked) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 7}, {9, 1408}, {5, 2600}}) {
    for (const OpDef* op : {&kSwiglu, &kSwigluBackward}) {
      OpCase test{.op = op};
      const int outputs = op == &kSwiglu ? 1 : 2;
      for (int i = 0; i < 1 + outputs; ++i) {
        test.inputs.push_back(random_tensor(DType::kBF16, {rows, cols}, 1 + i, 3.0));
      }
      if (rows == 5) test.inputs[0].values[1] = std::nan("");
      if (rows == 5) test.inputs[1].values.back() = -200;
      check_largest(std::move(test), outputs);
    }
  }
}

TEST(Swiglu, RefusesPartialOperands) {
  Graph graph(Mesh::standard(1, 1, 1, 2));
  TensorType type = TensorType::replicated(DType::kF32, {4, 8}, graph.mesh());
  type.placements[3] = Placement::partial();
  const ValueId gate = graph.add_input(Role::kInput, "gate", type);
  const ValueId up = graph.add_input(Role::kInput, "up", type);
  EXPECT_THROW(swiglu(graph, gate, up, "y"), Error);
}

}  // namespace
}  // namespace skein
