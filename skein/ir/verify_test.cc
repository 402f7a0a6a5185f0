#include "skein/ir/verify.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "skein/ir/graph_text.h"
#include "tests/ir/testing_ops.h"

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

// The check is on memory, not on values: y and its halves occupy the same rows.
TEST(Verify, RefusesReadingTheWholeAfterAPartOfItWasOverwritten) {
  const std::string split =
      "forward\n y = plus(x, w) : f32[4]\n a, b = halves(y) : f32[2], f32[2]\n"
      " a1 = accumulate(a, b) : f32[2]\n";
  EXPECT_EQ(why_not(parse(split + " z = plus(y, x) : f32[4]\n")),
            "after test: node 3 [plus]: 'y' is read after node 2 [accumulate] overwrote it");
  EXPECT_EQ(why_not(parse(split + " z = plus(b, b) : f32[2]\n")), "");
  EXPECT_EQ(why_not(parse(split + " z = plus(a1, b) : f32[2]\n")), "");
}

TEST(Verify, RefusesReadingAPartAfterTheWholeWasOverwritten) {
  EXPECT_EQ(why_not(parse("forward\n y = plus(x, w) : f32[4]\n a, b = halves(y) : f32[2], f32[2]\n"
                          " y1 = accumulate(y, x) : f32[4]\n z = plus(b, b) : f32[2]\n")),
            "after test: node 3 [plus]: 'b' is read after node 2 [accumulate] overwrote it");
}

TEST(Verify, KnowsThatAConcatenationIsItsParts) {
  const std::string both =
      "forward\n y = plus(x, w) : f32[4]\n z = plus(x, w) : f32[4]\n"
      " yz = below(y, z) : f32[8]\n";
  EXPECT_EQ(why_not(parse(both + " z1 = accumulate(z, x) : f32[4]\n u = plus(yz, yz) : f32[8]\n")),
            "after test: node 4 [plus]: 'yz' is read after node 3 [accumulate] overwrote it");
  EXPECT_EQ(
      why_not(parse(both + " v = accumulate(yz, yz) : f32[8]\n")),
      "after test: node 3 [accumulate]: reads 'yz', whose memory it overwrites as that of 'yz'");
  EXPECT_EQ(why_not(parse(both + " yz1 = accumulate(yz, x) : f32[8]\n u = plus(z, x) : f32[4]\n")),
            "after test: node 4 [plus]: 'z' is read after node 3 [accumulate] overwrote it");
  EXPECT_EQ(why_not(parse(both + " z1 = accumulate(z, x) : f32[4]\n u = plus(y, x) : f32[4]\n")),
            "");
}

TEST(Verify, RefusesOverwritingAPartOfAWeight) {
  EXPECT_EQ(why_not(parse("backward\n a, b = halves(w) : f32[2], f32[2]\n"
                          " a1 = accumulate(a, b) : f32[2]\n")),
            "after test: node 1 [accumulate]: overwrites the parameter 'w' before the update");
}

TEST(Verify, RefusesAnOutputOfWhichAPartIsOverwritten) {
  EXPECT_EQ(why_not(parse("forward\n y = plus(x, w) : f32[4]\n a, b = halves(y) : f32[2], f32[2]\n"
                          " a1 = accumulate(a, b) : f32[2]\noutput y\n")),
            "after test: node 2 [accumulate]: graph output 'y' is overwritten by node 2");
}

// Until its end, asynchronous work still reads its inputs and writes its outputs.
TEST(Verify, LeavesAloneWhatIsUnderWay) {
  const std::string begun =
      "forward\n y = plus(x, w) : f32[4]\n t = begin(y) {channel=7} : f32[4]\n";
  const std::string ended = " t1 = end(t) {channel=7} : f32[4]\n";
  EXPECT_EQ(why_not(parse(begun + " z = plus(y, x) : f32[4]\n" + ended)), "");
  EXPECT_EQ(why_not(parse(begun + ended + " z = plus(t1, y) : f32[4]\n")), "");
  EXPECT_EQ(why_not(parse(begun + " z = plus(t, x) : f32[4]\n" + ended)),
            "after test: node 2 [plus]: reads 't' while node 1 [begin] is still at work on 't'");
  EXPECT_EQ(
      why_not(parse(begun + " y1 = accumulate(y, x) : f32[4]\n" + ended)),
      "after test: node 2 [accumulate]: overwrites 'y1' while node 1 [begin] is still at work "
      "on 'y'");
  EXPECT_EQ(why_not(parse(begun)),
            "after test: node 1 [begin]: its work on channel 7 is ended by no [end]");
  EXPECT_EQ(why_not(parse(begun + ended + " t2 = end(t1) {channel=7} : f32[4]\n")),
            "after test: node 3 [end]: ends work on channel 7 that nobody began");
  EXPECT_EQ(why_not(parse(begun + " s = begin(y) {channel=7} : f32[4]\n" + ended)),
            "after test: node 2 [begin]: channel 7 is under way already");
}

}  // namespace
}  // namespace skein
