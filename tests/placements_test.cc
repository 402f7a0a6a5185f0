// What the types say of data parallelism: the batch split over dp, gradients a sum that is pending,
// and one redistribution a gradient. On a mesh of one rank all of that vanishes.
#include <gtest/gtest.h>

#include "skein/compile/step_programs.h"
#include "skein/ir/text.h"
#include "skein/ops/ops.h"

namespace skein {
namespace {

StepSpec tiny_spec(int64_t data_degree) {
  StepSpec spec;
  spec.layout.mesh = Mesh::standard(1, data_degree, 1, 1);
  spec.layout.reduction_width = data_degree;
  spec.model = parse_decoder({{"hidden_size", 32},
                              {"num_hidden_layers", 2},
                              {"num_attention_heads", 4},
                              {"num_key_value_heads", 2},
                              {"intermediate_size", 48},
                              {"vocab_size", 96},
                              {"tie_word_embeddings", true}},
                             "tiny");
  spec.micro_sequences = 2;
  spec.sequence_length = 32;
  spec.update.precision = Precision::kBF16Stochastic;
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
  const Graph graph = training_graphs(tiny_spec(2)).training;
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
  const Graph graph = training_graphs(tiny_spec(1)).training;
  EXPECT_EQ(count(graph, "redistribute"), 0);
  const std::string text = to_text(graph);
  EXPECT_EQ(to_text(parse_graph(text, all_ops())), text);
}

}  // namespace
}  // namespace skein
