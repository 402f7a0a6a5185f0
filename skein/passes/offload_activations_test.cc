#include "skein/passes/offload_activations.h"

#include <gtest/gtest.h>

#include <map>

#include "skein/ir/graph_text.h"
#include "skein/ir/verify.h"
#include "skein/ops/offload/offload.h"
#include "skein/ops/ops.h"
#include "skein/passes/differentiate.h"
#include "skein/passes/hoist_transient.h"
#include "skein/passes/memory/plan_memory.h"
#include "skein/passes/recompute.h"
#include "skein/passes/simplify.h"

namespace skein {
namespace {

// Attention with q, k and v in one matrix, an MLP, and a head; h is a view of x.
constexpr const char* kModel = R"(skein graph
mesh dp=1
parameter table : bf16[16, 64]
parameter norm : bf16[64]
parameter wq : bf16[48, 64]
parameter wk : bf16[16, 64]
parameter wv : bf16[16, 64]
parameter wo : bf16[64, 48]
parameter wg : bf16[96, 64]
parameter wu : bf16[96, 64]
parameter wd : bf16[64, 96]
parameter head : bf16[96, 64]
input tokens : i32[32]
input labels : i32[32]
input attention_start : i32[32]
input loss_sum : f64[24]
forward
  x = embedding(tokens, table) : bf16[32, 64] @embed
  y, h, rstd = rms_norm(x, _, norm) {epsilon=1e-05} : bf16[32, 64], bf16[32, 64], f32[32] @layers.0
  q, k, v = linear(y, wq, wk, wv) {bias=false, f32_output=false, parts=3} : bf16[32, 48], bf16[32, 16], bf16[32, 16] @layers.0
  o, lse = attention(q, k, v, attention_start) {causal=true, head_dim=16, heads=3, kv_heads=1, scale=0.25, sequence_length=32} : bf16[32, 48], f32[32, 3] @layers.0
  p = linear(o, wo) {bias=false, f32_output=false, parts=1} : bf16[32, 64] @layers.0
  z = add(h, p) : bf16[32, 64] @layers.0
  g, u = linear(z, wg, wu) {bias=false, f32_output=false, parts=2} : bf16[32, 96], bf16[32, 96] @layers.1
  s = swiglu(g, u) : bf16[32, 96] @layers.1
  m = linear(s, wd) {bias=false, f32_output=false, parts=1} : bf16[32, 64] @layers.1
  logits = linear(m, head) {bias=false, f32_output=false, parts=1} : bf16[32, 96]! @head
  e, d = softmax_cross_entropy(logits, labels) {gradient_dtype="bf16"} : f32[32], bf16[32, 96]! @head
  loss = add_to_sum(loss_sum, e) : f64[24] @head
output loss
)";

Graph training_graph() {
  Graph graph = parse_graph(kModel, all_ops());
  differentiate(graph, graph.find("loss"));
  hoist_transient(graph);
  verify(graph, "hoist_transient");
  recompute(graph, RecomputePolicy::kNone);
  simplify(graph);
  verify(graph, "simplify");
  return graph;
}

std::vector<std::string> stashed(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.op == &kStash) names.push_back(graph.value(node.inputs.front()).name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Offload, TakesWhatBackwardReadsAndIsLargeEnough) {
  Graph all = training_graph(), large = training_graph(), none = training_graph();
  offload(all, {.least_bytes = 1, .num_soon = 0});
  verify(all, "offload");
  // In the order of their last forward reader. h is a view of x; d.m is the head's gradient.
  EXPECT_EQ(stashed(all),
            (Names{"rstd", "y", "q", "k", "v", "lse", "o", "h", "z", "g", "u", "s", "d.m"}));
  offload(large, {.least_bytes = 32 * 64 * 2, .num_soon = 0});
  verify(large, "offload");
  EXPECT_EQ(stashed(large), (Names{"y", "q", "k", "v", "h", "z", "g", "u", "s", "d.m"}));
  offload(none);
  verify(none, "offload");
  EXPECT_EQ(to_text(none), to_text(training_graph()));
}

TEST(Offload, LeavesWhatIsBackAtOnce) {
  Graph graph = training_graph();
  offload(graph, {.least_bytes = 32 * 64 * 2, .num_soon = 3});
  verify(graph, "offload");
  // The first backward nodes read d.m and s, the third reads g and u.
  EXPECT_EQ(stashed(graph), (Names{"y", "q", "k", "v", "h", "z"}));
}

// Where the copy that begins at node `begin` is ended by `op`.
size_t end_of(const Graph& graph, size_t begin, const OpDef& op) {
  for (size_t i = begin + 1; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op == &op &&
        node.inputs.front() == (op.name == "stash_end" ? graph.nodes()[begin].inputs.front()
                                                       : graph.nodes()[begin].outputs.front())) {
      EXPECT_EQ(node.attrs.integer("channel"), graph.nodes()[begin].attrs.integer("channel"));
      return i;
    }
  }
  ADD_FAILURE() << "it does not end";
  return begin;
}

TEST(Offload, StashesBehindTheLastReader) {
  Graph graph = training_graph();
  offload(graph, {.least_bytes = 1, .num_soon = 0});
  verify(graph, "offload");
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op != &kStash) continue;
    EXPECT_EQ(node.phase, Phase::kForward);
    EXPECT_EQ(graph.nodes()[end_of(graph, i, kStashEnd)].phase, Phase::kForward);
    for (size_t later = i + 1; later < graph.nodes().size(); ++later) {
      const Node& other = graph.nodes()[later];
      if (other.op == &kStash || other.op == &kStashEnd) continue;
      for (const ValueId id : other.inputs) EXPECT_NE(id, node.inputs.front());
    }
  }
}

TEST(Offload, FetchesBeforeTheFirstReader) {
  Graph graph = training_graph();
  offload(graph, {.least_bytes = 1, .num_soon = 0});
  verify(graph, "offload");
  int num_fetched = 0;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op != &kFetch) continue;
    ++num_fetched;
    EXPECT_EQ(node.phase, Phase::kBackward);
    const size_t end = end_of(graph, i, kFetchEnd);
    size_t reader = end + 1;
    while (graph.nodes()[reader].op == &kFetchEnd) ++reader;
    const auto& inputs = graph.nodes()[reader].inputs;
    EXPECT_NE(std::find(inputs.begin(), inputs.end(), graph.nodes()[end].outputs.front()),
              inputs.end());
    EXPECT_EQ(graph.nodes()[end].scope, graph.nodes()[reader].scope);
  }
  EXPECT_EQ(num_fetched, 13);
}

// Each copy can overlap with the computation between two places.
TEST(Offload, CopiesBesideTheComputation) {
  Graph graph = training_graph();
  offload(graph, {.least_bytes = 32 * 64 * 2, .num_soon = 0});
  verify(graph, "offload");
  const auto computed_within = [&](const OpDef& begin, const OpDef& end) {
    std::vector<int> counts;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      if (graph.nodes()[i].op != &begin) continue;
      int count = 0;
      for (size_t j = i; j < end_of(graph, i, end); ++j) {
        const OpDef* op = graph.nodes()[j].op;
        count += op != &kStash && op != &kStashEnd && op != &kFetch && op != &kFetchEnd;
      }
      counts.push_back(count);
    }
    return counts;
  };
  // The stash of y ends where h begins, that of q, k and v at z, of h at g and u, of z at s, of g
  // and u at d.m, and the last two at the end of forward.
  EXPECT_EQ(computed_within(kStash, kStashEnd), (std::vector<int>{3, 3, 3, 3, 2, 2, 5, 5, 5, 1}));
  // The fetches of the first two places begin with backward, each other one where the second place
  // before it is used.
  EXPECT_EQ(computed_within(kFetch, kFetchEnd), (std::vector<int>{0, 0, 2, 2, 3, 5, 5, 5, 5, 3}));
}

TEST(Offload, ActivationsLieInHostMemory) {
  const Graph plain = training_graph();
  Graph offloaded = training_graph();
  offload(offloaded, {.least_bytes = 1, .num_soon = 0});
  verify(offloaded, "offload");
  const GraphToPlan request{.graph = &offloaded, .slots = {{0, 3}}};
  const ProgramSet before = plan_memory({{.graph = &plain, .slots = {{0, 3}}}}, cpu_kernels());
  const ProgramSet after = plan_memory({request}, cpu_kernels());
  const auto bytes = [](const ProgramSet& set, Arena arena) {
    return set.arena_bytes[static_cast<size_t>(arena)];
  };
  EXPECT_EQ(bytes(before, Arena::kHostActivations), 0);
  EXPECT_EQ(bytes(after, Arena::kActivations), 0);
  // The arena holds every byte, plus the alignment of q, k, v and of g, u one by one.
  EXPECT_GE(bytes(after, Arena::kHostActivations), bytes(before, Arena::kActivations));
  EXPECT_LE(bytes(after, Arena::kHostActivations),
            bytes(before, Arena::kActivations) + 3 * 3 * kArenaAlignment);
  EXPECT_TRUE(after.on_host[static_cast<size_t>(Arena::kHostActivations)]);
  for (const Program& program : after.programs) {
    for (const Instruction& instruction : program.instructions) {
      for (const Operand& output : instruction.outputs) {
        EXPECT_EQ(output.arena == Arena::kHostActivations, instruction.op == &kStash)
            << instruction.op->name;
        if (instruction.op != &kStash) continue;
        EXPECT_EQ(output.slot_bytes * 3, bytes(after, Arena::kHostActivations));
      }
      for (const Operand& input : instruction.inputs) {
        EXPECT_EQ(input.arena == Arena::kHostActivations, instruction.op == &kFetch)
            << instruction.op->name;
      }
    }
  }
}

}  // namespace
}  // namespace skein
