#include "skein/passes/memory/check_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "skein/ir/graph_text.h"
#include "skein/ir/verify.h"
#include "skein/ops/add/add.h"
#include "skein/ops/offload/offload.h"
#include "skein/ops/ops.h"
#include "skein/passes/differentiate.h"
#include "skein/passes/hoist_transient.h"

namespace skein {
namespace {

const std::vector<MemoryRun> kTwoSteps = {
    {"forward"}, {"backward", 0, true}, {"forward"}, {"backward", 0, true}};

std::string why_not(const Graph& graph, const ProgramSet& programs,
                    const std::vector<MemoryRun>& runs = kTwoSteps) {
  try {
    check_memory({&graph}, programs, runs);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A layer of a model with its head in token blocks, differentiated.
Graph layer() {
  Graph graph = parse_graph(R"(skein graph
mesh dp=1
parameter norm : bf16[64]
parameter wq : bf16[48, 64]
parameter wk : bf16[16, 64]
parameter wv : bf16[16, 64]
parameter wo : bf16[64, 48]
parameter head : bf16[96, 64]
input x : bf16[32, 64]
input labels : i32[32]
input positions : i32[32]
input table : f32[32, 16]
input attention_start : i32[32]
input loss_sum : f64[24]
forward
  y, h, rstd = rms_norm(x, _, norm) {epsilon=1e-05} : bf16[32, 64], bf16[32, 64], f32[32]
  q, k, v = linear(y, wq, wk, wv) {bias=false, f32_output=false, parts=3} : bf16[32, 48], bf16[32, 16], bf16[32, 16]
  q1, k1 = rope(q, k, positions, table) {head_dim=16, inverse=false} : bf16[32, 48], bf16[32, 16]
  o, lse = attention(q1, k1, v, attention_start) {causal=true, head_dim=16, heads=3, kv_heads=1, scale=0.25, sequence_length=32} : bf16[32, 48], f32[32, 3]
  p = linear(o, wo) {bias=false, f32_output=false, parts=1} : bf16[32, 64]
  z = add(h, p) : bf16[32, 64]
  a, b = split(z) {sizes=[16, 16]} : bf16[16, 64], bf16[16, 64]
  la, lb = split(labels) {sizes=[16, 16]} : i32[16], i32[16]
  ga = linear(a, head) {bias=false, f32_output=false, parts=1} : bf16[16, 96]!
  ea, da = softmax_cross_entropy(ga, la) {gradient_dtype="bf16"} : f32[16], bf16[16, 96]!
  gb = linear(b, head) {bias=false, f32_output=false, parts=1} : bf16[16, 96]!
  eb, db = softmax_cross_entropy(gb, lb) {gradient_dtype="bf16"} : f32[16], bf16[16, 96]!
  e = concat(ea, eb) : f32[32]
  loss = add_to_sum(loss_sum, e) : f64[24]
output loss
)",
                            all_ops());
  differentiate(graph, graph.find("loss"));
  hoist_transient(graph);
  verify(graph, "hoist_transient");
  return graph;
}

bool is_read(const Graph& graph, ValueId id) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end();
  });
}

TEST(CheckMemory, AcceptsWhatIsPlanned) {
  const Graph graph = layer();
  EXPECT_EQ(why_not(graph, plan_memory({{&graph}}, cpu_kernels())), "");
}

// Every operand of every step: where it is not, a step reads what nobody wrote for it, or writes
// where nobody looks for it.
TEST(CheckMemory, RefusesEveryShiftedOffset) {
  const Graph graph = layer();
  const ProgramSet planned = plan_memory({{&graph}}, cpu_kernels());
  int num_shifted = 0;
  const auto expect_refused = [&](size_t p, size_t s, bool of_output, size_t i) {
    ProgramSet programs = planned;
    Instruction& instruction = programs.programs[p].instructions[s];
    (of_output ? instruction.outputs : instruction.inputs)[i].offset_bytes += kArenaAlignment;
    for (int64_t& bytes : programs.arena_bytes) bytes += kArenaAlignment;
    EXPECT_NE(why_not(graph, programs), "")
        << programs.programs[p].name << ", instruction " << s << " [" << instruction.op->name
        << "], " << (of_output ? "output " : "input ") << i;
    ++num_shifted;
  };
  for (size_t p = 0; p < planned.programs.size(); ++p) {
    for (size_t s = 0; s < planned.programs[p].instructions.size(); ++s) {
      const Instruction& instruction = planned.programs[p].instructions[s];
      const Node& node = graph.nodes()[static_cast<size_t>(instruction.node)];
      for (size_t i = 0; i < instruction.inputs.size(); ++i) {
        if (instruction.inputs[i].present()) expect_refused(p, s, false, i);
      }
      for (size_t i = 0; i < instruction.outputs.size(); ++i) {
        if (is_read(graph, node.outputs[i])) expect_refused(p, s, true, i);
      }
    }
  }
  EXPECT_GT(num_shifted, 100);
}

// Steps in another order than what one makes and the next one reads or overwrites.
TEST(CheckMemory, RefusesEverySwapOfTwoStepsOfWhichOneNeedsTheOther) {
  const Graph graph = layer();
  const ProgramSet planned = plan_memory({{&graph}}, cpu_kernels());
  int num_swapped = 0;
  for (size_t p = 0; p < planned.programs.size(); ++p) {
    for (size_t s = 0; s + 1 < planned.programs[p].instructions.size(); ++s) {
      ProgramSet programs = planned;
      std::vector<Instruction>& instructions = programs.programs[p].instructions;
      const Node& first = graph.nodes()[static_cast<size_t>(instructions[s].node)];
      const Node& second = graph.nodes()[static_cast<size_t>(instructions[s + 1].node)];
      const bool needs = std::any_of(first.outputs.begin(), first.outputs.end(), [&](ValueId id) {
        return std::find(second.inputs.begin(), second.inputs.end(), id) != second.inputs.end();
      });
      if (!needs) continue;
      std::swap(instructions[s], instructions[s + 1]);
      EXPECT_NE(why_not(graph, programs), "") << programs.programs[p].name << ", instruction " << s;
      ++num_swapped;
    }
  }
  EXPECT_GT(num_swapped, 10);
}

TEST(CheckMemory, RefusesEveryStepThatIsLeftOut) {
  const Graph graph = layer();
  const ProgramSet planned = plan_memory({{&graph}}, cpu_kernels());
  for (size_t p = 0; p < planned.programs.size(); ++p) {
    for (size_t s = 0; s < planned.programs[p].instructions.size(); ++s) {
      ProgramSet programs = planned;
      std::vector<Instruction>& instructions = programs.programs[p].instructions;
      const Node& node = graph.nodes()[static_cast<size_t>(instructions[s].node)];
      if (!std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return is_read(graph, id); })) {
        continue;
      }
      instructions.erase(instructions.begin() + static_cast<std::ptrdiff_t>(s));
      EXPECT_NE(why_not(graph, programs), "") << programs.programs[p].name << ", instruction " << s;
    }
  }
}

constexpr const char* kChain = R"(skein graph
mesh dp=1
input x : f32[8, 64]
forward
  a = add(x, x) : f32[8, 64]
  b = add(a, x) : f32[8, 64]
  c = add(b, x) : f32[8, 64]
  d = add(c, x) : f32[8, 64]
output d
)";

// A value that is read longer than its memory was planned for.
TEST(CheckMemory, RefusesALongerLifetime) {
  const Graph graph = parse_graph(kChain, all_ops());
  ProgramSet programs = plan_memory({{&graph}}, cpu_kernels());
  const std::vector<MemoryRun> runs = {{"forward", 0, true}, {"forward", 0, true}};
  ASSERT_EQ(why_not(graph, programs, runs), "");
  Graph longer = graph;
  std::vector<Node> nodes = longer.nodes();
  nodes[3].inputs[1] = graph.find("a");
  longer.replace_nodes(nodes);
  std::vector<Instruction>& instructions = programs.programs[0].instructions;
  instructions[3].inputs[1] = instructions[0].outputs[0];
  EXPECT_EQ(why_not(longer, programs, runs),
            "program 'forward', instruction 3 [add]: reads 'a', but workspace+0 (1 x 2048 bytes) "
            "holds c of instruction 2 of program 'forward'");
}

// The example of a review: the whole of what was split, read after a part was turned in place.
TEST(CheckMemory, RefusesReadingTheWholeAfterAPartWasTurnedInPlace) {
  const std::string text = R"(skein graph
mesh dp=1
input x : f32[64, 16]
input positions : i32[32]
input table : f32[32, 16]
forward
  y = add(x, x) : f32[64, 16]
  q, k = split(y) {sizes=[32, 32]} : f32[32, 16], f32[32, 16]
  q1, k1 = rope(q, k, positions, table) {head_dim=16, inverse=false} : f32[32, 16], f32[32, 16]
)";
  const auto refusals = [&](const std::string& more) {
    const Graph graph = parse_graph(text + more, all_ops());
    std::string of_graph;
    try {
      verify(graph, "test");
    } catch (const Error& error) {
      of_graph = error.what();
    }
    return std::pair(
        of_graph, why_not(graph, plan_memory({{&graph}}, cpu_kernels()), {{"forward", 0, true}}));
  };
  const auto [of_graph, of_programs] = refusals("  z = add(y, x) : f32[64, 16]\noutput z\n");
  EXPECT_EQ(of_graph, "after test: node 3 [add]: 'y' is read after node 2 [rope] overwrote it");
  EXPECT_NE(of_programs.find("instruction 3 [add]: reads 'y', but workspace"), std::string::npos)
      << of_programs;
  const auto fine = refusals("  z = add(q1, k1) : f32[32, 16]\noutput z\n");
  EXPECT_EQ(fine, std::pair(std::string(), std::string()));
}

// a goes to the host and comes back, while b, c and d are computed.
Graph offloaded() {
  Graph graph{Mesh({{"dp", 1}})};
  const TensorType type = TensorType::replicated(DType::kF32, Shape{8, 64}, graph.mesh());
  const ValueId x = graph.add_input(Role::kInput, "x", type);
  const ValueId a = add(graph, x, x, "a");
  const ValueId s = stash(graph, a, 1, "s");
  const ValueId b = add(graph, a, x, "b");
  end_stash(graph, a, 1);
  const ValueId c = add(graph, b, x, "c");
  graph.set_phase(Phase::kBackward);
  const ValueId f = fetch(graph, s, 1, "f");
  const ValueId d = add(graph, c, x, "d");
  const ValueId g = end_fetch(graph, f, 1, "g");
  graph.mark_output(add(graph, g, d, "e"));
  return graph;
}

std::string why_not_changed(const std::function<void(ProgramSet&)>& change) {
  const Graph graph = offloaded();
  ProgramSet programs = plan_memory({{&graph}}, cpu_kernels());
  change(programs);
  return why_not(graph, programs);
}

TEST(CheckMemory, LeavesAloneWhatIsUnderWay) {
  EXPECT_EQ(why_not_changed([](ProgramSet&) {}), "");
  const auto drop = [](int program, int instruction) {
    return [=](ProgramSet& set) {
      std::vector<Instruction>& instructions = set.programs[program].instructions;
      instructions.erase(instructions.begin() + instruction);
    };
  };
  EXPECT_EQ(why_not_changed(drop(0, 3)),
            "program 'forward' has node 3 [stash_end] of the graph 0 times");
  EXPECT_EQ(why_not_changed(drop(1, 2)),
            "program 'backward' has node 7 [fetch_end] of the graph 0 times");
  // Nodes that end nothing, in graph and program alike.
  const auto of_other_channels = [](int node) {
    Graph graph = offloaded();
    std::vector<Node> nodes = graph.nodes();
    nodes[node].attrs.set("channel", int64_t{2});
    graph.replace_nodes(nodes);
    return why_not(graph, plan_memory({{&graph}}, cpu_kernels()));
  };
  for (const int node : {3, 7}) {
    EXPECT_NE(of_other_channels(node).find("ends work on channel 2 that nobody began"),
              std::string::npos);
  }
  // Waits a step too late.
  EXPECT_NE(why_not_changed([](ProgramSet& set) {
              std::swap(set.programs[1].instructions[2], set.programs[1].instructions[3]);
            }).find("reads 'g'"),
            std::string::npos);
  // Writes to what the copy still reads, and to what it still writes.
  const auto meddle = [](bool with_what_it_reads) {
    const Graph graph = offloaded();
    ProgramSet programs = plan_memory({{&graph}}, cpu_kernels());
    std::vector<Instruction>& instructions = programs.programs[0].instructions;
    Graph other = graph;  // whose third node reads x alone
    std::vector<Node> nodes = other.nodes();
    nodes[2].inputs[0] = nodes[2].inputs[1];
    other.replace_nodes(nodes);
    instructions[2].inputs[0] = instructions[2].inputs[1];
    instructions[2].outputs[0] =
        with_what_it_reads ? instructions[1].inputs[0] : instructions[1].outputs[0];
    return why_not(other, programs);
  };
  for (const bool with_what_it_reads : {true, false}) {
    EXPECT_NE(meddle(with_what_it_reads)
                  .find("where instruction 1 [stash] of program 'forward' is still at work"),
              std::string::npos)
        << meddle(with_what_it_reads);
  }
}

}  // namespace
}  // namespace skein
