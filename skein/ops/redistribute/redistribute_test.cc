#include "skein/ops/redistribute/redistribute.h"

#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

const Placement kR = Placement::replicated(), kP = Placement::partial(), kS = Placement::sharded(0);

class RedistributeTest : public testing::Test {
 protected:
  Graph graph{Mesh::standard(1, 1, 1, 4)};

  ValueId value(Placement placement, Shape shape = {8, 4}) {
    TensorType type = TensorType::replicated(DType::kF32, std::move(shape), graph.mesh());
    type.placements[3] = placement;
    return graph.add_input(Role::kInput, fmt::format("x{}", graph.values().size()), type);
  }
  Placement placement(ValueId id) { return graph.type(id).placements[3]; }
};

TEST_F(RedistributeTest, GivesThePlacement) {
  for (const auto& [from, to] : {std::pair{kP, kS}, {kS, kR}, {kP, kR}, {kR, kS}}) {
    EXPECT_EQ(placement(redistribute(graph, value(from), "tp", to)), to);
  }
}

TEST_F(RedistributeTest, RefusesTheRest) {
  for (const auto& [from, to] : {std::pair{kP, kP},
                                 {kS, kS},
                                 {kR, kR},
                                 {kR, kP},
                                 {kS, kP},
                                 {kS, Placement::sharded(1)},
                                 {kR, Placement::sharded(2)}}) {
    EXPECT_THROW(redistribute(graph, value(from), "tp", to), Error);
  }
  EXPECT_THROW(redistribute(graph, value(kR), "kv", kS), Error);
  EXPECT_THROW(redistribute(graph, value(kR, {6, 4}), "tp", kS), Error);  // 6 rows over 4 ranks
}

// What the inner axis cut last is put together first.
TEST(Redistribute, RangesOfRanges) {
  Graph graph(Mesh::standard(1, 2, 2, 1));
  const ValueId term = graph.add_input(Role::kInput, "x", {DType::kF32, {5000}, {kR, kP, kP, kR}});
  const ValueId range = redistribute(graph, redistribute(graph, term, "dp", Placement::flat()),
                                     "cp", Placement::flat());
  EXPECT_EQ(graph.type(range).local_shape(graph.mesh()), Shape{2048});
  EXPECT_THROW(redistribute(graph, range, "dp", kR), Error);
  const ValueId inner = redistribute(graph, term, "cp", Placement::flat());
  EXPECT_THROW(redistribute(graph, inner, "dp", Placement::flat()), Error);
  const ValueId whole = redistribute(graph, redistribute(graph, range, "cp", kR), "dp", kR);
  EXPECT_EQ(graph.type(whole).local_shape(graph.mesh()), Shape{5000});
  const Placements wanted = graph.type(whole).placements;
  EXPECT_EQ(graph.type(redistribute_all(graph, range, wanted)), graph.type(whole));
}

// A differentiate pass for one node, whose output's gradient has the type of `dy`.
class Arriving : public BackwardContext {
 public:
  Arriving(Graph& graph, ValueId dy) : graph_(graph), node_(graph.nodes().back()), dy_(dy) {}
  Graph& graph() override { return graph_; }
  const Node& node() const override { return node_; }
  ValueId output_grad(int) const override { return dy_; }
  bool needs_grad(int) const override { return true; }
  void add_input_grad(int, ValueId grad) override { dx = grad; }
  bool is_parameter(int) const override { return false; }
  ValueId gradient_sum(int, ValueId) override { return kNoValue; }
  void set_gradient_sum(int, ValueId) override {}

  ValueId dx = kNoValue;

 private:
  Graph& graph_;
  const Node node_;
  ValueId dy_;
};

TEST_F(RedistributeTest, DerivativeFollowsFromThePlacements) {
  struct Case {
    Placement from, to, dy, dx;
    bool moves;
  };
  for (const Case& c : {Case{kP, kS, kS, kR, true},
                        {kS, kR, kP, kS, true},
                        {kS, kR, kR, kS, true},
                        {kP, kR, kR, kR, false},
                        {kP, kR, kP, kR, true},
                        {kR, kS, kS, kR, true}}) {
    const ValueId dy = value(c.dy);
    redistribute(graph, value(c.from), "tp", c.to);
    Arriving context(graph, dy);
    kRedistribute.backward(context);
    EXPECT_EQ(placement(context.dx), c.dx);
    EXPECT_EQ(context.dx != dy, c.moves);
  }
}

TEST(Redistribute, OverAnAxisOfSizeOneCopies) {
  Graph graph(Mesh::standard(1, 1, 1, 1));
  const Tensor x = random_tensor(DType::kBF16, {5, 7});
  TensorType type = TensorType::replicated(x.dtype, x.shape, graph.mesh());
  type.placements[3] = kP;
  const ValueId id = graph.add_input(Role::kInput, "x", type);
  const ValueId y = redistribute(graph, id, "tp", kS);
  const GraphRun run(graph, {{id, x}}, {.row_padding = 3});
  EXPECT_EQ(run.read(y), x.values);
}

}  // namespace
}  // namespace skein
