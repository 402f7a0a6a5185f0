#include "skein/ops/rms_norm/rms_norm.h"

#include "tests/ops/largest_testing.h"

namespace skein {
namespace {

using namespace op_test;

constexpr double kEpsilon = 1e-3;

Outputs reference(const Tensors& in) {
  const int64_t rows = in[0].shape.dim(0), cols = in[0].shape.dim(1);
  std::vector<double> y(rows * cols), h(rows * cols), rstd(rows);
  for (int64_t row = 0; row < rows; ++row) {
    double squares = 0;
    for (int64_t col = 0; col < cols; ++col) {
      double& value = h[row * cols + col];
      value = in[0].at(row, col) + (in[1].values.empty() ? 0.0 : in[1].at(row, col));
      squares += value * value;
    }
    rstd[row] = 1 / std::sqrt(squares / cols + kEpsilon);
    for (int64_t col = 0; col < cols; ++col) {
      y[row * cols + col] = h[row * cols + col] * rstd[row] * in[2][col];
    }
  }
  return {y, h, rstd};
}

OpCase make_case(DType dtype, DType weight_dtype, int64_t rows, int64_t cols, bool delta) {
  OpCase test{.op = &kRmsNorm, .attrs = {{"epsilon", kEpsilon}}, .reference = reference};
  test.inputs = {random_tensor(dtype, {rows, cols}, 1),
                 delta ? random_tensor(dtype, {rows, cols}, 2) : Tensor{},
                 random_tensor(weight_dtype, {cols}, 3, 1.0, Role::kParameter)};
  test.tolerance = dtype == DType::kBF16 ? 4e-3 : 1e-6;
  if (cols == 1) test.grad_tolerance_f32 = 1e-3;  // dx cancels to almost nothing
  return test;
}

TEST(RmsNorm, MeetsItsReference) {
  for (const bool delta : {false, true}) {
    for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 7}, {130, 33}, {65, 64}, {5, 768}}) {
      check_op(make_case(DType::kF32, DType::kF32, rows, cols, delta));
      check_op(make_case(DType::kBF16, DType::kBF16, rows, cols, delta));
      check_op(make_case(DType::kBF16, DType::kF32, rows, cols, delta));
    }
  }
}

TEST(RmsNorm, AddsTheGradientOfTheResidual) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    OpCase test = make_case(dtype, dtype, 9, 40, true);
    for (const std::vector<int>& grads : {std::vector<int>{0, 1}, std::vector<int>{0}}) {
      test.output_grads = grads;
      check_op(test);
    }
  }
}

// (dy, dh, h, rstd, w, sum) -> (dx, sum')
Outputs backward_reference(const Tensors& in) {
  const int64_t rows = in[2].shape.dim(0), cols = in[2].shape.dim(1);
  Outputs want = {std::vector<double>(rows * cols), in[5].values};
  for (int64_t row = 0; row < rows; ++row) {
    const double rstd = in[3][row];
    double dot = 0;
    for (int64_t col = 0; col < cols; ++col)
      dot += in[0].at(row, col) * in[4][col] * in[2].at(row, col);
    for (int64_t col = 0; col < cols; ++col) {
      const double dy = in[0].at(row, col), h = in[2].at(row, col);
      want[0][row * cols + col] = (in[1].values.empty() ? 0.0 : in[1].at(row, col)) +
                                  rstd * dy * in[4][col] - h * std::pow(rstd, 3) * dot / cols;
      want[1][col] += dy * h * rstd;
    }
  }
  return want;
}

// Over every kind of row: a warp's, a block's of one, two or more packs a thread.
TEST(RmsNorm, FindsTheLargestMagnitudeWhenAsked) {
  for (const auto& [rows, cols] :
       {std::pair{1, 1}, {3, 7}, {37, 64}, {9, 1024}, {5, 2600}, {20, 4096}, {3, 9000}}) {
    for (const DType weight : {DType::kF32, DType::kBF16}) {
      OpCase test = make_case(DType::kBF16, weight, rows, cols, cols != 64);
      test.inputs[0].values.back() = 60;
      check_largest(test, 3);
      const Tensor x = random_tensor(DType::kBF16, {rows, cols}, 4), w = test.inputs[2];
      test = {.op = &kRmsNormBackward, .phase = Phase::kBackward};
      test.inputs = {x,
                     cols != 64 ? random_tensor(DType::kBF16, {rows, cols}, 5) : Tensor{},
                     random_tensor(DType::kBF16, {rows, cols}, 6),
                     random_tensor(DType::kF32, {rows}, 7),
                     w,
                     random_tensor(DType::kF32, {cols}, 8, 1.0, Role::kGradient)};
      if (rows == 5) test.inputs[0].values[7] = std::nan("");
      check_largest(test, 2);
    }
  }
}

OpCase make_backward_case(DType dtype, int64_t rows, int64_t cols, bool residual) {
  return {
      .op = &kRmsNormBackward,
      .inputs = {random_tensor(dtype, {rows, cols}, 1),
                 residual ? random_tensor(dtype, {rows, cols}, 2) : Tensor{},
                 random_tensor(dtype, {rows, cols}, 3), random_tensor(DType::kF32, {rows}, 4),
                 random_tensor(residual ? dtype : DType::kF32, {cols}, 5, 1.0, Role::kParameter),
                 random_tensor(DType::kF32, {cols}, 6, 1.0, Role::kGradient)},
      .tolerance = 1e-5,
      .phase = Phase::kBackward};
}

// A row takes more packs, or more warps, and tokens more than one sum: many of few or more tokens.
TEST(RmsNorm, GradientOfLongRowsAndOfManyTokens) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const std::pair<int64_t, int64_t> longest = {7, dtype == DType::kF32 ? 8192 : 16384};
    for (const auto& [rows, cols] :
         {std::pair<int64_t, int64_t>{19, 512}, {17, 2304}, {1500, 8}, {2100, 6}, longest}) {
      for (const bool residual : {false, true}) {
        const OpCase test = make_backward_case(dtype, rows, cols, residual);
        check_forward(test, backward_reference(test.inputs));
      }
    }
  }
}

// So many that a block of a GPU has more of them than can be on their way to it, the last block
// fewer: by one and by two packs a thread. Then more sums than one block adds.
TEST(RmsNorm, GradientOfMoreTokensThanOneBlockHasRoomFor) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const int64_t pack = 16 / size_of(dtype);
    for (const auto& [rows, cols] :
         {std::pair{4096 + 5, 65 * pack}, {2048 + 3, 257 * pack}, {16384 + 9, pack}}) {
      const bool residual = (dtype == DType::kBF16) == (rows > 4096);  // each in one of both
      const OpCase test = make_backward_case(dtype, rows, cols, residual);
      const Outputs want = backward_reference(test.inputs);
      const BuiltCase built = build(test, 2);
      const GraphRun run(built.graph, built.inputs, {});
      for (int i = 0; i < 2; ++i) {
        const ValueId id = built.graph.nodes()[0].outputs[i];
        expect_close(run.read(id), want[i], built.graph.type(id).dtype, 1e-5, "output");
      }
    }
  }
}

TEST(RmsNorm, WithoutDeltaIsAViewOfItsInput) {
  Graph graph(Mesh::standard(1, 1, 1, 1));
  const ValueId x =
      graph.add_input(Role::kInput, "x", TensorType::replicated(DType::kF32, {4, 8}, graph.mesh()));
  const ValueId w = graph.add_input(Role::kParameter, "w",
                                    TensorType::replicated(DType::kF32, {8}, graph.mesh()));
  rms_norm(graph, x, kNoValue, w, 1e-5, "norm");
  const Layout layout = kRmsNorm.layout(graph.call(graph.nodes()[0]));
  ASSERT_EQ(layout.aliases.size(), 1u);
  EXPECT_EQ(layout.aliases[0].output, 1);
  EXPECT_FALSE(layout.aliases[0].in_place);
}

// Selective recomputation computes y from the kept h.
TEST(RmsNorm, RebuildsTheSameBits) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const BuiltCase built = build(make_case(dtype, dtype, 7, 100, true), 3);
    const Node node = built.graph.nodes()[0];
    const GraphRun first(built.graph, built.inputs, {});
    OpCase again = make_case(dtype, dtype, 7, 100, false);
    again.inputs[0].values = first.read(node.outputs[1]);
    const BuiltCase rebuilt = build(again, 3);
    const GraphRun second(rebuilt.graph, rebuilt.inputs, {});
    EXPECT_EQ(first.read(node.outputs[0]), second.read(rebuilt.graph.nodes()[0].outputs[0]));
    const Rematerialization rematerialize = kRmsNorm.rematerialize(node);
    EXPECT_EQ(rematerialize.inputs, (std::vector<int>{node.outputs[1], kNoValue, node.inputs[2]}));
    EXPECT_EQ(rematerialize.outputs, std::vector<int>{0});
  }
}

TEST(RmsNorm, PlacesTokensButNotFeatures) {
  Graph graph(Mesh::standard(1, 2, 1, 1));
  TensorType type = TensorType::replicated(DType::kF32, {4, 8}, graph.mesh());
  type.placements[1] = Placement::sharded(0);
  const ValueId x = graph.add_input(Role::kInput, "x", type);
  type.placements[1] = Placement::sharded(1);
  const ValueId split = graph.add_input(Role::kInput, "split", type);
  const ValueId w = graph.add_input(Role::kParameter, "w",
                                    TensorType::replicated(DType::kF32, {8}, graph.mesh()));
  EXPECT_EQ(graph.type(rms_norm(graph, x, kNoValue, w, 1e-5, "a").rstd).placements[1],
            Placement::sharded(0));
  EXPECT_THROW(rms_norm(graph, split, kNoValue, w, 1e-5, "b"), Error);
  EXPECT_THROW(rms_norm(graph, x, kNoValue, x, 1e-5, "c"), Error);
}

}  // namespace
}  // namespace skein
