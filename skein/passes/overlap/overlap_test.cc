// When the collectives of the update start and end.
#include "skein/passes/overlap/overlap.h"

#include <gtest/gtest.h>

#include "skein/ir/graph_text.h"
#include "skein/ir/verify.h"
#include "skein/ops/fold/fold.h"
#include "skein/ops/ops.h"
#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

// Some work of which `name` is the result: `i` of several.
ValueId computed(Graph& graph, Role role, const TensorType& type, const char* name, int i) {
  const ValueId before = graph.add_input(Role::kInput, fmt::format("before{}", i), type);
  const ValueId input = graph.add_input(role, fmt::format("of_{}{}", name, i), type);
  const FoldPair sum = fold(graph, {{before, input}}, FoldMode::kMerge).front();
  graph.rename(sum.level, fmt::format("add{}", i));
  graph.rename(sum.gradient, fmt::format("{}{}", name, i));
  return sum.gradient;
}

// Gradient sums, terms over the axes, that the update sums over each.
Graph sums_in_update(int count, const Mesh& mesh, const std::vector<std::string>& axes,
                     Placement first, Placement others = Placement::replicated()) {
  Graph graph(mesh);
  TensorType term = TensorType::replicated(DType::kF32, {4096}, mesh);
  for (const std::string& axis : axes) term.placements[mesh.find(axis)] = Placement::partial();
  std::vector<ValueId> sums;
  graph.set_phase(Phase::kBackward);
  for (int i = 0; i < count; ++i) {
    sums.push_back(computed(graph, Role::kGradient, term, "s", i));
  }
  graph.set_phase(Phase::kUpdate);
  for (ValueId sum : sums) {
    for (const std::string& axis : axes) {
      sum = redistribute(graph, sum, axis, axis == axes.front() ? first : others);
    }
    graph.mark_output(sum);
  }
  return graph;
}

// What the nodes write, in order; "|" where the update begins.
std::string order_of(const Graph& graph) {
  std::string order;
  bool in_update = false;
  for (const Node& node : graph.nodes()) {
    if (!in_update && node.phase == Phase::kUpdate) order += " |";
    in_update = node.phase == Phase::kUpdate;
    order += (order.empty() ? "" : " ") + graph.value(node.outputs.front()).name;
    if (node.attrs.has("advances")) order += "*";
  }
  return order;
}

// Each starts after its last gradient, at most two are in flight, and the oldest is waited for
// first; the one before goes on where the next one starts.
TEST(Overlap, SumsStartEarlyAndTwoAreUnderWay) {
  const Mesh mesh = Mesh::standard(1, 2, 1, 1);
  Graph graph = sums_in_update(4, mesh, {"dp"}, Placement::flat());
  overlap(graph, true);
  verify(graph, "overlap");
  EXPECT_EQ(order_of(graph),
            "add0 s0.dp.F.started add1 s1.dp.F.started* add2 s0.dp.F s2.dp.F.started* add3 s1.dp.F "
            "s3.dp.F.started* | s2.dp.F s3.dp.F");
  Graph late = sums_in_update(1, mesh, {"dp"}, Placement::flat());
  overlap(late, false);
  EXPECT_EQ(order_of(late), "add0 | s0.dp.F");
}

// Whole sums take the place of their terms, which the wait does not read.
TEST(Overlap, WholeSumsStartEarlyOverTheirTerms) {
  Graph graph = sums_in_update(3, Mesh::standard(1, 1, 2, 1), {"cp"}, Placement::replicated());
  overlap(graph, true);
  verify(graph, "overlap");
  EXPECT_EQ(
      order_of(graph),
      "add0 s0.cp.R.started add1 s1.cp.R.started* add2 s0.cp.R s2.cp.R.started* | s1.cp.R s2.cp.R");
  for (const Node& node : graph.nodes()) {
    if (node.op != &kRedistributeWait) continue;
    EXPECT_EQ(node.inputs.size(), 2u) << "the sum, and the staging";
  }
  EXPECT_EQ(to_text(parse_graph(to_text(graph), all_ops())), to_text(graph));
}

// Over a second axis a sum starts where that over the first one was waited for.
TEST(Overlap, SumsOverTwoAxesFollowEachOther) {
  Graph graph = sums_in_update(5, Mesh::standard(1, 2, 2, 1), {"dp", "cp"}, Placement::flat());
  overlap(graph, true);
  verify(graph, "overlap");
  EXPECT_EQ(order_of(graph),
            "add0 s0.dp.F.started add1 s1.dp.F.started* "
            "add2 s0.dp.F s0.dp.F.cp.R.started s2.dp.F.started* "
            "add3 s1.dp.F s1.dp.F.cp.R.started* s3.dp.F.started* "
            "add4 s2.dp.F s0.dp.F.cp.R s2.dp.F.cp.R.started* s4.dp.F.started* | "
            "s1.dp.F.cp.R s2.dp.F.cp.R s3.dp.F s3.dp.F.cp.R s4.dp.F s4.dp.F.cp.R");
}

TEST(Overlap, RangesOfRangesFollowEachOther) {
  Graph graph = sums_in_update(5, Mesh::standard(1, 2, 2, 1), {"dp", "cp"}, Placement::flat(),
                               Placement::flat());
  overlap(graph, true);
  verify(graph, "overlap");
  EXPECT_EQ(order_of(graph),
            "add0 s0.dp.F.started add1 s1.dp.F.started* "
            "add2 s0.dp.F s0.dp.F.cp.F.started s2.dp.F.started* "
            "add3 s1.dp.F s1.dp.F.cp.F.started* s3.dp.F.started* "
            "add4 s2.dp.F s0.dp.F.cp.F s2.dp.F.cp.F.started* s4.dp.F.started* | "
            "s1.dp.F.cp.F s2.dp.F.cp.F s3.dp.F s3.dp.F.cp.F s4.dp.F s4.dp.F.cp.F");
}

// Updated weights are waited for when the next one has started over their axis, or are needed.
TEST(Overlap, GathersAreWaitedForBehindTheNextOne) {
  const Mesh mesh = Mesh::standard(1, 2, 2, 1);
  Graph graph(mesh);
  graph.set_phase(Phase::kUpdate);
  TensorType type = TensorType::replicated(DType::kF32, {4096}, mesh);
  type.placements[1] = type.placements[2] = Placement::flat();
  std::vector<ValueId> ranges;
  const auto gather = [&](int i, const char* axis) {
    ranges[i] = redistribute(graph, ranges[i], axis, Placement::replicated());
  };
  for (int i = 0; i < 3; ++i) {
    ranges.push_back(computed(graph, Role::kInput, type, "w", i));
    gather(i, "cp");
    if (i > 0) gather(i - 1, "dp");
  }
  gather(2, "dp");
  for (const ValueId weight : ranges) graph.mark_output(weight);
  overlap(graph, false);
  verify(graph, "overlap");
  EXPECT_EQ(order_of(graph),
            " | add0 w0.cp.R.started add1 w1.cp.R.started w0.cp.R w0.cp.R.dp.R.started add2 "
            "w2.cp.R.started w1.cp.R w1.cp.R.dp.R.started w0.cp.R.dp.R w2.cp.R "
            "w2.cp.R.dp.R.started w1.cp.R.dp.R w2.cp.R.dp.R");
}

TEST(Overlap, SumsOverThreeAxesFollowEachOther) {
  Graph graph =
      sums_in_update(3, Mesh::standard(1, 2, 2, 2), {"dp", "cp", "tp"}, Placement::flat());
  overlap(graph, true);
  verify(graph, "overlap");
  EXPECT_EQ(order_of(graph),
            "add0 s0.dp.F.started add1 s1.dp.F.started* "
            "add2 s0.dp.F s0.dp.F.cp.R.started s2.dp.F.started* | "
            "s0.dp.F.cp.R s0.dp.F.cp.R.tp.R s1.dp.F s1.dp.F.cp.R s1.dp.F.cp.R.tp.R "
            "s2.dp.F s2.dp.F.cp.R s2.dp.F.cp.R.tp.R");
}

}  // namespace
}  // namespace skein
