#include "skein/ir/graph_text.h"

#include <gtest/gtest.h>

#include "tests/ir/testing_ops.h"

namespace skein {
namespace {

constexpr const char* kGraph = R"(skein graph
mesh pp=1 dp=2 cp=1 tp=4
input x : bf16[16, 8]{dp:S0}
parameter up : bf16[8, 32]{tp:S1}
parameter down : bf16[32, 8]{tp:S0}
gradient sum : f32[8]
forward
  h = times(x, up) : bf16[16, 32]{dp:S0 tp:S1}! @layers.0
  y = times(h, down) {epsilon=1e-05, flag=true, list=[1, 2], name="a b", one=1.0, two=2} : bf16[16, 8]{dp:S0 tp:P} @layers.0
backward
  z = plus(y, y) : bf16[16, 8]{dp:S0 tp:P} @layers.0 #3 last
update
  sum.1 = accumulate(sum, _) : f32[8]
output z
)";

std::string why_not(std::string_view text) {
  try {
    parse_graph(text, testing_ops::table());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(GraphText, PrintsWhatItParsed) {
  const Graph graph = parse_graph(kGraph, testing_ops::table());
  EXPECT_EQ(to_text(graph), kGraph);
  EXPECT_TRUE(graph.value(graph.find("h")).transient);
  EXPECT_EQ(graph.nodes()[1].attrs.real("one"), 1.0);
  EXPECT_EQ(graph.nodes()[1].attrs.integer("two"), 2);
}

TEST(GraphText, PlacementsFollowFromTheTypes) {
  const Graph graph = parse_graph(kGraph, testing_ops::table());
  EXPECT_EQ(graph.type(graph.find("h")).local_shape(graph.mesh()), (Shape{8, 8}));
  EXPECT_TRUE(graph.type(graph.find("y")).placements[3].is_partial());
}

TEST(GraphText, RefusesWhatIsNotAGraph) {
  const std::string head = "skein graph\nmesh tp=2\ninput x : f32[4, 4]{tp:S0}\n";
  EXPECT_EQ(why_not("hello"), "line 1: expected 'skein graph' before 'hello'");
  EXPECT_EQ(why_not(head + "forward\n y = nothing(x) : f32[4, 4]\n"),
            "line 5: there is no op 'nothing'");
  EXPECT_EQ(why_not(head + "forward\n y = plus(x, w) : f32[4, 4]\n"), "line 5: 'w' is not defined");
  EXPECT_EQ(why_not(head + "forward\n y = plus(x, x) : f32[4, 4]\n"),
            "line 5: 'y' is given as f32[4, 4], the op infers f32[4, 4]{tp:S0}");
  EXPECT_EQ(why_not(head + "input v : f16[4]\n"),
            "line 4: 'f16' is not a dtype: expected f32, bf16, i32 or f64");
  EXPECT_EQ(why_not(head + "input v : f32[4]{dp:R}\n"), "line 4: mesh(tp=2) has no axis 'dp'");
  EXPECT_NE(why_not(head + "input v : f32[3]{tp:S0}\n"), "");
  EXPECT_NE(why_not(head + "forward\n y = plus(x, x"), "");
}

TEST(GraphText, NamesTheOperandsThatHaveNoPlacementRule) {
  const std::string why = why_not(
      "skein graph\nmesh tp=2\ninput x : f32[4, 4]{tp:S0}\nparameter w : f32[4, 4]{tp:S1}\n"
      "forward\n y = times(x, w) : f32[4, 4]\n");
  EXPECT_EQ(why, "[times] no placement rule for x f32[4, 4]{tp:S0}, w f32[4, 4]{tp:S1} on axis tp");
}

}  // namespace
}  // namespace skein
