#include "skein/ir/verify.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "skein/ir/testing_ops.h"
#include "skein/ir/text.h"

namespace skein {
namespace {

using testing_ops::table;

std::string why_not(const Graph& graph) {
  try {
    verify(graph, "test");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kHead =
    "skein graph\nmesh dp=1\ninput x : f32[4]\nparameter w : f32[4]\ngradient g : f32[4]\n";

Graph parse(const std::string& body) { return parse_graph(kHead + body, table()); }

TEST(Verify, AcceptsAnAccumulation) {
  EXPECT_EQ(why_not(parse("forward\n y = plus(x, w) : f32[4]\nbackward\n"
                          " g1 = accumulate(g, y) : f32[4]\n g2 = accumulate(g1, x) : f32[4]\n"
                          "update\n w1 = accumulate(w, g2) : f32[4]\n")),
            "");
}

TEST(Verify, RefusesReadingWhatWasOverwritten) {
  EXPECT_EQ(why_not(parse("backward\n g1 = accumulate(g, x) : f32[4]\n"
                          " y = plus(g, x) : f32[4]\n")),
            "after test: node 1 [plus]: 'g' is read after node 0 [accumulate] overwrote it");
}

TEST(Verify, RefusesOverwritingWeightsBeforeTheUpdate) {
  EXPECT_EQ(why_not(parse("backward\n w1 = accumulate(w, x) : f32[4]\n")),
            "after test: node 0 [accumulate]: overwrites the parameter 'w' before the update");
}

TEST(Verify, RefusesUseBeforeDefinition) {
  Graph graph = parse("forward\n y = plus(x, w) : f32[4]\n z = plus(y, w) : f32[4]\n");
  std::vector<Node> nodes = graph.nodes();
  std::swap(nodes[0], nodes[1]);
  graph.replace_nodes(nodes);
  EXPECT_EQ(why_not(graph), "after test: node 0 [plus]: 'y' is used before it is defined");
}

TEST(Verify, RefusesPhasesOutOfOrder) {
  EXPECT_EQ(
      why_not(parse("backward\n y = plus(x, w) : f32[4]\nforward\n z = plus(x, w) : f32[4]\n")),
      "after test: node 1 [plus]: phase forward after backward");
}

TEST(Verify, RefusesATransientThatOutlivesItsPhase) {
  EXPECT_EQ(
      why_not(parse("forward\n y = plus(x, w) : f32[4]!\nbackward\n z = plus(y, w) : f32[4]\n")),
      "after test: node 1 [plus]: transient 'y' outlives its phase");
}

TEST(Verify, RefusesATypeThatTheOpDoesNotInfer) {
  Graph graph = parse("forward\n y = plus(x, w) : f32[4]\n");
  graph.value(graph.find("y")).type.dtype = DType::kBF16;
  EXPECT_EQ(why_not(graph), "after test: node 0 [plus]: 'y' is bf16[4], the op infers f32[4]");
}

TEST(Verify, RefusesAnOutputThatIsOverwritten) {
  EXPECT_EQ(why_not(parse("forward\n y = plus(x, w) : f32[4]\n z = accumulate(y, x) : f32[4]\n"
                          "output y\n")),
            "after test: node 1 [accumulate]: graph output 'y' is overwritten by node 1");
}

}  // namespace
}  // namespace skein
