#include "skein/ops/embedding/embedding.h"

#include "skein/ops/testing/op_harness.h"

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

TEST(Embedding, RefusesATableSplitOverTheVocabulary) {
  Graph graph(Mesh::standard(1, 1, 1, 2));
  TensorType type = TensorType::replicated(DType::kF32, {8, 4}, graph.mesh());
  type.placements[3] = Placement::sharded(0);
  const ValueId table = graph.add_input(Role::kParameter, "table", type);
  const ValueId tokens = graph.add_input(Role::kInput, "tokens",
                                         TensorType::replicated(DType::kI32, {6}, graph.mesh()));
  try {
    embedding(graph, tokens, table, "x");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("vocabulary"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace skein
