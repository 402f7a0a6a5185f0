#include "skein/ops/token_scores/token_scores.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Outputs reference(const Tensors& in) {
  const int64_t rows = in[0].shape.dim(0), cols = in[0].shape.dim(1);
  Outputs outputs(3);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t best = 0;
    for (int64_t col = 1; col < cols; ++col) {
      if (in[0].at(row, col) > in[0].at(row, best)) best = col;
    }
    const double most = in[0].at(row, best);
    double sum = 0;
    for (int64_t col = 0; col < cols; ++col) sum += std::exp(in[0].at(row, col) - most);
    const auto label = static_cast<int64_t>(in[1][row]);
    const bool has_label = label >= 0 && label < cols;
    outputs[0].push_back(has_label ? in[0].at(row, label) - most - std::log(sum) : 0.0);
    outputs[1].push_back(static_cast<double>(best));
    outputs[2].push_back(-std::log(sum));
  }
  return outputs;
}

Tensor labels(int64_t rows, int64_t cols) {
  return make_tensor(DType::kI32, {rows}, [=](int64_t i) {
    return static_cast<double>(i % 5 == 4 ? -100 : i % 7 == 6 ? cols : i * 31 % cols);
  });
}

TEST(TokenScores, MeetsItsReference) {
  for (const auto& [rows, cols] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {16, 33}, {9, 5000}}) {
    check_op({.op = &kTokenScores,
              .inputs = {random_tensor(DType::kF32, {rows, cols}, 1, 4.0), labels(rows, cols)},
              .reference = reference});
  }
}

// Of equal logits the first is the best, wherever they lie.
TEST(TokenScores, TakesTheFirstOfEqualLogits) {
  for (const int64_t first : {0, 3, 15, 16, 40, 99}) {
    check_op({.op = &kTokenScores,
              .inputs = {make_tensor(DType::kF32, {2, 100},
                                     [=](int64_t i) { return i % 100 >= first ? 1.5 : -2.0; }),
                         labels(2, 100)},
              .reference = reference});
  }
}

TEST(TokenScores, RefusesWhatDoesNotFit) {
  Graph graph{Mesh()};
  const auto input = [&](const char* name, DType dtype, const Shape& shape) {
    return graph.add_input(Role::kInput, name, TensorType::replicated(dtype, shape, graph.mesh()));
  };
  const ValueId logits = input("logits", DType::kF32, {3, 8});
  EXPECT_THROW(token_scores(graph, logits, input("few", DType::kI32, {2}), "a", "b", "c"), Error);
  EXPECT_THROW(token_scores(graph, input("half", DType::kBF16, {3, 8}),
                            input("labels", DType::kI32, {3}), "a", "b", "c"),
               Error);
}

}  // namespace
}  // namespace skein
