// What the passes for parallel training make of a small model, as text.
#include <gtest/gtest.h>

#include <algorithm>

#include "skein/ir/graph_text.h"
#include "skein/ir/verify.h"
#include "skein/ops/ops.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/passes/differentiate.h"
#include "skein/passes/hoist_transient.h"
#include "skein/passes/overlap/overlap_layers.h"
#include "skein/passes/parallel/shard.h"
#include "skein/passes/parallel/take_stage.h"
#include "skein/passes/parallel/zero.h"
#include "skein/passes/simplify.h"

namespace skein {
namespace {

// Two layers, each a column-parallel and a row-parallel product and a norm added to the residual.
std::string model(const std::string& mesh) {
  return "skein graph\nmesh " + mesh + R"(
parameter table : f32[16, 8]
parameter norm0 : f32[8]
parameter up0 : f32[32, 8]
parameter down0 : f32[8, 32]
parameter norm1 : f32[8]
parameter up1 : f32[32, 8]
parameter down1 : f32[8, 32]
parameter head : f32[16, 8]
input tokens : i32[16]
input labels : i32[16]
input loss_sum : f64[24]
forward
  x = embedding(tokens, table) : f32[16, 8] @embed
  n0, h0, r0 = rms_norm(x, _, norm0) {epsilon=1e-05} : f32[16, 8], f32[16, 8], f32[16] @layers.0
  u0 = linear(n0, up0) {bias=false, f32_output=false, parts=1} : f32[16, 32] @layers.0
  d0 = linear(u0, down0) {bias=false, f32_output=false, parts=1} : f32[16, 8] @layers.0
  x1 = add(h0, d0) : f32[16, 8] @layers.0
  n1, h1, r1 = rms_norm(x1, _, norm1) {epsilon=1e-05} : f32[16, 8], f32[16, 8], f32[16] @layers.1
  u1 = linear(n1, up1) {bias=false, f32_output=false, parts=1} : f32[16, 32] @layers.1
  d1 = linear(u1, down1) {bias=false, f32_output=false, parts=1} : f32[16, 8] @layers.1
  x2 = add(h1, d1) : f32[16, 8] @layers.1
  logits = linear(x2, head) {bias=false, f32_output=false, parts=1} : f32[16, 16] @head
  e, de = softmax_cross_entropy(logits, labels) {gradient_dtype="f32"} : f32[16], f32[16, 16] @head
  loss = add_to_sum(loss_sum, e) : f64[24] @head
output loss
)";
}

Placements placed(const Mesh& mesh, std::initializer_list<std::pair<const char*, Placement>> on) {
  Placements placements(mesh.num_axes(), Placement::replicated());
  for (const auto& [axis, placement] : on) {
    if (mesh.find(axis) >= 0) placements[mesh.find(axis)] = placement;
  }
  return placements;
}

Graph sharded(const std::string& mesh_text, std::set<std::string> whole_rows = {}) {
  const Graph plain = parse_graph(model(mesh_text), all_ops());
  const Mesh& mesh = plain.mesh();
  ShardPlan plan;
  plan.whole_rows = std::move(whole_rows);
  plan.place = [&](const Value& value) -> std::optional<Placements> {
    const auto tokens = [&](Placement split) {
      return placed(mesh, {{"dp", split}, {"cp", split}});
    };
    if (value.name == "loss_sum") return tokens(Placement::partial());
    if (value.role == Role::kInput) return tokens(Placement::sharded(0));
    if (value.role != Role::kParameter || value.name.starts_with("norm")) return std::nullopt;
    return placed(mesh, {{"tp", Placement::sharded(value.name.starts_with("down") ? 1 : 0)}});
  };
  Graph placed = shard(plain, plan);
  verify(placed, "shard");
  return placed;
}

Graph differentiated(Graph graph) {
  differentiate(graph, graph.outputs().front());
  hoist_transient(graph);
  verify(graph, "hoist_transient");
  return graph;
}

// "axis placement" of every redistribution of a phase, in order.
std::vector<std::string> moves(const Graph& graph, Phase phase) {
  std::vector<std::string> found;
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "redistribute" && node.phase == phase) {
      found.push_back(node.attrs.text("axis") + " " + node.attrs.text("to"));
    }
  }
  return found;
}

int64_t count(const Graph& graph, std::string_view op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.op->name == op; });
}

using Moves = std::vector<std::string>;

TEST(Shard, SequenceParallelismIsTheCheapestChoice) {
  const Graph graph = sharded("tp=2");
  // The sums of the embedding and of each layer are reduce-scattered over rows, and products gather
  // their inputs; the last reduces the statistics of the split softmax.
  EXPECT_EQ(moves(graph, Phase::kForward),
            (Moves{"tp S0", "tp R", "tp S0", "tp R", "tp S0", "tp R", "tp R"}));
  EXPECT_EQ(graph.type(graph.find("n0")).placements[0], Placement::sharded(0));
  EXPECT_EQ(graph.type(graph.find("u0")).placements[0], Placement::sharded(1));
}

TEST(Shard, WholeRowsAreSummedEverywhere) {
  const Graph graph = sharded("tp=2", {"tp"});
  EXPECT_EQ(moves(graph, Phase::kForward), (Moves{"tp R", "tp R", "tp R", "tp R"}));
  EXPECT_TRUE(graph.type(graph.find("n0")).placements[0].is_replicated());
}

TEST(Shard, DataParallelismMovesNothingForward) {
  EXPECT_EQ(moves(sharded("dp=4"), Phase::kForward), Moves{});
  EXPECT_EQ(to_text(sharded("dp=1 tp=1")), model("dp=1 tp=1"));
}

TEST(Shard, WhatCannotBeSplitIsRefusedByName) {
  try {
    sharded("tp=3");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'table'"), std::string::npos) << error.what();
  }
}

TEST(Differentiate, OwedGradientsBecomeTheirValuesPlacement) {
  const Graph graph = differentiated(sharded("tp=2"));
  // Backward mirrors forward: it scatters what was gathered and gathers what was scattered.
  EXPECT_EQ(moves(graph, Phase::kBackward),
            (Moves{"tp S0", "tp R", "tp S0", "tp R", "tp S0", "tp R"}));
  EXPECT_TRUE(graph.type(graph.find("grad.norm0")).placements[0].is_partial());
  EXPECT_EQ(graph.type(graph.find("grad.up0")).placements[0], Placement::sharded(0));
  const Graph whole = differentiated(sharded("tp=2", {"tp"}));
  EXPECT_EQ(moves(whole, Phase::kBackward), (Moves{"tp R", "tp R", "tp R"}));
  EXPECT_TRUE(whole.type(whole.find("grad.norm0")).placements[0].is_replicated());
}

TEST(TakeStage, CutsWhereALayerEnds) {
  const PipelineShape shape{2, 1, 4};
  Graph whole = differentiated(sharded("pp=2"));
  whole.value(whole.nodes().back().outputs.front()).transient = true;
  const auto chunks = chunks_by_layers(2, 2);
  const Graph first = take_stage(whole, shape, chunks, 0),
              last = take_stage(whole, shape, chunks, 1);
  verify(first, "take_stage");
  verify(last, "take_stage");
  for (const Graph* graph : {&first, &last}) {
    EXPECT_EQ(count(*graph, "send"), 1);
    EXPECT_EQ(count(*graph, "receive"), 1);
    for (const Node& node : graph->nodes()) {
      if (!node.attrs.has("peer")) continue;
      EXPECT_EQ(node.attrs.integer("peer"), graph == &first ? 1 : 0) << node.op->name;
    }
    for (const Value& value : graph->values()) {
      const ValueId before = whole.find(value.name);
      if (before == kNoValue) continue;  // added where a value crosses chunks
      EXPECT_EQ(value.transient, whole.value(before).transient) << value.name;
    }
    EXPECT_EQ(to_text(parse_graph(to_text(*graph), all_ops())), to_text(*graph));
  }
  EXPECT_NE(first.find("table"), kNoValue);
  EXPECT_EQ(first.find("head"), kNoValue);
  EXPECT_TRUE(first.outputs().empty());
  EXPECT_EQ(last.find("table"), kNoValue);
  EXPECT_EQ(last.nodes().front().chunk, 1);
  EXPECT_EQ(first.nodes().size() + last.nodes().size(), whole.nodes().size() + 4);
}

TEST(TakeStage, RefusesWhatSkipsAChunk) {
  const Graph whole = differentiated(sharded("pp=2"));
  const auto odd = [](const Scope& scope) { return scope.layer == 0 ? 3 : 0; };
  EXPECT_THROW(take_stage(whole, PipelineShape{2, 2, 4}, odd, 0), Error);
}

TEST(Zero, WeightsAreGatheredOnceAScopeAndPhase) {
  Graph graph = differentiated(sharded("dp=2"));
  shard_weights(graph);
  verify(graph, "shard_weights");
  EXPECT_TRUE(graph.type(graph.find("up0")).placements[0].is_flat());
  // Forward gathers embed, two layers and the head; backward gathers head and layers.
  EXPECT_EQ(moves(graph, Phase::kForward), (Moves{"dp R", "dp R", "dp R", "dp R"}));
  EXPECT_EQ(moves(graph, Phase::kBackward), (Moves{"dp R", "dp R", "dp R"}));
}

TEST(Zero, ContextRanksShareWeightsWithDataRanks) {
  Graph graph = differentiated(sharded("dp=1 cp=2"));
  shard_weights(graph);
  verify(graph, "shard_weights");
  EXPECT_EQ(graph.type(graph.find("up0")).to_string(graph.mesh()), "f32[32, 8]{cp:F}");
  EXPECT_EQ(moves(graph, Phase::kForward), (Moves{"cp R", "cp R", "cp R", "cp R"}));
  Graph both = differentiated(sharded("dp=2 cp=2"));
  shard_weights(both);
  verify(both, "shard_weights");
  EXPECT_EQ(both.type(both.find("up0")).to_string(both.mesh()), "f32[32, 8]{dp:F cp:F}");
  EXPECT_EQ(moves(both, Phase::kForward),
            (Moves{"cp R", "dp R", "cp R", "dp R", "cp R", "dp R", "cp R", "dp R"}));
  Graph alone = differentiated(sharded("dp=1 cp=1"));
  shard_weights(alone);
  EXPECT_EQ(alone.type(alone.find("up0")).to_string(alone.mesh()), "f32[32, 8]");
}

TEST(Zero, SumsAreReducedWhenTheirScopeIsDone) {
  Graph graph = differentiated(sharded("dp=2"));
  shard_gradients(graph);
  verify(graph, "shard_gradients");
  EXPECT_EQ(count(graph, "zeros"), 8);
  EXPECT_EQ(moves(graph, Phase::kBackward), (Moves{"dp F", "dp F", "dp F", "dp F"}));
  for (const Value& value : graph.values()) {
    if (value.role == Role::kGradient) {
      EXPECT_TRUE(value.type.placements[0].is_flat()) << value.name;
    }
  }
  Graph both = differentiated(sharded("dp=2 cp=2"));
  shard_gradients(both);
  verify(both, "shard_gradients");
  EXPECT_EQ(moves(both, Phase::kBackward),
            (Moves{"dp F", "cp F", "dp F", "cp F", "dp F", "cp F", "dp F", "cp F"}));
}

// What a phase runs, in order: gathers and sums ("+" starts, "-" waits) and ops with arithmetic.
std::vector<std::string> work(const Graph& graph, Phase phase) {
  std::vector<std::string> found;
  for (const Node& node : graph.nodes()) {
    if (node.phase != phase) continue;
    const std::string_view op = node.op->name;
    if (op.starts_with("redistribute")) {
      const bool gathers = node.attrs.text("to") == "R" && node.attrs.has("gathers");
      const std::string half = op == "redistribute_start" ? "+" : op == "redistribute" ? "" : "-";
      found.push_back(half + (gathers ? "gather " : "sum ") + node.scope.name);
    } else {
      found.push_back(fmt::format("{} {}", op, node.scope.name));
    }
  }
  return found;
}

TEST(OverlapLayers, GradientsOfWeightsAreComputedBesideCollectives) {
  Graph graph = differentiated(sharded("tp=2"));
  const size_t nodes = graph.nodes().size();
  overlap_layers(graph);
  verify(graph, "overlap_layers");
  EXPECT_EQ(graph.nodes().size(), nodes + count(graph, "redistribute_start"));
  EXPECT_EQ(work(graph, Phase::kBackward), (Moves{"linear_dw head",
                                                  "linear_dx head",
                                                  "sum layers.1",
                                                  "gather layers.1",
                                                  "linear_dx layers.1",
                                                  "linear_dx layers.1",  //
                                                  "+sum layers.1",
                                                  "linear_dw layers.1",
                                                  "-sum layers.1",
                                                  "rms_norm_backward layers.1",  //
                                                  "+gather layers.0",
                                                  "linear_dw layers.1",
                                                  "-gather layers.0",
                                                  "linear_dx layers.0",
                                                  "linear_dx layers.0",  //
                                                  "+sum layers.0",
                                                  "linear_dw layers.0",
                                                  "-sum layers.0",
                                                  "rms_norm_backward layers.0",  //
                                                  "+gather embed",
                                                  "linear_dw layers.0",
                                                  "-gather embed",  //
                                                  "embedding_dw embed"}));
}

TEST(OverlapLayers, WeightsAreGatheredAScopeAhead) {
  Graph graph = differentiated(sharded("dp=2"));
  shard_weights(graph);
  overlap_layers(graph);
  verify(graph, "overlap_layers");
  EXPECT_EQ(work(graph, Phase::kForward),
            (Moves{"gather embed", "gather layers.0", "embedding embed",  //
                   "+gather layers.1", "rms_norm layers.0", "linear layers.0", "linear layers.0",
                   "add layers.0", "-gather layers.1",  //
                   "+gather head", "rms_norm layers.1", "linear layers.1", "linear layers.1",
                   "add layers.1", "-gather head",  //
                   "linear head", "softmax_cross_entropy head", "add_to_sum head"}));
}

// Over context ranks two scopes ahead, from there over data ranks one.
TEST(OverlapLayers, WeightsAreGatheredAheadOverBothAxes) {
  Graph graph = differentiated(sharded("dp=2 cp=2"));
  shard_weights(graph);
  overlap_layers(graph);
  verify(graph, "overlap_layers");
  EXPECT_EQ(work(graph, Phase::kForward), (Moves{"gather embed",      "gather layers.0",
                                                 "gather embed",      "gather layers.1",
                                                 "gather layers.0",   "embedding embed",  //
                                                 "+gather head",      "+gather layers.1",
                                                 "rms_norm layers.0", "linear layers.0",
                                                 "linear layers.0",   "add layers.0",
                                                 "-gather layers.1",  "-gather head",  //
                                                 "+gather head",      "rms_norm layers.1",
                                                 "linear layers.1",   "linear layers.1",
                                                 "add layers.1",      "-gather head",  //
                                                 "linear head",       "softmax_cross_entropy head",
                                                 "add_to_sum head"}));
}

TEST(OverlapLayers, SumsOfGradientsTravelWhileTheNextScopeRuns) {
  Graph graph = differentiated(sharded("dp=2"));
  shard_gradients(graph);
  overlap_layers(graph);
  verify(graph, "overlap_layers");
  EXPECT_EQ(work(graph, Phase::kBackward), (Moves{"zeros head",
                                                  "linear_dw head",
                                                  "sum head",
                                                  "linear_dx head",  //
                                                  "zeros layers.1",
                                                  "linear_dw layers.1",
                                                  "linear_dx layers.1",
                                                  "zeros layers.1",
                                                  "linear_dw layers.1",
                                                  "linear_dx layers.1",
                                                  "zeros layers.1",
                                                  "rms_norm_backward layers.1",  //
                                                  "+sum layers.1",
                                                  "zeros layers.0",
                                                  "linear_dw layers.0",
                                                  "linear_dx layers.0",
                                                  "zeros layers.0",
                                                  "linear_dw layers.0",
                                                  "linear_dx layers.0",
                                                  "zeros layers.0",
                                                  "rms_norm_backward layers.0",
                                                  "-sum layers.1",  //
                                                  "+sum layers.0",
                                                  "zeros embed",
                                                  "embedding_dw embed",
                                                  "-sum layers.0",  //
                                                  "sum embed"}));
}

}  // namespace
}  // namespace skein
