// Passes on graphs in text form.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "skein/ir/graph_text.h"
#include "skein/ir/verify.h"
#include "skein/ops/ops.h"
#include "skein/passes/differentiate.h"
#include "skein/passes/fuse_residual.h"
#include "skein/passes/hoist_transient.h"
#include "skein/passes/recompute.h"
#include "skein/passes/simplify.h"
#include "skein/passes/use_fp8.h"

namespace skein {
namespace {

// Two token blocks of logits over a normed input.
constexpr const char* kModel = R"(skein graph
mesh dp=1
parameter norm : f32[8]
parameter head : f32[16, 8]
parameter table : f32[16, 8]
input tokens : i32[4]
input labels : i32[4]
input loss_sum : f64[24]
forward
  x = embedding(tokens, table) : f32[4, 8] @embed
  y, h, rstd = rms_norm(x, _, norm) {epsilon=1e-05} : f32[4, 8], f32[4, 8], f32[4] @layers.0
  z = add(y, h) : f32[4, 8] @layers.0
  a, b = split(z) {sizes=[2, 2]} : f32[2, 8], f32[2, 8] @head
  la, lb = split(labels) {sizes=[2, 2]} : i32[2], i32[2] @head
  ga = linear(a, head) {bias=false, f32_output=false, parts=1} : f32[2, 16]! @head
  ea, da = softmax_cross_entropy(ga, la) {gradient_dtype="f32"} : f32[2], f32[2, 16]! @head
  gb = linear(b, head) {bias=false, f32_output=false, parts=1} : f32[2, 16]! @head
  eb, db = softmax_cross_entropy(gb, lb) {gradient_dtype="f32"} : f32[2], f32[2, 16]! @head
  e = concat(ea, eb) : f32[4] @head
  loss = add_to_sum(loss_sum, e) : f64[24] @head
output loss
)";

Graph differentiated() {
  Graph graph = parse_graph(kModel, all_ops());
  differentiate(graph, graph.find("loss"));
  hoist_transient(graph);
  verify(graph, "hoist_transient");
  return graph;
}

// Op names of a phase, in order.
std::string ops_of(const Graph& graph, Phase phase) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    if (node.phase == phase) text += (text.empty() ? "" : " ") + std::string(node.op->name);
  }
  return text;
}

TEST(Differentiate, EveryParameterGetsAGradientSum) {
  const Graph graph = differentiated();
  for (const char* name : {"grad.norm", "grad.head", "grad.table"}) {
    const ValueId id = graph.find(name);
    ASSERT_NE(id, kNoValue) << name;
    EXPECT_EQ(graph.value(id).role, Role::kGradient);
    EXPECT_EQ(graph.type(id).dtype, DType::kF32);
  }
}

TEST(Differentiate, TheLossMustDependOnAParameter) {
  Graph graph = parse_graph(
      "skein graph\nmesh dp=1\ninput x : f32[4]\ninput s : f64[24]\nforward\n"
      " loss = add_to_sum(s, x) : f64[24]\n",
      all_ops());
  EXPECT_THROW(differentiate(graph, graph.find("loss")), Error);
}

TEST(UseFp8, RoundsTheGradientsOfALayerOnce) {
  Graph graph = parse_graph(R"(skein graph
mesh dp=1
parameter table : bf16[16, 8]
parameter gate : bf16[16, 8]
parameter up : bf16[16, 8]
parameter down : bf16[8, 16]
parameter head : bf16[16, 8]
input tokens : i32[4]
input labels : i32[4]
input loss_sum : f64[24]
forward
  x = embedding(tokens, table) : bf16[4, 8] @embed
  g, u = linear(x, gate, up) {bias=false, f32_output=false, parts=2} : bf16[4, 16], bf16[4, 16] @layers.0
  s = swiglu(g, u) : bf16[4, 16] @layers.0
  y = linear(s, down) {bias=false, f32_output=false, parts=1} : bf16[4, 8] @layers.0
  l = linear(y, head) {bias=false, f32_output=true, parts=1} : f32[4, 16] @head
  e, d = softmax_cross_entropy(l, labels) {gradient_dtype="bf16"} : f32[4], bf16[4, 16] @head
  loss = add_to_sum(loss_sum, e) : f64[24] @head
output loss
)",
                            all_ops());
  differentiate(graph, graph.find("loss"));
  const auto outputs_of = [](const Graph& of) {
    std::multiset<ValueId> outputs;
    for (const Node& node : of.nodes()) outputs.insert(node.outputs.begin(), node.outputs.end());
    return outputs;
  };
  const auto before = outputs_of(graph);
  use_fp8(graph, {.fast_accumulation = true});
  verify(graph, "use_fp8");
  EXPECT_EQ(ops_of(graph, Phase::kBackward),
            "linear_dw linear_dx fp8_largest linear_dx_dw swiglu_backward linear_dx_dw "
            "embedding_dw");
  EXPECT_EQ(ops_of(graph, Phase::kForward),
            "embedding fp8_largest fp8_largest linear swiglu fp8_largest linear linear "
            "softmax_cross_entropy add_to_sum");
  const auto after = outputs_of(graph);
  EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
  for (const Node& node : graph.nodes()) {
    const bool in_layer = node.op->can_use_fp8 && node.scope.is_layer();
    EXPECT_EQ(node.attrs.has("fp8"), in_layer) << node.op->name;
    if (node.op->name == "linear_dx_dw") {  // what forward found of weights and x
      const size_t w = node.inputs.size() - 2;
      EXPECT_EQ(graph.nodes()[graph.value(node.inputs[w]).producer].phase, Phase::kForward);
      EXPECT_EQ(graph.nodes()[graph.value(node.inputs[w + 1]).producer].phase, Phase::kForward);
    }
    EXPECT_EQ(node.attrs.has("fast_accumulation"), in_layer && node.op->name == "linear")
        << node.op->name;
  }
}

// What verify checks of each product: its operands, in their places.
TEST(UseFp8, KeepsTheWeightsThatSuit8Bits) {
  Graph graph = parse_graph(R"(skein graph
mesh dp=1
parameter table : bf16[16, 32]
parameter gate : bf16[48, 32]
parameter up : bf16[48, 32]
parameter down : bf16[32, 48]
parameter odd : bf16[24, 32]
parameter head : bf16[16, 24]
input tokens : i32[4]
input labels : i32[4]
input loss_sum : f64[24]
forward
  x = embedding(tokens, table) : bf16[4, 32] @embed
  g, u = linear(x, gate, up) {bias=false, f32_output=false, parts=2} : bf16[4, 48], bf16[4, 48] @layers.0
  s = swiglu(g, u) : bf16[4, 48] @layers.0
  y = linear(s, down) {bias=false, f32_output=false, parts=1} : bf16[4, 32] @layers.0
  z = linear(y, odd) {bias=false, f32_output=false, parts=1} : bf16[4, 24] @layers.1
  l = linear(z, head) {bias=false, f32_output=true, parts=1} : f32[4, 16] @head
  e, d = softmax_cross_entropy(l, labels) {gradient_dtype="bf16"} : f32[4], bf16[4, 16] @head
  loss = add_to_sum(loss_sum, e) : f64[24] @head
output loss
)",
                            all_ops());
  differentiate(graph, graph.find("loss"));
  use_fp8(graph, {.keep_weights = true});
  verify(graph, "use_fp8");
  std::multiset<std::string> read;
  for (const Node& node : graph.nodes()) {
    if (node.attrs.has("kept_weights")) read.insert(graph.value(node.inputs.back()).name);
  }
  EXPECT_EQ(read, (std::multiset<std::string>{"rounded.gate", "rounded.gate", "rounded.down",
                                              "rounded.down"}));
  EXPECT_EQ(num_rounding_products(graph), 1);
  EXPECT_EQ(graph.type(graph.find("rounded.gate")).shape, (Shape{96 * 32}));
  const Graph rounding = weights_to_round(graph);
  verify(rounding, "weights_to_round");
  EXPECT_EQ(ops_of(rounding, Phase::kUpdate), "round_weights round_weights");
  EXPECT_EQ(rounding.value(rounding.nodes()[0].inputs[1]).name, "up");
  EXPECT_EQ(rounding.value(rounding.find("rounded.gate")).role, Role::kRounded);
}

// The norm in front of a product finds what it rounds, but not for another chunk of a pipeline.
TEST(UseFp8, HasTheMakerFindTheLargestMagnitudeInItsChunk) {
  for (const bool cut : {false, true}) {
    Graph graph = parse_graph(R"(skein graph
mesh dp=1
parameter norm : bf16[8]
parameter w : bf16[16, 8]
input x : bf16[4, 8]
forward
  y, h, rstd = rms_norm(x, _, norm) {epsilon=1e-05} : bf16[4, 8], bf16[4, 8], f32[4] @layers.0
  z = linear(y, w) {bias=false, f32_output=false, parts=1} : bf16[4, 16] @layers.1
output z
)",
                              all_ops());
    use_fp8(graph, {.chunk_of = [&](const Scope& scope) { return cut ? scope.layer : 0; }});
    verify(graph, "use_fp8");
    EXPECT_EQ(ops_of(graph, Phase::kForward),
              cut ? "rms_norm fp8_largest fp8_largest linear" : "rms_norm fp8_largest linear");
    EXPECT_EQ(graph.nodes().front().outputs.size(), cut ? 3u : 4u);
  }
}

// As of q, k and v backward: rope makes two of three gradients.
TEST(UseFp8, LooksThroughWhatNobodyElseFinds) {
  Graph graph = parse_graph(R"(skein graph
mesh dp=1
parameter w : bf16[8, 8]
parameter w2 : bf16[8, 8]
parameter w3 : bf16[8, 8]
input q : bf16[4, 8]
input k : bf16[4, 8]
input v : bf16[4, 8]
input positions : i32[4]
input table : f32[16, 8]
backward
  dq, dk = rope(q, k, positions, table) {head_dim=8, inverse=true} : bf16[4, 8], bf16[4, 8] @layers.0
  dx = linear_dx(dq, dk, v, w, w2, w3) {parts=3} : bf16[4, 8] @layers.0
  dy = linear_dx(dq, dk, w, w2) {parts=2} : bf16[4, 8] @layers.0
output dx
output dy
)",
                            all_ops());
  use_fp8(graph, {});
  verify(graph, "use_fp8");
  EXPECT_EQ(ops_of(graph, Phase::kBackward),
            "rope fp8_largest fp8_largest linear_dx fp8_largest linear_dx");
  const std::vector<Node>& nodes = graph.nodes();
  const ValueId of_rope = nodes[0].outputs.at(2);
  EXPECT_EQ(nodes[1].inputs, (std::vector<ValueId>{of_rope, graph.find("v")}));
  EXPECT_EQ(nodes.back().inputs.at(4), of_rope);
}

TEST(HoistTransient, EachTokenBlockIsFollowedByItsGradient) {
  const Graph graph = differentiated();
  EXPECT_EQ(ops_of(graph, Phase::kForward),
            "embedding rms_norm add split split linear softmax_cross_entropy linear_dw linear_dx "
            "linear softmax_cross_entropy linear_dw linear_dx concat add_to_sum");
  EXPECT_EQ(ops_of(graph, Phase::kBackward), "concat rms_norm_backward embedding_dw");
}

TEST(Recompute, SelectiveRebuildsTheNormFromWhatIsKept) {
  // The head reads z through a layer of its own, so that backward needs y.
  Graph graph = parse_graph(
      "skein graph\nmesh dp=1\nparameter norm : f32[8]\nparameter w : f32[8, 8]\n"
      "input x : f32[4, 8]\ninput labels : i32[4]\ninput loss_sum : f64[24]\nforward\n"
      " y, h, rstd = rms_norm(x, _, norm) {epsilon=1e-05} : f32[4, 8], f32[4, 8], f32[4] "
      "@layers.0\n"
      " z = linear(y, w) {bias=false, f32_output=false, parts=1} : f32[4, 8] @layers.0\n"
      " e, d = softmax_cross_entropy(z, labels) {gradient_dtype=\"f32\"} : f32[4], f32[4, 8] "
      "@head\n"
      " loss = add_to_sum(loss_sum, e) : f64[24] @head\n",
      all_ops());
  differentiate(graph, graph.find("loss"));
  hoist_transient(graph);
  verify(graph, "hoist_transient");
  recompute(graph, RecomputePolicy::kSelective);
  simplify(graph);
  verify(graph, "simplify");
  const Node* again = nullptr;
  for (const Node& node : graph.nodes()) {
    if (node.phase == Phase::kBackward && node.op->name == "rms_norm") again = &node;
  }
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(graph.value(again->inputs[0]).name, "h");
  EXPECT_EQ(again->inputs[1], kNoValue);
}

TEST(Recompute, FullKeepsOnlyWhatLeavesTheLayer) {
  Graph graph = differentiated();
  recompute(graph, RecomputePolicy::kFull);
  simplify(graph);
  verify(graph, "simplify");
  // Of layer 0, backward may read only clones and z, the layer's one result.
  for (const Node& node : graph.nodes()) {
    if (node.phase != Phase::kBackward) continue;
    for (const ValueId id : node.inputs) {
      if (id == kNoValue || graph.value(id).producer < 0) continue;
      const Node& producer = graph.nodes()[graph.value(id).producer];
      if (producer.phase == Phase::kForward && producer.scope.layer == 0) {
        EXPECT_EQ(graph.value(id).name, "z");
      }
    }
  }
  EXPECT_EQ(ops_of(graph, Phase::kBackward), "concat rms_norm rms_norm_backward embedding_dw");
}

TEST(Lower, RemovesWhatNothingReads) {
  Graph graph = parse_graph(
      "skein graph\nmesh dp=1\ninput x : f32[4, 8]\nforward\n a = add(x, x) : f32[4, 8]\n"
      " b = add(a, x) : f32[4, 8]\n c = add(a, a) : f32[4, 8]\noutput b\n",
      all_ops());
  simplify(graph);
  verify(graph, "simplify");
  EXPECT_EQ(graph.nodes().size(), 2u);
  EXPECT_EQ(graph.value(graph.nodes()[1].outputs[0]).name, "b");
}

TEST(Passes, PrintAndParseAgain) {
  Graph graph = differentiated();
  const std::string text = to_text(graph);
  EXPECT_EQ(to_text(parse_graph(text, all_ops())), text);
}

constexpr const char* kResiduals = R"(skein graph
mesh dp=1
parameter norm : f32[8]
input a : f32[4, 8]
input b : f32[4, 8]
forward
  x = add(a, b) : f32[4, 8] @layers.0
  y, h, rstd = rms_norm(x, _, norm) {epsilon=1e-05} : f32[4, 8], f32[4, 8], f32[4] @layers.1
  z = add(y, x) : f32[4, 8] @layers.1
  u = add(z, b) : f32[4, 8] @layers.1
  v = add(u, z) : f32[4, 8] @layers.1
  y2, h2, rstd2 = rms_norm(u, _, norm) {epsilon=1e-05} : f32[4, 8], f32[4, 8], f32[4] @layers.2
output v
)";

TEST(FuseResidual, NormsAddWhatTheyFollow) {
  Graph graph = parse_graph(kResiduals, all_ops());
  fuse_residual(graph);
  verify(graph, "fuse_residual");
  // The second norm does not follow its sum, which another node reads before.
  EXPECT_EQ(ops_of(graph, Phase::kForward), "rms_norm add add add rms_norm");
  const Node& norm = graph.nodes().front();
  EXPECT_EQ(norm.inputs[0], graph.find("a"));
  EXPECT_EQ(norm.inputs[1], graph.find("b"));
  EXPECT_EQ(graph.nodes()[1].inputs[1], norm.outputs[1]);  // x is now the norm's h
}

TEST(FuseResidual, LayerNormsAddWhatTheyFollow) {
  Graph graph = parse_graph(R"(skein graph
mesh dp=1
parameter norm : f32[8]
parameter bias : f32[8]
input a : f32[4, 8]
input b : f32[4, 8]
forward
  x = add(a, b) : f32[4, 8] @layers.0
  y, h, mean, rstd = layer_norm(x, _, norm, bias) {epsilon=1e-05} : f32[4, 8], f32[4, 8], f32[4], f32[4] @layers.1
  z = add(y, x) : f32[4, 8] @layers.1
output z
)",
                            all_ops());
  fuse_residual(graph);
  verify(graph, "fuse_residual");
  EXPECT_EQ(ops_of(graph, Phase::kForward), "layer_norm add");
  const Node& norm = graph.nodes().front();
  EXPECT_EQ(norm.inputs[0], graph.find("a"));
  EXPECT_EQ(norm.inputs[1], graph.find("b"));
  EXPECT_EQ(graph.nodes()[1].inputs[1], norm.outputs[1]);
}

TEST(FuseResidual, KeepsASumThatOutlivesTheProgram) {
  std::string text = kResiduals;
  text.replace(text.find("output v"), 8, "output x");
  Graph graph = parse_graph(text, all_ops());
  fuse_residual(graph);
  verify(graph, "fuse_residual");
  EXPECT_EQ(ops_of(graph, Phase::kForward), "add rms_norm add add add rms_norm");
}

}  // namespace
}  // namespace skein
