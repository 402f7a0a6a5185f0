#include "skein/ops/softmax_cross_entropy/softmax_cross_entropy.h"

#include "tests/ops/op_harness.h"
#include "tests/ops/rank_run.h"

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
    for (const auto& [rows, cols] :
         {std::pair{1, 1}, {3, 7}, {17, 33}, {5, 1001}, {4, 4096}, {2, 5001}, {1, 40000}}) {
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

// ---- a split vocabulary ----

struct SplitRun {
  Graph graph;
  std::map<ValueId, Tensor> inputs;
  SoftmaxCrossEntropy result;
};

SplitRun build_split(const OpCase& test, Mesh mesh, const std::string& logits_placements,
                     const std::string& labels_placements, bool expanded = false,
                     int64_t vocabulary = 0) {
  SplitRun split{Graph(std::move(mesh)), {}, {}};
  const Tensor &logits = test.inputs[0], &labels = test.inputs[1];
  const std::vector<ValueId> ids = {
      split.graph.add_input(Role::kInput, "logits",
                            placed_type(logits.dtype, logits.shape, logits_placements)),
      split.graph.add_input(Role::kInput, "labels",
                            placed_type(DType::kI32, labels.shape, labels_placements))};
  split.inputs = {{ids[0], logits}, {ids[1], labels}};
  if (expanded) {
    const Node node{.op = test.op, .attrs = test.attrs};
    const auto outputs = test.op->expand(split.graph, node, ids, {"loss", "d.logits"});
    if (!outputs.empty()) split.result = {outputs.at(0), outputs.at(1)};
  } else {
    const DType dtype = *parse_dtype(test.attrs.text("gradient_dtype"));
    split.result = softmax_cross_entropy(split.graph, ids[0], ids[1], dtype, "loss", vocabulary);
  }
  return split;
}

TEST(SoftmaxCrossEntropy, SplitVocabularyMeetsTheReference) {
  const Mesh mesh({{"dp", 2}, {"kv", 3}, {"replica", 2}});
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const DType gradient : {DType::kF32, DType::kBF16}) {
      for (const auto& [cols, scale] : {std::pair{6, 1.0}, {66, 1.0}, {1002, 20.0}}) {
        const OpCase test = make_case(dtype, gradient, 8, cols, scale);
        const Outputs want = reference(test.inputs);
        for (const std::string axes : {"S1 S1", "S1 R", "R S1"}) {
          SCOPED_TRACE(fmt::format("{} columns over {}", cols, axes));
          const SplitRun split = build_split(test, mesh, "S0 " + axes, "S0 R R");
          verify(split.graph, "the builder");
          EXPECT_EQ(split.graph.type(split.result.loss), placed_type(DType::kF32, {8}, "S0 R R"));
          EXPECT_EQ(split.graph.type(split.result.dlogits),
                    placed_type(gradient, {8, cols}, "S0 " + axes));
          const RankRun run(split.graph, split.inputs, 3);
          expect_close(run.whole(split.result.loss), want[0], DType::kF32, 2e-6, "loss");
          expect_close(run.whole(split.result.dlogits), want[1], gradient, 2e-6, "dlogits");
        }
      }
    }
  }
}

// The last columns pad the vocabulary: they count for nothing, whatever they are, and have no
// gradient. Ranks may have some columns that count, or none.
void check_padded(const OpCase& whole, int64_t vocabulary, const Mesh& mesh,
                  const std::string& axes) {
  OpCase test = whole;
  const int64_t rows = test.inputs[0].shape.dim(0), cols = test.inputs[0].shape.dim(1);
  Tensors counted = test.inputs;
  counted[0] = Tensor{test.inputs[0].dtype, Shape{rows, vocabulary}, {}};
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < vocabulary; ++col) {
      counted[0].values.push_back(test.inputs[0].at(row, col));
    }
    for (int64_t col = vocabulary; col < cols; ++col) {
      test.inputs[0].values[static_cast<size_t>(row * cols + col)] = col % 2 == 0 ? 1e30 : -7;
    }
  }
  const Outputs want = reference(counted);
  std::vector<double> dlogits(static_cast<size_t>(rows * cols));
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(want[1].begin() + row * vocabulary, vocabulary, dlogits.begin() + row * cols);
  }
  const SplitRun split =
      build_split(test, mesh, axes, axes == "S1" ? "R" : axes, false, vocabulary);
  verify(split.graph, "the builder");
  const RankRun run(split.graph, split.inputs);
  const DType gradient = *parse_dtype(test.attrs.text("gradient_dtype"));
  expect_close(run.whole(split.result.loss), want[0], DType::kF32, 2e-6, "loss");
  expect_close(run.whole(split.result.dlogits), dlogits, gradient, 2e-6, "dlogits");
}

TEST(SoftmaxCrossEntropy, PaysNoHeedToColumnsThatPadTheVocabulary) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [cols, vocabulary] : {std::pair{6, 5}, {6, 3}, {66, 64}, {1002, 1001}}) {
      OpCase test = make_case(dtype, dtype, 8, cols, 1.0);
      for (double& label : test.inputs[1].values) {
        if (label >= vocabulary) label -= static_cast<double>(cols - vocabulary);
      }
      SCOPED_TRACE(fmt::format("{} of {} columns", vocabulary, cols));
      check_padded(test, vocabulary, Mesh({{"tp", 3}}), "S1");
      check_padded(test, vocabulary, Mesh({{"tp", 1}}), "R");
    }
  }
}

TEST(SoftmaxCrossEntropy, SplitVocabularyHoldsForExtremes) {
  OpCase test = make_case(DType::kF32, DType::kF32, 4, 6, 1.0);
  const double inf = std::numeric_limits<double>::infinity();
  test.inputs[0].values = {3e38,  -3e38, 0,     1,     2,     -1e30,  //
                           -1e30, -1e30, -2e30, -1e30, -3e38, -1e30,  //
                           -inf,  -inf,  1,     2,     -inf,  -inf,   //
                           1,     2,     3,     4,     5,     6};
  test.inputs[1].values = {0, 5, 3, 6};
  const SplitRun split = build_split(test, Mesh({{"tp", 3}}), "S1", "R");
  const RankRun run(split.graph, split.inputs);
  const Outputs want = reference(test.inputs);
  expect_close(run.whole(split.result.loss), want[0], DType::kF32, 1e-6, "loss");
  expect_close(run.whole(split.result.dlogits), want[1], DType::kF32, 1e-6, "dlogits");
}

TEST(SoftmaxCrossEntropy, ExpandsWhereTheVocabularyIsSplit) {
  const OpCase test = make_case(DType::kF32, DType::kF32, 4, 8, 1.0);
  const Mesh mesh({{"dp", 2}, {"tp", 4}});
  EXPECT_TRUE(build_split(test, mesh, "S0 R", "S0 R", true).graph.nodes().empty());
  const SplitRun split = build_split(test, mesh, "S0 S1", "S0 R", true);
  std::string ops;
  for (const Node& node : split.graph.nodes()) ops += std::string(node.op->name) + " ";
  EXPECT_EQ(ops, "softmax_stats redistribute softmax_finish ");
  EXPECT_EQ(split.graph.value(split.result.loss).name, "loss");
  EXPECT_EQ(split.graph.value(split.result.dlogits).name, "d.logits");
  // Rows that are split within a part of the vocabulary are not contiguous.
  EXPECT_THROW(build_split(test, Mesh({{"tp", 4}, {"dp", 2}}), "S1 S0", "R S0"), Error);
}

}  // namespace
}  // namespace skein
