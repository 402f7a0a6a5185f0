// What the types say of data parallelism: the batch split over dp, gradients a sum that is pending,
// and one redistribution a gradient. On a mesh of one rank all of that vanishes.
#include <gtest/gtest.h>

#include "skein/ir/graph_text.h"
#include "skein/ops/ops.h"
#include "tests/tiny_spec.h"

namespace skein {
namespace {

StepSpec data_spec(int64_t data_degree) {
  StepSpec spec = tiny_spec(Mesh::standard(1, data_degree, 1, 1), /*micro_batches=*/1);
  spec.model.tie_word_embeddings = true;
  spec.micro_sequences = 2;
  return spec;
}

int count(const Graph& graph, std::string_view op) {
  int found = 0;
  for (const Node& node : graph.nodes()) found += node.op->name == op ? 1 : 0;
  return found;
}

// Values that are redistributed, at once or in two halves.
int count_moved(const Graph& graph, std::string_view axis, std::string_view to) {
  int found = 0;
  for (const Node& node : graph.nodes()) {
    const bool halves = node.op->name == "redistribute_start";
    if (!halves && node.op->name != "redistribute") continue;
    if (node.attrs.text("axis") != axis || node.attrs.text("to") != to) continue;
    found += static_cast<int>(node.outputs.size()) - (halves ? 1 : 0);  // without the staging
  }
  return found;
}

TEST(Placements, DataParallelGradientsAreReducedOnce) {
  const Graph graph = training_graphs(data_spec(2)).training;
  const int data_axis = graph.mesh().find("dp");
  int gradients = 0;
  for (const Value& value : graph.values()) {
    if (value.role != Role::kGradient) continue;
    ++gradients;
    EXPECT_TRUE(value.type.placements[data_axis].is_partial()) << value.name;
  }
  EXPECT_EQ(gradients, 2 * 9 + 2 + 1);  // tied embeddings have two
  EXPECT_EQ(count_moved(graph, "dp", "F"), gradients);
  EXPECT_TRUE(graph.type(graph.find("loss_sum")).placements[data_axis].is_partial());
  EXPECT_EQ(graph.type(graph.find("tokens")).local_shape(graph.mesh()), (Shape{64}));
}

TEST(Placements, OneRankHasNothingToRedistribute) {
  const Graph graph = training_graphs(data_spec(1)).training;
  EXPECT_EQ(count(graph, "redistribute"), 0);
  const std::string text = to_text(graph);
  EXPECT_EQ(to_text(parse_graph(text, all_ops())), text);
}

}  // namespace
}  // namespace skein
