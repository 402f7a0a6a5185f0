#include "skein/passes/memory/plan_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "skein/ir/graph_text.h"
#include "skein/ir/verify.h"
#include "skein/ops/ops.h"
#include "skein/passes/differentiate.h"
#include "skein/passes/hoist_transient.h"

namespace skein {
namespace {

constexpr const char* kBlock = R"(skein graph
mesh dp=1
parameter norm : bf16[64]
parameter wq : bf16[48, 64]
parameter wk : bf16[16, 64]
parameter wv : bf16[16, 64]
parameter wo : bf16[64, 48]
parameter head : bf16[96, 64]
input x : bf16[32, 64]
input labels : i32[32]
input attention_start : i32[32]
input loss_sum : f64[24]
forward
  y, h, rstd = rms_norm(x, _, norm) {epsilon=1e-05} : bf16[32, 64], bf16[32, 64], f32[32]
  q, k, v = linear(y, wq, wk, wv) {bias=false, f32_output=false, parts=3} : bf16[32, 48], bf16[32, 16], bf16[32, 16]
  o, lse = attention(q, k, v, attention_start) {causal=true, head_dim=16, heads=3, kv_heads=1, scale=0.25, sequence_length=32} : bf16[32, 48], f32[32, 3]
  p = linear(o, wo) {bias=false, f32_output=false, parts=1} : bf16[32, 64]
  z = add(h, p) : bf16[32, 64]
  g = linear(z, head) {bias=false, f32_output=false, parts=1} : bf16[32, 96]!
  e, d = softmax_cross_entropy(g, labels) {gradient_dtype="bf16"} : f32[32], bf16[32, 96]!
  loss = add_to_sum(loss_sum, e) : f64[24]
output loss
)";

Graph block() {
  Graph graph = parse_graph(kBlock, all_ops());
  differentiate(graph, graph.find("loss"));
  hoist_transient(graph);
  verify(graph, "hoist_transient");
  return graph;
}

TEST(PlanMemory, PartsOfALinearLieSideBySide) {
  const Graph graph = block();
  const ProgramSet set = plan_memory({{&graph}}, cpu_kernels());
  const auto offset = [&](const char* name) { return set.operand(name).offset_bytes; };
  EXPECT_EQ(offset("wk") - offset("wq"), 48 * 64 * 2);
  EXPECT_EQ(offset("wv") - offset("wk"), 16 * 64 * 2);
  EXPECT_EQ(offset("grad.wk") - offset("grad.wq"), 48 * 64 * 4);
  for (const Instruction& instruction : set.program("forward").instructions) {
    if (instruction.op->name != "linear" || instruction.outputs.size() != 3) continue;
    EXPECT_EQ(instruction.outputs[1].offset_bytes - instruction.outputs[0].offset_bytes, 48 * 2);
    EXPECT_EQ(instruction.outputs[2].offset_bytes - instruction.outputs[1].offset_bytes, 16 * 2);
    for (const Operand& output : instruction.outputs) EXPECT_EQ(output.row_stride, 80);
  }
}

// y = x w of so many rows of x, with a weight of so many columns.
Graph product(int64_t rows, int64_t cols) {
  return parse_graph(
      fmt::format("skein graph\nmesh dp=1\nparameter w : f32[{1}, 8]\ninput x : f32[{0}, 8]\n"
                  "forward\n  y = linear(x, w) {{bias=false, f32_output=false, parts=1}} : "
                  "f32[{0}, {1}]\noutput y\n",
                  rows, cols),
      all_ops());
}

// Programs for fewer tokens share what programs for more read and give.
TEST(PlanMemory, ALaterGraphMayHaveFewerRowsOfInputsAndOutputsAlone) {
  const Graph large = product(32, 16), small = product(5, 16), other = product(32, 12);
  const ProgramSet set =
      plan_memory({{&large, "large", "", ""}, {&small, "small", "", ""}}, cpu_kernels());
  const ProgramSet alone = plan_memory({{&large, "large", "", ""}}, cpu_kernels());
  EXPECT_EQ(set.arena_bytes, alone.arena_bytes);
  EXPECT_EQ(set.operand("x").shape, Shape({32, 8}));
  const Instruction& in_small = set.program("small").instructions.at(0);
  EXPECT_EQ(in_small.inputs[0].shape, Shape({5, 8}));
  EXPECT_EQ(in_small.inputs[0].offset_bytes, set.operand("x").offset_bytes);
  EXPECT_EQ(in_small.outputs[0].offset_bytes, set.operand("y").offset_bytes);
  const auto refuses = [&](const Graph& first, const Graph& second) {
    EXPECT_THROW(plan_memory({{&first, "a", "", ""}, {&second, "b", "", ""}}, cpu_kernels()),
                 Error);
  };
  refuses(small, large);  // the rows would not be there
  refuses(large, other);  // a weight is whole in every program
}

// The bytes that an operand may touch: [first, last) of its arena.
std::pair<int64_t, int64_t> extent(const Operand& operand) {
  const int64_t rows = operand.shape.rank() < 2 ? 1 : operand.shape.rows();
  const int64_t elements = (rows - 1) * operand.row_stride + operand.shape.cols();
  return {operand.offset_bytes, operand.offset_bytes + elements * size_of(operand.dtype)};
}

// The value whose producer really wrote the memory that `id` shows.
ValueId written_as(const Graph& graph, ValueId id) {
  const int producer = graph.value(id).producer;
  if (producer < 0) return id;
  const Node& node = graph.nodes()[producer];
  if (node.op->layout == nullptr) return id;
  for (const Alias& alias : node.op->layout(graph.call(node)).aliases) {
    if (!alias.in_place && node.outputs[alias.output] == id) {
      return written_as(graph, node.inputs[alias.input]);
    }
  }
  return id;
}

// Whether an op may write output `output` where it reads input `input`.
bool works_in_place(const Layout& layout, int output, int input) {
  return std::any_of(layout.aliases.begin(), layout.aliases.end(), [&](const Alias& alias) {
    return alias.in_place && alias.output == output && alias.input == input;
  });
}

bool is_view(const Layout& layout, int output) {
  return std::any_of(layout.aliases.begin(), layout.aliases.end(),
                     [&](const Alias& alias) { return !alias.in_place && alias.output == output; });
}

using Address = std::pair<Arena, int64_t>;

// Of the first byte of each element.
std::vector<Address> addresses(const Operand& operand) {
  std::vector<Address> all;
  const int64_t rows = operand.shape.rank() < 2 ? 1 : operand.shape.rows();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < operand.shape.cols(); ++col) {
      const int64_t element = row * operand.row_stride + col;
      all.emplace_back(operand.arena, operand.offset_bytes + element * size_of(operand.dtype));
    }
  }
  return all;
}

// Runs the programs on paper: every byte remembers which value wrote it last. A step must find its
// inputs as their producers left them, and writes none of its results where it reads, unless the op
// works in place. Aliases hand memory on: the owner is the newest value of the chain.
TEST(PlanMemory, NoValueIsOverwrittenWhileItIsNeeded) {
  const Graph graph = block();
  const ProgramSet set = plan_memory({{&graph}}, cpu_kernels());
  std::map<Address, ValueId> owner;
  size_t at_node = 0;
  for (const char* name : {"forward", "backward"}) {
    for (const Instruction& instruction : set.program(name).instructions) {
      const Node& node = graph.nodes()[at_node++];
      ASSERT_EQ(node.op, instruction.op);
      std::multimap<Address, int> reads;
      for (int i = 0; i < std::ssize(instruction.inputs); ++i) {
        if (node.inputs[i] == kNoValue) continue;
        const ValueId id = written_as(graph, node.inputs[i]);
        for (const Address& address : addresses(instruction.inputs[i])) {
          reads.emplace(address, i);
          if (graph.value(id).producer < 0) continue;
          ASSERT_EQ(graph.value(owner[address]).name, graph.value(id).name) << node.op->name;
        }
      }
      Layout layout;
      if (node.op->layout != nullptr) layout = node.op->layout(graph.call(node));
      for (int i = 0; i < std::ssize(instruction.outputs); ++i) {
        if (is_view(layout, i)) continue;
        for (const Address& address : addresses(instruction.outputs[i])) {
          const auto [first, last] = reads.equal_range(address);
          for (auto read = first; read != last; ++read) {
            ASSERT_TRUE(works_in_place(layout, i, read->second))
                << "[" << node.op->name << "] writes '" << graph.value(node.outputs[i]).name
                << "' over '" << graph.value(node.inputs[read->second]).name << "'";
          }
          owner[address] = node.outputs[i];
        }
      }
    }
  }
  EXPECT_EQ(at_node, graph.nodes().size());
}

TEST(PlanMemory, EverythingLiesInsideItsArena) {
  const Graph graph = block();
  const ProgramSet set = plan_memory({{&graph}}, cpu_kernels());
  for (const Program& program : set.programs) {
    for (const Instruction& instruction : program.instructions) {
      for (const auto* operands : {&instruction.inputs, &instruction.outputs}) {
        for (const Operand& operand : *operands) {
          if (!operand.present()) continue;
          const auto [first, last] = extent(operand);
          EXPECT_GE(first, 0);
          EXPECT_LE(last, set.arena_bytes[static_cast<int>(operand.arena)]);
        }
      }
      EXPECT_LE(instruction.scratch_offset_bytes + instruction.scratch_bytes,
                set.arena_bytes[static_cast<int>(Arena::kWorkspace)]);
    }
  }
}

TEST(PlanMemory, GraphsShareWhatTheyName) {
  const Graph training = block();
  const Graph evaluation = parse_graph(kBlock, all_ops());
  const ProgramSet alone = plan_memory({{&training}}, cpu_kernels());
  const ProgramSet both =
      plan_memory({{&training}, {&evaluation, "evaluate", "", ""}}, cpu_kernels());
  EXPECT_EQ(both.operand("wq").offset_bytes, alone.operand("wq").offset_bytes);
  for (const Arena arena : {Arena::kWeights, Arena::kGradients, Arena::kInputs}) {
    EXPECT_EQ(both.arena_bytes[static_cast<int>(arena)],
              alone.arena_bytes[static_cast<int>(arena)]);
  }
  EXPECT_FALSE(both.program("evaluate").instructions.empty());
}

}  // namespace
}  // namespace skein
