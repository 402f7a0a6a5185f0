#include "skein/ops/layer_norm/layer_norm.h"

#include "tests/ops/largest_testing.h"

namespace skein {
namespace {

using namespace op_test;

constexpr double kEpsilon = 1e-3;

bool is_present(const Tensor& tensor) { return tensor.shape.rank() > 0; }

// (x, [residual], w, [b]) -> (y, h, mean, rstd)
Outputs reference(const Tensors& in) {
  const int64_t rows = in[0].shape.dim(0), cols = in[0].shape.dim(1);
  std::vector<double> y(rows * cols), h(rows * cols), mean(rows), rstd(rows);
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0, squares = 0;
    for (int64_t col = 0; col < cols; ++col) {
      double& value = h[row * cols + col];
      value = in[0].at(row, col) + (is_present(in[1]) ? in[1].at(row, col) : 0.0);
      sum += value;
    }
    mean[row] = sum / cols;
    for (int64_t col = 0; col < cols; ++col)
      squares += std::pow(h[row * cols + col] - mean[row], 2);
    rstd[row] = 1 / std::sqrt(squares / cols + kEpsilon);
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t i = row * cols + col;
      y[i] = (h[i] - mean[row]) * rstd[row] * in[2][col] + (is_present(in[3]) ? in[3][col] : 0.0);
    }
  }
  return {y, h, mean, rstd};
}

struct Sizes {
  int64_t rows, cols;
};
// Which of the optional operands there are.
struct Parts {
  bool residual, bias;
};
constexpr Parts kAllParts[] = {{false, false}, {false, true}, {true, false}, {true, true}};

OpCase make_case(DType dtype, DType weight_dtype, Sizes sizes, Parts parts) {
  const Shape matrix = {sizes.rows, sizes.cols}, vector = {sizes.cols};
  OpCase test{.op = &kLayerNorm, .attrs = {{"epsilon", kEpsilon}}, .reference = reference};
  test.inputs = {
      random_tensor(dtype, matrix, 1), parts.residual ? random_tensor(dtype, matrix, 2) : Tensor{},
      random_tensor(weight_dtype, vector, 3, 1.0, Role::kParameter),
      parts.bias ? random_tensor(weight_dtype, vector, 4, 1.0, Role::kParameter) : Tensor{}};
  test.tolerance = dtype == DType::kBF16 ? 4e-3 : 1e-6;
  if (sizes.cols == 1) test.grad_tolerance_f32 = 1e-3;  // dx cancels to nothing
  return test;
}

TEST(LayerNorm, MeetsItsReference) {
  for (const Parts parts : kAllParts) {
    for (const Sizes sizes : {Sizes{1, 1}, {3, 7}, {130, 33}, {65, 64}, {5, 768}}) {
      check_op(make_case(DType::kF32, DType::kF32, sizes, parts));
      check_op(make_case(DType::kBF16, DType::kBF16, sizes, parts));
      check_op(make_case(DType::kBF16, DType::kF32, sizes, parts));
    }
  }
}

// As in front of a layer, whose h goes to the next one.
TEST(LayerNorm, AddsTheGradientOfTheSum) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const Parts parts : kAllParts) {
      OpCase test = make_case(dtype, dtype, {9, 40}, parts);
      test.output_grads = {0, 1};
      check_op(test);
    }
  }
}

// The squares of such values have no digits left for a variance of 1.
TEST(LayerNorm, CentresValuesBeforeItSquaresThem) {
  OpCase test = make_case(DType::kF32, DType::kF32, {5, 300}, {false, true});
  for (double& value : test.inputs[0].values) value = round_to(DType::kF32, value + 5000);
  test.tolerance = 2e-3;  // a mean of 5000 is rounded to 2.4e-4
  check_forward(test, reference(test.inputs));
}

// (dy, [dh], h, mean, rstd, w, sum_w, [sum_b]) -> (dx, sum_w', [sum_b'])
Outputs backward_reference(const Tensors& in) {
  const int64_t rows = in[2].shape.dim(0), cols = in[2].shape.dim(1);
  Outputs want = {std::vector<double>(rows * cols), in[6].values};
  if (is_present(in[7])) want.push_back(in[7].values);
  for (int64_t row = 0; row < rows; ++row) {
    const auto normed = [&](int64_t col) { return (in[2].at(row, col) - in[3][row]) * in[4][row]; };
    double sum = 0, dot = 0;
    for (int64_t col = 0; col < cols; ++col) {
      sum += in[0].at(row, col) * in[5][col];
      dot += in[0].at(row, col) * in[5][col] * normed(col);
    }
    for (int64_t col = 0; col < cols; ++col) {
      const double dy = in[0].at(row, col);
      want[0][row * cols + col] =
          (is_present(in[1]) ? in[1].at(row, col) : 0.0) +
          in[4][row] * (dy * in[5][col] - sum / cols - normed(col) * dot / cols);
      want[1][col] += dy * normed(col);
      if (is_present(in[7])) want[2][col] += dy;
    }
  }
  return want;
}

OpCase make_backward_case(DType dtype, Sizes sizes, Parts parts, DType weight_dtype) {
  const Shape matrix = {sizes.rows, sizes.cols}, vector = {sizes.cols}, tokens = {sizes.rows};
  const auto sum_of = [&](uint32_t stream) {
    return random_tensor(DType::kF32, vector, stream, 1.0, Role::kGradient);
  };
  return {.op = &kLayerNormBackward,
          .inputs = {random_tensor(dtype, matrix, 1),
                     parts.residual ? random_tensor(dtype, matrix, 2) : Tensor{},
                     random_tensor(dtype, matrix, 3), random_tensor(DType::kF32, tokens, 4),
                     random_tensor(DType::kF32, tokens, 5),
                     random_tensor(weight_dtype, vector, 6, 1.0, Role::kParameter), sum_of(7),
                     parts.bias ? sum_of(8) : Tensor{}},
          .reference = backward_reference,
          .tolerance = 1e-5,
          .phase = Phase::kBackward};
}

// Over every kind of row: a warp's, a block's of one, two or more packs a thread.
TEST(LayerNorm, FindsTheLargestMagnitudeWhenAsked) {
  for (const Sizes sizes :
       {Sizes{1, 1}, {3, 7}, {37, 64}, {9, 1024}, {5, 2600}, {20, 4096}, {3, 9000}}) {
    const Parts parts = {sizes.cols != 64, sizes.cols != 1024};
    for (const DType weight : {DType::kF32, DType::kBF16}) {
      OpCase test = make_case(DType::kBF16, weight, sizes, parts);
      test.inputs[0].values.back() = 60;
      if (sizes.cols > 1 || parts.bias) check_largest(test, 4);
      test = make_backward_case(DType::kBF16, sizes, parts, weight);
      if (sizes.rows == 5) test.inputs[0].values[7] = std::nan("");
      check_largest(test, parts.bias ? 3 : 2);
    }
  }
}

// A row takes more packs, or more warps, and tokens more than one sum: many of few or more tokens.
TEST(LayerNorm, GradientOfLongRowsAndOfManyTokens) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Sizes longest = {7, dtype == DType::kF32 ? 8192 : 16384};
    for (const Sizes sizes : {Sizes{19, 512}, {17, 2304}, {1500, 8}, {2100, 6}, longest}) {
      for (const bool whole : {false, true}) {
        const OpCase test =
            make_backward_case(dtype, sizes, {whole, whole}, whole ? dtype : DType::kF32);
        check_forward(test, backward_reference(test.inputs));
      }
    }
  }
}

// So many that a block of a GPU has more of them than can be on their way to it, the last block
// fewer: by one and by two packs a thread. Then more sums than one block adds.
TEST(LayerNorm, GradientOfMoreTokensThanOneBlockHasRoomFor) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const int64_t pack = 16 / size_of(dtype);
    for (const Sizes sizes :
         {Sizes{4096 + 5, 65 * pack}, {2048 + 3, 257 * pack}, {16384 + 9, pack}}) {
      const bool residual = (dtype == DType::kBF16) == (sizes.rows > 4096);  // each in one of both
      const OpCase test = make_backward_case(dtype, sizes, {residual, true}, dtype);
      const Outputs want = backward_reference(test.inputs);
      const BuiltCase built = build(test, 3);
      const GraphRun run(built.graph, built.inputs, {});
      for (int i = 0; i < 3; ++i) {
        const ValueId id = built.graph.nodes()[0].outputs[i];
        expect_close(run.read(id), want[i], built.graph.type(id).dtype, 1e-5, "output");
      }
    }
  }
}

TEST(LayerNorm, WithoutAResidualIsAViewOfItsInput) {
  Graph graph(Mesh::standard(1, 1, 1, 1));
  const ValueId x =
      graph.add_input(Role::kInput, "x", TensorType::replicated(DType::kF32, {4, 8}, graph.mesh()));
  const ValueId w = graph.add_input(Role::kParameter, "w",
                                    TensorType::replicated(DType::kF32, {8}, graph.mesh()));
  layer_norm(graph, x, kNoValue, w, kNoValue, 1e-5, "norm");
  const Layout layout = kLayerNorm.layout(graph.call(graph.nodes()[0]));
  ASSERT_EQ(layout.aliases.size(), 1u);
  EXPECT_EQ(layout.aliases[0].output, 1);
  EXPECT_FALSE(layout.aliases[0].in_place);
}

// Selective recomputation computes y from the kept h.
TEST(LayerNorm, RebuildsTheSameBits) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const BuiltCase built = build(make_case(dtype, dtype, {7, 100}, {true, true}), 4);
    const Node node = built.graph.nodes()[0];
    const GraphRun first(built.graph, built.inputs, {});
    OpCase again = make_case(dtype, dtype, {7, 100}, {false, true});
    again.inputs[0].values = first.read(node.outputs[1]);
    const BuiltCase rebuilt = build(again, 4);
    const GraphRun second(rebuilt.graph, rebuilt.inputs, {});
    EXPECT_EQ(first.read(node.outputs[0]), second.read(rebuilt.graph.nodes()[0].outputs[0]));
    const Rematerialization rematerialize = kLayerNorm.rematerialize(node);
    EXPECT_EQ(rematerialize.inputs,
              (std::vector<int>{node.outputs[1], kNoValue, node.inputs[2], node.inputs[3]}));
    EXPECT_EQ(rematerialize.outputs, std::vector<int>{0});
  }
}

TEST(LayerNorm, PlacesTokensButNotFeatures) {
  Graph graph(Mesh::standard(1, 2, 1, 1));
  const auto input = [&](Role role, const char* name, Shape shape, Placement placement) {
    TensorType type = TensorType::replicated(DType::kF32, std::move(shape), graph.mesh());
    type.placements[1] = placement;
    return graph.add_input(role, name, type);
  };
  const ValueId x = input(Role::kInput, "x", {4, 8}, Placement::sharded(0));
  const ValueId split = input(Role::kInput, "split", {4, 8}, Placement::sharded(1));
  const ValueId w = input(Role::kParameter, "w", {8}, Placement::replicated());
  const ValueId b = input(Role::kParameter, "b", {8}, Placement::replicated());
  const LayerNorm norm = layer_norm(graph, x, x, w, b, 1e-5, "a");
  for (const ValueId output : {norm.y, norm.h, norm.mean, norm.rstd}) {
    EXPECT_EQ(graph.type(output).placements[1], Placement::sharded(0));
  }
  const auto sum_w = input(Role::kGradient, "sum.w", {8}, Placement::partial());
  const auto sum_b = input(Role::kGradient, "sum.b", {8}, Placement::partial());
  const LayerNormBackward grads =
      layer_norm_backward(graph, norm.y, kNoValue, norm, w, {sum_w, sum_b}, "d.a");
  EXPECT_EQ(graph.type(grads.dx).placements[1], Placement::sharded(0));
  EXPECT_TRUE(graph.type(grads.sums.w).placements[1].is_partial());
  EXPECT_TRUE(graph.type(grads.sums.b).placements[1].is_partial());
  EXPECT_THROW(layer_norm(graph, split, kNoValue, w, b, 1e-5, "b"), Error);
  EXPECT_THROW(layer_norm(graph, x, split, w, b, 1e-5, "c"), Error);
  EXPECT_THROW(layer_norm(graph, x, kNoValue, w, x, 1e-5, "d"), Error);
}

}  // namespace
}  // namespace skein
