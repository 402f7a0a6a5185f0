// Programs of pairs of micro-batches: what they consist of, in what order, and where it lies.
#include "skein/passes/overlap/pair_programs.h"

#include <gtest/gtest.h>

#include "skein/comm/communicator.h"
#include "skein/compile/program_runs.h"
#include "skein/ops/ops.h"
#include "skein/ops/redistribute/redistribute.h"
#include "tests/tiny_spec.h"

namespace skein {
namespace {

StepSpec paired_spec(int64_t tensor, int64_t context) {
  StepSpec spec = tiny_spec(Mesh::standard(1, 1, context, tensor), /*micro_batches=*/4);
  spec.in_pairs = true;
  return spec;
}

ProgramSet planned(const StepSpec& spec) {
  return plan_training(training_graphs(spec), spec, cpu_kernels());
}

std::vector<int> nodes(const Program& program, int64_t ahead) {
  std::vector<int> found;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.ahead == ahead) found.push_back(instruction.node);
  }
  return found;
}

TEST(PairPrograms, HaveBothHalvesInTheirOwnOrder) {
  const ProgramSet programs = planned(paired_spec(2, 1));
  for (const std::string first : {"", ".first"}) {
    const Program& pair = programs.program("pair" + first);
    EXPECT_EQ(nodes(pair, 0), nodes(programs.program("backward" + first), 0));
    EXPECT_EQ(nodes(pair, 1), nodes(programs.program("forward"), 0));
  }
}

// How many collectives of the layers have a product of the other half between start and wait.
std::pair<int, int> hidden_of_all(const Program& pair) {
  std::map<int64_t, std::pair<int64_t, bool>> under_way;  // channel: half, hidden
  int hidden = 0, all = 0;
  for (const Instruction& instruction : pair.instructions) {
    if (!instruction.op->ended_by.empty()) {
      under_way[instruction.attrs.integer("channel")] = {instruction.ahead, false};
    } else if (instruction.op->only_waits) {
      ++all;
      if (under_way.at(instruction.attrs.integer("channel")).second) ++hidden;
    } else if (instruction.op->name.starts_with("linear") || instruction.op->name == "attention") {
      for (auto& [channel, state] : under_way) state.second |= state.first != instruction.ahead;
    }
  }
  return {hidden, all};
}

TEST(PairPrograms, ComputeWhileTheOtherHalfWaits) {
  const std::pair<int64_t, int64_t> degrees[] = {{2, 1}, {1, 2}, {2, 2}};
  for (const auto& [tensor, context] : degrees) {
    const ProgramSet programs = planned(paired_spec(tensor, context));
    const auto [hidden, all] = hidden_of_all(programs.program("pair"));
    EXPECT_GT(all, 10) << tensor << " x " << context;
    EXPECT_GE(hidden, all / 2) << tensor << " x " << context << ": of " << all;
    for (const Instruction& instruction : programs.program("pair").instructions) {
      const bool is_whole =
          instruction.op == &kRedistribute && instruction.scope != "head" &&
          instruction.op->collective(bind_views(instruction, made_up_bases())).kind !=
              CollectiveKind::kBarrier;
      EXPECT_FALSE(is_whole) << "node " << instruction.node << " of " << instruction.scope;
    }
  }
}

std::string refusal(const StepSpec& spec, const ProgramSet& programs) {
  const TrainingGraphs graphs = training_graphs(spec);
  try {
    check_memory({&graphs.training, &graphs.evaluation}, programs, rehearsal(spec, programs));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has_slots(const std::vector<Operand>& operands) {
  return std::any_of(operands.begin(), operands.end(),
                     [](const Operand& operand) { return operand.slot_bytes > 0; });
}

TEST(PairPrograms, AreRefusedWhereAnInstructionTakesTheOtherMicroBatch) {
  const StepSpec spec = paired_spec(2, 1);
  const ProgramSet programs = planned(spec);
  EXPECT_EQ(refusal(spec, programs), "");
  const std::vector<Instruction>& order = programs.program("pair").instructions;
  int num_changed = 0;
  for (size_t i = 0; i < order.size(); i += 3) {
    if (order[i].op->name == "split") continue;  // a view, which does nothing
    if (!has_slots(order[i].inputs) && !has_slots(order[i].outputs)) continue;
    ProgramSet changed = programs;
    for (Program& program : changed.programs) {
      if (program.name == "pair") program.instructions[i].ahead = 1 - order[i].ahead;
    }
    EXPECT_NE(refusal(spec, changed), "")
        << "instruction " << i << " [" << order[i].op->name << "]";
    ++num_changed;
  }
  EXPECT_GT(num_changed, 10);
}

TEST(PairPrograms, AreRefusedWhereTheHalvesShareWorkspace) {
  StepSpec spec = paired_spec(2, 1);
  const TrainingGraphs graphs = training_graphs(spec);
  const std::vector<GraphToPlan> shared = {{&graphs.training,
                                            "forward",
                                            "backward",
                                            "update",
                                            {{0, kPairSlots}},
                                            /*several_micro_batches=*/true},
                                           {&graphs.evaluation, "evaluate", "", "evaluate_total"}};
  ProgramSet programs = plan_memory(shared, cpu_kernels());
  pair_programs(programs);
  const std::string refused = refusal(spec, programs);
  EXPECT_NE(refused.find("program 'pair"), std::string::npos) << refused;
  EXPECT_NE(refused.find("workspace"), std::string::npos) << refused;
}

TEST(PairPrograms, RunInEveryVirtualRankByItself) {
  StepSpec spec = paired_spec(2, 1);
  spec.layout.reduction_width = 2;  // two micro-batches each
  const ProgramSet programs = planned(spec);
  std::string order;
  for (const ProgramRun& run : step_order(spec, programs)) {
    order +=
        fmt::format("{} {}{}, ", run.program, run.slot,
                    run.ahead < 0 ? "" : fmt::format(" ({} in {})", run.ahead, run.slot_ahead));
  }
  EXPECT_EQ(order,
            "forward.first 0, pair.first 0 (1 in 1), backward 1, push.0 0, "
            "forward 0, pair 0 (3 in 1), backward 1, merge.0 0, ");
}

}  // namespace
}  // namespace skein
