#include "skein/ops/gelu/gelu.h"

#include "tests/ops/largest_testing.h"

namespace skein {
namespace {

using namespace op_test;

// gelu(x) / x, in the form that is asked for.
double share_of(double x, bool approximate) {
  if (!approximate) return 0.5 * std::erfc(-x * M_SQRT1_2);
  return 1 / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double slope_of(double x, bool approximate) {
  const double s = share_of(x, approximate);
  if (!approximate) return s + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
  return s + x * s * (1 - s) * std::sqrt(2 / M_PI) * (2 + 6 * 0.044715 * x * x);
}

OpCase make_case(bool approximate, Tensor x) {
  OpCase test{.op = &kGelu, .attrs = {{"approximate", approximate}}, .inputs = {std::move(x)}};
  test.reference = [=](const Tensors& in) -> Outputs {
    std::vector<double> y(in[0].values.size());
    for (size_t i = 0; i < y.size(); ++i) y[i] = in[0][i] * share_of(in[0][i], approximate);
    return {y};
  };
  test.tolerance = 1e-6;
  return test;
}

TEST(Gelu, MeetsItsReference) {
  for (const bool approximate : {false, true}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const Shape& shape : {Shape{1, 1}, Shape{3, 7}, Shape{17, 33}, Shape{9, 1408}}) {
        check_op(make_case(approximate, random_tensor(dtype, shape, 1, 2.0)));
      }
    }
  }
}

TEST(Gelu, IsExactWithoutTheAttr) {
  OpCase test = make_case(false, random_tensor(DType::kF32, {5, 33}, 1, 2.0));
  test.attrs = {};
  check_op(test);
}

struct Results {
  std::vector<double> y, dx, dy;
};
Results run_both(const OpCase& test) {
  BuiltCase built = build(test, 1);
  const SingleNodeBackward backward(built.graph, test, built.inputs);
  const GraphRun run(built.graph, built.inputs, {});
  return {run.read(built.graph.nodes()[0].outputs[0]), run.read(backward.grad(0)),
          backward.output_grads().at(0).values};
}

// Each element is accurate to a few ulp, and below zero to what the rounding of the exponent takes
// from its power.
TEST(Gelu, IsAccurateForEveryX) {
  const int64_t count = 26000;
  const Tensor x =
      make_tensor(DType::kF32, {1, count}, [](int64_t i) { return (i - 13000) * 0.001; });
  for (const bool approximate : {false, true}) {
    const Results got = run_both(make_case(approximate, x));
    for (int64_t i = 0; i < count; ++i) {
      const double share = share_of(x[i], approximate);
      const double digits = 6e-7 + 2e-7 * (x[i] < 0 ? -std::log(share) : 0);
      ASSERT_NEAR(got.y[i], x[i] * share, digits * std::abs(x[i] * share) + 2e-36) << x[i];
      ASSERT_NEAR(got.dx[i], got.dy[i] * slope_of(x[i], approximate), 2e-6 * std::abs(got.dy[i]))
          << x[i];
    }
  }
}

TEST(Gelu, HoldsAtTheEnds) {
  for (const bool approximate : {false, true}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const Tensor x = make_tensor(dtype, {1, 8}, [](int64_t i) {
        return std::array<double, 8>{-1e30, -200, -20, 0, 20, 200, 1e30, std::nan("")}[i];
      });
      const Results got = run_both(make_case(approximate, x));
      for (int64_t i = 0; i < 7; ++i) {
        const double want_y = std::max(x[i], 0.0), want_slope = x[i] == 0 ? 0.5 : x[i] > 0;
        EXPECT_NEAR(got.y[i], want_y, 1e-7) << x[i];
        EXPECT_NEAR(got.dx[i], got.dy[i] * want_slope, 1e-2 * std::abs(got.dy[i])) << x[i];
      }
      EXPECT_TRUE(std::isnan(got.y[7]));
      EXPECT_TRUE(std::isnan(got.dx[7]));
    }
  }
}

// In bf16 powers and reciprocals are coarse, which must not show.
TEST(Gelu, RoundsToBf16ForEveryX) {
  const int64_t count = 4000;
  const Tensor x = make_tensor(DType::kBF16, {1, count}, [](int64_t i) {
    const double near = (static_cast<double>(i) - 2000) * 0.0064;
    return i % 4 == 0 && near > 0 ? near * near * near * near * near : near;
  });
  for (const bool approximate : {false, true}) {
    const Results got = run_both(make_case(approximate, x));
    for (int64_t i = 0; i < count; ++i) {
      const double want = x[i] * share_of(x[i], approximate);
      ASSERT_NEAR(got.y[i], want, 0x1.1p-8 * std::abs(want) + 1e-35) << x[i];
      const double slope = got.dy[i] * slope_of(x[i], approximate);
      ASSERT_NEAR(got.dx[i], slope, 0x1.1p-8 * std::abs(slope) + 3e-5 * std::abs(got.dy[i]))
          << x[i];
    }
  }
}

TEST(Gelu, FindsTheLargestMagnitudeWhenAsked) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 7}, {9, 1408}, {5, 2600}}) {
    for (const OpDef* op : {&kGelu, &kGeluBackward}) {
      OpCase test{.op = op, .attrs = {{"approximate", rows == 3}}};
      for (int i = 0; i < (op == &kGelu ? 1 : 2); ++i) {
        test.inputs.push_back(random_tensor(DType::kBF16, {rows, cols}, 1 + i, 3.0));
      }
      if (rows == 5) test.inputs[0].values[1] = std::nan("");
      if (rows == 5) test.inputs.back().values.back() = -200;
      check_largest(std::move(test), 1);
    }
  }
}

TEST(Gelu, PlacesRowsAndColumnsButNoPendingSums) {
  Graph graph(Mesh::standard(1, 1, 1, 2));
  TensorType type = TensorType::replicated(DType::kF32, {4, 8}, graph.mesh());
  for (const Placement placement : {Placement::sharded(0), Placement::sharded(1)}) {
    type.placements[3] = placement;
    const std::string name = placement.to_string();
    const ValueId x = graph.add_input(Role::kInput, "x" + name, type);
    const ValueId y = gelu(graph, x, false, "y" + name);
    EXPECT_EQ(graph.type(y).placements[3], placement);
    EXPECT_EQ(graph.type(gelu_backward(graph, y, x, false, "dx" + name)).placements[3], placement);
  }
  type.placements[3] = Placement::partial();
  const ValueId x = graph.add_input(Role::kInput, "x", type);
  EXPECT_THROW(gelu(graph, x, false, "y"), Error);
}

}  // namespace
}  // namespace skein
