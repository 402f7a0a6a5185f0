// Placements and errors of linear and its derivatives: no kernel runs.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "skein/ops/linear/linear.h"

namespace skein {
namespace {

class LinearPlacement : public testing::Test {
 protected:
  // One axis of interest, tp; values [8, 16], [16, 16] or [16].
  ValueId value(const std::string& name, Shape shape, const std::string& placement,
                DType dtype = DType::kF32) {
    TensorType type = TensorType::replicated(dtype, std::move(shape), graph.mesh());
    type.placements[3] = Placement::parse(placement);
    return graph.add_input(Role::kInput, name, type);
  }
  std::string placed(ValueId id) { return graph.type(id).placements[3].to_string(); }

  Graph graph{Mesh::standard(1, 1, 1, 2)};
};

TEST_F(LinearPlacement, FollowsFromXAndW) {
  int count = 0;
  for (const auto& [x, w, y] : std::vector<std::array<std::string, 3>>{{"R", "R", "R"},
                                                                       {"S0", "R", "S0"},
                                                                       {"R", "S0", "S1"},
                                                                       {"S1", "S1", "P"},
                                                                       {"P", "R", "P"}}) {
    const std::string tag = std::to_string(count++);
    const ValueId out =
        linear(graph, value("x" + tag, {8, 16}, x), {value("w" + tag, {16, 16}, w)}, {}, {"y"})[0];
    EXPECT_EQ(placed(out), y) << x << " " << w;
  }
}

TEST_F(LinearPlacement, MayDifferBetweenParts) {
  const ValueId x = value("x", {8, 16}, "R");
  const auto y =
      linear(graph, x, {value("wq", {16, 16}, "S0"), value("wk", {16, 16}, "R")}, {}, {"q", "k"});
  EXPECT_EQ(placed(y[0]), "S1");
  EXPECT_EQ(placed(y[1]), "R");
}

TEST_F(LinearPlacement, OfTheDerivatives) {
  const ValueId x = value("x", {8, 16}, "R"), x0 = value("x0", {8, 16}, "S0");
  const ValueId x1 = value("x1", {8, 16}, "S1"), w0 = value("w0", {16, 16}, "S0");
  const ValueId w = value("w", {16, 16}, "R"), w1 = value("w1", {16, 16}, "S1");
  EXPECT_EQ(placed(linear_dx(graph, {x0}, {w}, "dx")), "S0");
  EXPECT_EQ(placed(linear_dx(graph, {x1}, {w0}, "dx")), "P");
  EXPECT_EQ(placed(linear_dx(graph, {x}, {w1}, "dx")), "S1");
  const ValueId p = value("p", {16, 16}, "P");
  EXPECT_EQ(placed(linear_dw(graph, {x0}, x0, {p})[0]), "P");
  EXPECT_EQ(placed(linear_dw(graph, {x1}, x, {value("g0", {16, 16}, "S0")})[0]), "S0");
  EXPECT_EQ(placed(linear_dw(graph, {x}, x1, {value("g1", {16, 16}, "S1")})[0]), "S1");
  EXPECT_EQ(placed(linear_db(graph, {x0}, {value("h", {16}, "P")})[0]), "P");
  EXPECT_EQ(placed(linear_db(graph, {x1}, {value("h0", {16}, "S0")})[0]), "S0");
}

void expect_error(const std::function<void()>& body, const std::vector<std::string>& words) {
  try {
    body();
    ADD_FAILURE() << "expected an error with '" << words[0] << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalid);
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "'" << word << "' is not in: " << error.what();
    }
  }
}

TEST_F(LinearPlacement, ErrorsNameTheOperands) {
  const ValueId x = value("x", {8, 16}, "R"), w = value("wq", {24, 18}, "R");
  graph.set_scope(Scope::of_layer(3));
  expect_error([&] { linear(graph, x, {w}, {}, {"y"}); },
               {"[linear] x f32[8, 16] does not match wq f32[24, 18]", "layers.3"});
  const ValueId half = value("half", {24, 16}, "R", DType::kBF16);
  expect_error([&] { linear(graph, x, {half}, {}, {"y"}); }, {"half bf16[24, 16]"});
  const ValueId row = value("row", {16, 16}, "S1");
  expect_error([&] { linear(graph, x, {row}, {}, {"y"}); },
               {"no placement rule for x f32[8, 16] and row f32[16, 16]{tp:S1} on axis tp"});
  const ValueId vector = value("vector", {16}, "R");
  expect_error([&] { linear(graph, x, {vector}, {}, {"y"}); }, {"vector f32[16]", "matrix"});
}

TEST_F(LinearPlacement, BiasOfARowParallelWeightIsASumStillOwed) {
  const ValueId x = value("x", {8, 16}, "S1"), w = value("w", {16, 16}, "S1");
  const ValueId whole = value("b", {16}, "R"), pending = value("pending", {16}, "P");
  expect_error([&] { linear(graph, x, {w}, {whole}, {"y"}); },
               {"b f32[16]", "expected P on axis tp"});
  EXPECT_EQ(placed(linear(graph, x, {w}, {pending}, {"y"})[0]), "P");
}

TEST_F(LinearPlacement, RefusesPartsWhoseInputGradientsDoNotAdd) {
  const ValueId dy = value("dy", {8, 16}, "R"), w1 = value("w1", {16, 16}, "S1");
  const ValueId w = value("w", {16, 16}, "R");
  expect_error([&] { linear_dx(graph, {dy, dy}, {w, w1}, "dx"); }, {"w1", "the other parts give"});
}

TEST_F(LinearPlacement, RefusesAGradientSumThatDoesNotFit) {
  const ValueId dy = value("dy", {8, 16}, "S0"), x = value("x0", {8, 16}, "S0");
  const ValueId sum = value("sum", {16, 16}, "R");
  expect_error([&] { linear_dw(graph, {dy}, x, {sum}); }, {"gradient sum sum", "{tp:P}"});
}

}  // namespace
}  // namespace skein
