#include "skein/ops/fold/fold.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

Tensor sum(const Shape& shape, uint32_t stream) {
  return random_tensor(DType::kF32, shape, stream, 1.0, Role::kGradient);
}

OpCase make_case(const std::string& mode, std::function<Outputs(const Tensors&)> reference) {
  return {.op = &kFold,
          .attrs = {{"mode", mode}},
          .inputs = {sum({3, 7}, 1), sum({3, 7}, 2), sum({300, 257}, 3), sum({300, 257}, 4),
                     sum({1}, 5), sum({1}, 6)},
          .reference = std::move(reference),
          .tolerance = 0,
          .phase = Phase::kBackward};
}

TEST(Fold, PushSetsTheSumAside) {
  check_op(make_case("push", [](const Tensors& in) {
    Outputs out;
    for (size_t i = 0; i < in.size(); i += 2) {
      out.push_back(in[i + 1].values);
      out.emplace_back(in[i].values.size(), 0.0);
    }
    return out;
  }));
}

TEST(Fold, MergeAddsTheLevelAndLeavesIt) {
  check_op(make_case("merge", [](const Tensors& in) {
    Outputs out;
    for (size_t i = 0; i < in.size(); i += 2) {
      out.push_back(in[i].values);
      out.push_back(in[i].values);
      for (size_t j = 0; j < out.back().size(); ++j) {
        out.back()[j] = round_to(DType::kF32, out.back()[j] + in[i + 1][j]);
      }
    }
    return out;
  }));
}

// (a + b) + (c + d) of four sums that become ready in one gradient: two levels.
TEST(Fold, SumsNeighboursFirst) {
  Graph graph(Mesh::standard(1, 1, 1, 1));
  graph.set_phase(Phase::kBackward);
  const TensorType type = TensorType::replicated(DType::kF32, {1}, graph.mesh());
  const auto input = [&](const std::string& name) {
    return graph.add_input(Role::kGradient, name, type);
  };
  const Tensor zero = make_tensor(DType::kF32, {1}, [](int64_t) { return 0.0; });
  std::map<ValueId, Tensor> inputs;
  ValueId low = input("low"), high = input("high"), gradient = input("gradient");
  inputs[low] = inputs[high] = inputs[gradient] = zero;
  const auto move = [&](ValueId& level, FoldMode mode) {
    const FoldPair pair = fold(graph, {{level, gradient}}, mode)[0];
    level = pair.level;
    gradient = pair.gradient;
  };
  const double terms[] = {1, 0x1p-24, 0x1p-24, 0x1p-24};  // 1 + 2^-24 is 1
  for (int i = 0; i < 4; ++i) {
    const ValueId term = input("term" + std::to_string(i));
    inputs[term] = make_tensor(DType::kF32, {1}, [&](int64_t) { return terms[i]; });
    gradient = add(graph, gradient, term, "gradient");
    if (i % 2 == 1) move(low, FoldMode::kMerge);
    if (i == 3) move(high, FoldMode::kMerge);
    if (i % 2 == 0) move(low, FoldMode::kPush);
    if (i == 1) move(high, FoldMode::kPush);
  }
  verify(graph, "the test");
  EXPECT_EQ(GraphRun(graph, inputs, {}).read(gradient), std::vector<double>{1 + 0x1p-23});
}

TEST(Fold, RefusesWhatDoesNotFit) {
  const auto nothing = [](const Tensors&) { return Outputs{}; };
  OpCase test = make_case("push", nothing);
  test.inputs[0].shape = {7, 3};
  EXPECT_THROW(build(test, 6), Error);
  EXPECT_THROW(build(make_case("pull", nothing), 6), Error);
  test = make_case("merge", nothing);
  test.inputs.pop_back();
  EXPECT_THROW(build(test, 5), Error);

  const Mesh mesh = Mesh::standard(1, 2, 1, 1);
  Graph graph(mesh);
  TensorType type = TensorType::replicated(DType::kF32, {2048}, mesh);
  type.placements[1] = Placement::flat();
  const ValueId level = graph.add_input(Role::kGradient, "level", type);
  const ValueId gradient = graph.add_input(Role::kGradient, "gradient", type);
  EXPECT_EQ(graph.type(fold(graph, {{level, gradient}}, FoldMode::kPush)[0].level), type);
  type.placements[1] = Placement::partial();
  const ValueId pending = graph.add_input(Role::kGradient, "pending", type);
  EXPECT_THROW(fold(graph, {{level, pending}}, FoldMode::kPush), Error);
}

}  // namespace
}  // namespace skein
