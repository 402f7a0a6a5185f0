#include "skein/ops/geglu/geglu.h"

#include "tests/ops/largest_testing.h"

namespace skein {
namespace {

using namespace op_test;

double gelu_of(double x, bool approximate) {
  if (!approximate) return 0.5 * x * std::erfc(-x * M_SQRT1_2);
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

OpCase make_case(bool approximate, Tensor gate, Tensor up) {
  OpCase test{.op = &kGeglu,
              .attrs = {{"approximate", approximate}},
              .inputs = {std::move(gate), std::move(up)}};
  test.reference = [=](const Tensors& in) -> Outputs {
    std::vector<double> y(in[0].values.size());
    for (size_t i = 0; i < y.size(); ++i) y[i] = gelu_of(in[0][i], approximate) * in[1][i];
    return {y};
  };
  test.tolerance = 1e-6;
  return test;
}

TEST(Geglu, MeetsItsReference) {
  for (const bool approximate : {false, true}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const Shape& shape : {Shape{1, 1}, Shape{3, 7}, Shape{17, 33}, Shape{9, 1408}}) {
        check_op(make_case(approximate, random_tensor(dtype, shape, 1, 2.0),
                           random_tensor(dtype, shape, 2)));
      }
    }
  }
}

TEST(Geglu, IsFiniteForHugeGates) {
  const Tensor gate = make_tensor(DType::kF32, {1, 4}, [](int64_t i) {
    return std::array<double, 4>{-1e30, -200, 200, 1e30}[i];
  });
  const Tensor up = make_tensor(DType::kF32, {1, 4}, [](int64_t) { return 1.0; });
  for (const bool approximate : {false, true}) {
    const OpCase test = make_case(approximate, gate, up);
    BuiltCase built = build(test, 1);
    const SingleNodeBackward backward(built.graph, test, built.inputs);
    const GraphRun run(built.graph, built.inputs, {});
    for (const ValueId id :
         {built.graph.nodes()[0].outputs[0], backward.grad(0), backward.grad(1)}) {
      for (const double value : run.read(id)) EXPECT_TRUE(std::isfinite(value)) << value;
    }
  }
}

TEST(Geglu, FindsTheLargestMagnitudeWhenAsked) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 7}, {9, 1408}, {5, 2600}}) {
    for (const OpDef* op : {&kGeglu, &kGegluBackward}) {
      OpCase test{.op = op, .attrs = {{"approximate", rows == 3}}};
      const int outputs = op == &kGeglu ? 1 : 2;
      for (int i = 0; i < 1 + outputs; ++i) {
        test.inputs.push_back(random_tensor(DType::kBF16, {rows, cols}, 1 + i, 3.0));
      }
      if (rows == 5) test.inputs[0].values[1] = std::nan("");
      if (rows == 5) test.inputs[1].values.back() = -200;
      check_largest(std::move(test), outputs);
    }
  }
}

TEST(Geglu, RefusesPartialOperands) {
  Graph graph(Mesh::standard(1, 1, 1, 2));
  TensorType type = TensorType::replicated(DType::kF32, {4, 8}, graph.mesh());
  type.placements[3] = Placement::partial();
  const ValueId gate = graph.add_input(Role::kInput, "gate", type);
  const ValueId up = graph.add_input(Role::kInput, "up", type);
  EXPECT_THROW(geglu(graph, gate, up, false, "y"), Error);
}

}  // namespace
}  // namespace skein
