#include "skein/ops/embedding/embedding.h"

#include "tests/ops/op_harness.h"
#include "tests/ops/rank_run.h"

namespace skein {
namespace {

using namespace op_test;

Outputs reference(const Tensors& in) {
  const int64_t vocabulary = in[1].shape.dim(0), cols = in[1].shape.dim(1);
  std::vector<double> x;
  for (const double token : in[0].values) {
    for (int64_t col = 0; col < cols; ++col) {
      const bool inside = token >= 0 && token < vocabulary;
      x.push_back(inside ? in[1].at(static_cast<int64_t>(token), col) : 0.0);
    }
  }
  return {x};
}

TEST(Embedding, MeetsItsReference) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [tokens, vocabulary, cols] :
         {std::array{1, 1, 1}, {7, 3, 5}, {130, 11, 33}, {64, 20, 128}}) {
      check_op({.op = &kEmbedding,
                .inputs = {random_ids({tokens}, vocabulary),
                           random_tensor(dtype, {vocabulary, cols}, 1, 1.0, Role::kParameter)},
                .reference = reference,
                .tolerance = 0.0,
                .grad_tolerance_f32 = 1e-5});
    }
  }
}

TEST(Embedding, StaysInsideOfTheTable) {
  Tensor tokens = random_ids({5}, 4);
  tokens.values = {0, -1, 4, 2147483647, 3};
  check_op({.op = &kEmbedding,
            .inputs = {tokens, random_tensor(DType::kF32, {4, 6}, 1, 1.0, Role::kParameter)},
            .reference = reference});
}

// The sums that tokens make of dx, from `sum` on.
void check_gradient(const Tensor& tokens, DType dtype, int64_t vocabulary, int64_t cols) {
  const int64_t num_tokens = tokens.shape.num_elements();
  const Tensor dx = random_tensor(dtype, {num_tokens, cols}, 2);
  const Tensor sum = random_tensor(DType::kF32, {vocabulary, cols}, 3, 1.0, Role::kGradient);
  const OpCase test{.op = &kEmbeddingDw,
                    .inputs = {tokens, dx, sum},
                    .tolerance = 1e-5,
                    .phase = Phase::kBackward};
  Outputs want = {sum.values};
  for (int64_t i = 0; i < num_tokens; ++i) {
    const auto row = static_cast<int64_t>(tokens[i]);
    if (row < 0 || row >= vocabulary) continue;
    for (int64_t col = 0; col < cols; ++col) want[0][row * cols + col] += dx.at(i, col);
  }
  check_forward(test, want);
}

// Of `vocabulary` rows, one of which most have, and some outside of the table.
Tensor uneven_tokens(int64_t num_tokens, int64_t vocabulary) {
  Tensor tokens = random_ids({num_tokens}, vocabulary);
  for (int64_t i = 0; i < num_tokens; ++i) {
    if (i % 3 != 0) tokens.values[i] = 17;
    if (i % 97 == 5) tokens.values[i] = i % 2 == 0 ? -1 : vocabulary;
  }
  return tokens;
}

// Rows whose tokens fill several windows.
TEST(Embedding, GradientOfManyTokensOfFewRows) {
  const int64_t num_tokens = 700, vocabulary = 50;
  const Tensor tokens = uneven_tokens(num_tokens, vocabulary);
  for (const int64_t cols : {33, 128}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      check_gradient(tokens, dtype, vocabulary, cols);
    }
  }
}

// More tokens than are sorted without a merge of sorted parts.
TEST(Embedding, GradientOfThousandsOfTokens) {
  for (const int64_t num_tokens : {4096, 4097, 9000}) {
    check_gradient(uneven_tokens(num_tokens, 1000), DType::kBF16, 1000, 8);
  }
}

TEST(Embedding, GradientOfTokensThatAreAllAlikeAllDistinctOrNoneOfTheTable) {
  const int64_t num_tokens = 600, vocabulary = 640;
  const std::function<double(int64_t)> kinds[] = {
      [](int64_t) { return 639.0; },
      [](int64_t i) { return static_cast<double>(i * 7 % 640); },  // 7 and 640 share no factor
      [](int64_t i) { return i % 2 == 0 ? -1.0 : 640.0; }};
  for (const auto& kind : kinds) {
    const Tensor tokens = make_tensor(DType::kI32, {num_tokens}, kind);
    for (const int64_t cols : {5, 64}) check_gradient(tokens, DType::kBF16, vocabulary, cols);
  }
}

// The parts of every rank, on a mesh where dp splits the tokens and two axes split the vocabulary.
TEST(Embedding, TableSplitOverTheVocabulary) {
  Tensor tokens = random_ids({24}, 16);
  tokens.values[3] = -1;
  tokens.values[17] = 16;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Tensor table = random_tensor(dtype, {16, 37}, 1), dx = random_tensor(dtype, {24, 37}, 2);
    const Tensor sum = random_tensor(DType::kF32, {16, 37}, 3);
    std::vector<double> whole[2], split[2];
    for (const bool is_split : {false, true}) {
      Graph graph(is_split ? Mesh({{"dp", 2}, {"kv", 2}, {"replica", 4}})
                           : Mesh({{"dp", 1}, {"kv", 1}, {"replica", 1}}));
      const std::map<std::string, std::pair<Tensor, std::string>> given = {
          {"tokens", {tokens, "S0 R R"}},
          {"table", {table, "R S0 S0"}},
          {"dx", {dx, "S0 R R"}},
          {"sum.table", {sum, "P S0 S0"}}};
      std::map<ValueId, Tensor> inputs;
      for (const auto& [name, input] : given) {
        inputs[graph.add_input(name == "sum.table" ? Role::kGradient : Role::kInput, name,
                               placed_type(input.first.dtype, input.first.shape, input.second))] =
            input.first;
      }
      const ValueId x = embedding(graph, graph.find("tokens"), graph.find("table"), "x");
      const ValueId dw =
          embedding_dw(graph, graph.find("tokens"), graph.find("dx"), graph.find("sum.table"));
      EXPECT_EQ(graph.type(x), placed_type(dtype, {24, 37}, "S0 P P"));
      EXPECT_EQ(graph.type(dw), placed_type(DType::kF32, {16, 37}, "P S0 S0"));
      const RankRun run(graph, inputs, 3);
      (is_split ? split : whole)[0] = run.whole(x);
      (is_split ? split : whole)[1] = run.whole(dw);
    }
    EXPECT_EQ(whole[0], reference({tokens, table})[0]);
    EXPECT_EQ(split[0], whole[0]);
    expect_close(split[1], whole[1], DType::kF32, 1e-6, "sum");
  }
}

}  // namespace
}  // namespace skein
