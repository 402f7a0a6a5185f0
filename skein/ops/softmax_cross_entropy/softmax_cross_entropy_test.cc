#include "skein/ops/softmax_cross_entropy/softmax_cross_entropy.h"

#include "skein/ops/testing/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Outputs reference(const Tensors& in) {
  const int64_t rows = in[0].shape.dim(0), cols = in[0].shape.dim(1);
  std::vector<double> loss(rows), dlogits(rows * cols);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t label = static_cast<int64_t>(in[1][row]);
    if (label < 0 || label >= cols) continue;
    double most = in[0].at(row, 0), sum = 0;
    for (int64_t col = 0; col < cols; ++col) most = std::max(most, in[0].at(row, col));
    for (int64_t col = 0; col < cols; ++col) sum += std::exp(in[0].at(row, col) - most);
    for (int64_t col = 0; col < cols; ++col) {
      dlogits[row * cols + col] = std::exp(in[0].at(row, col) - most) / sum - (col == label);
    }
    loss[row] = std::log(sum) - (in[0].at(row, label) - most);
  }
  return {loss, dlogits};
}

OpCase make_case(DType dtype, DType gradient_dtype, int64_t rows, int64_t cols, double scale) {
  OpCase test{.op = &kSoftmaxCrossEntropy,
              .attrs = {{"gradient_dtype", std::string(dtype_name(gradient_dtype))}},
              .inputs = {random_tensor(dtype, {rows, cols}, 1, scale), random_ids({rows}, cols)},
              .reference = reference,
              .tolerance = 2e-6,
              .unit_grad = true};
  for (int64_t row = 1; row < rows; row += 3) test.inputs[1].values[row] = -100;
  return test;
}

TEST(SoftmaxCrossEntropy, MeetsItsReference) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 7}, {17, 33}, {5, 1001}, {4, 4096}}) {
      check_op(make_case(dtype, dtype, rows, cols, 1.0));
      check_op(make_case(dtype, dtype, rows, cols, 20.0));
    }
  }
}

TEST(SoftmaxCrossEntropy, GivesEitherGradientForEitherLogits) {
  for (const auto& [dtype, gradient] :
       {std::pair{DType::kF32, DType::kBF16}, {DType::kBF16, DType::kF32}}) {
    OpCase test = make_case(dtype, gradient, 6, 40, 1.0);
    const Outputs want = reference(test.inputs);
    check_forward(test, want);
  }
}

TEST(SoftmaxCrossEntropy, IgnoresLabelsOutsideOfTheVocabulary) {
  OpCase test = make_case(DType::kF32, DType::kF32, 5, 9, 1.0);
  test.inputs[1].values = {-100, 9, -1, 2147483647, 3};
  check_op(test);
}

TEST(SoftmaxCrossEntropy, HoldsForHugeLogits) {
  OpCase test = make_case(DType::kF32, DType::kF32, 2, 5, 1.0);
  test.inputs[0].values = {3e38, -3e38, 0, 1, 2, -1e30, -1e30, -2e30, -1e30, -3e38};
  test.inputs[1].values = {0, 1};
  check_forward(test, reference(test.inputs));
}

TEST(SoftmaxCrossEntropy, OverwritesTheLogitsOnlyWhereTheTypesAreEqual) {
  for (const DType gradient : {DType::kF32, DType::kBF16}) {
    const BuiltCase built = build(make_case(DType::kF32, gradient, 2, 3, 1.0), 2);
    const Layout layout = kSoftmaxCrossEntropy.layout(built.graph.call(built.graph.nodes()[0]));
    EXPECT_EQ(layout.aliases.size(), gradient == DType::kF32 ? 1u : 0u);
  }
}

TEST(SoftmaxCrossEntropy, RefusesAnyOtherUseOfTheLoss) {
  OpCase test = make_case(DType::kF32, DType::kF32, 2, 3, 1.0);
  test.unit_grad = false;
  EXPECT_THROW(check_op(test), Error);
  test.attrs = {{"gradient_dtype", std::string("i32")}};
  EXPECT_THROW(check_op(test), Error);
}

}  // namespace
}  // namespace skein
