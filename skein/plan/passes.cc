#include "skein/plan/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "skein/base/error.h"
#include "skein/ir/graph_text.h"
#include "skein/ops/ops.h"
#include "skein/plan/planned_run.h"
#include "skein/stablehlo/lower.h"

namespace skein {
namespace {

constexpr std::string_view kLast = "plan_memory";
constexpr int64_t kMostReplicas = 256;  // a text says for each of them what localize does

StepSpec spec_of(const PlanRequest& request, int64_t rank) {
  return PlannedRun(request.config, request.model, request.ranks).spec_of_rank(rank);
}

// The passes of training. Evaluation has no other pass but the one that ends its sum.
std::vector<Pass> passes_of(const StepSpec& spec) {
  StepPasses passes = step_passes(spec);
  std::vector<Pass> all = std::move(passes.model);
  all.insert(all.end(), passes.training.begin(), passes.training.end());
  return all;
}

std::string line(std::string_view name, std::string_view does, bool enabled) {
  return fmt::format("{:<16}  {}{}\n", name, does, enabled ? "" : "  (off)");
}

void check_pass(const std::vector<Pass>& passes, const std::string& wanted) {
  std::vector<std::string_view> names;
  for (const Pass& pass : passes) {
    if (pass.name == wanted && !pass.enabled) {
      fail(ErrorCode::kUsage, "--print-after {}: this configuration does not need that pass",
           wanted);
    }
    if (pass.name == wanted) return;
    if (pass.enabled) names.push_back(pass.name);
  }
  if (wanted == kLast) return;
  names.push_back(kLast);
  fail(ErrorCode::kUsage, "--print-after {}: expected one of {}", wanted, fmt::join(names, ", "));
}

// The ranks of a mesh that run the programs of `rank`: those of its pipeline stage.
std::vector<int64_t> ranks_of_stage(const Mesh& mesh, int64_t rank) {
  const int axis = mesh.find("pp");
  std::vector<int64_t> ranks;
  for (int64_t other = 0; other < mesh.num_ranks(); ++other) {
    if (axis < 0 || mesh.coordinates(other)[axis] == mesh.coordinates(rank)[axis]) {
      ranks.push_back(other);
    }
  }
  return ranks;
}

// The instructions of a program as another rank has them. Only those of the training graph and the
// evaluation graph know ranks.
std::vector<Instruction> of_rank(const Program& program, const TrainingGraphs& graphs,
                                 int64_t rank) {
  std::vector<Instruction> instructions = program.instructions;
  if (program.graph > 1) return instructions;
  const Graph& graph = program.graph == 0 ? graphs.training : graphs.evaluation;
  for (Instruction& instruction : instructions) {
    if (instruction.op->localize == nullptr) continue;
    const Node& node = graph.nodes()[static_cast<size_t>(instruction.node)];
    instruction.op->localize(graph.call(node), rank, instruction.attrs);
  }
  return instructions;
}

}  // namespace

PlanRequest passes_request(const Config& config, int64_t ranks) {
  return memory_request(config, planned_model(config), ranks_to_plan(config, ranks));
}

std::string passes_text(const PlanRequest& request, int64_t rank) {
  const StepSpec spec = spec_of(request, rank);
  std::string text;
  for (const Pass& pass : passes_of(spec)) {
    text += line(pass.name, pass.does, pass.enabled);
  }
  return text + line(kLast, "gives every value a place, to the byte", true);
}

std::string text_after(const PlanRequest& request, int64_t rank, const std::string& wanted) {
  const StepSpec spec = spec_of(request, rank);
  check_pass(passes_of(spec), wanted);
  std::string text;
  const TrainingGraphs graphs = training_graphs(spec, [&](const Pass& pass, const Graph& graph) {
    if (pass.name == wanted) text = to_text(graph);
  });
  if (wanted != kLast) return text;
  const ProgramSet programs = plan_training(graphs, spec, request.kernels);
  for (const Program& program : programs.programs) text += to_string(program);
  return text;
}

std::string stablehlo_text(const PlanRequest& request, int64_t rank, const std::string& wanted) {
  StepSpec spec = spec_of(request, rank);
  spec.overlap = spec.in_pairs = false;  // the compiler orders operations itself
  const TrainingGraphs graphs = training_graphs(spec);
  const ProgramSet programs = plan_training(graphs, spec, {});
  const std::vector<int64_t> ranks = ranks_of_stage(programs.mesh, rank);
  if (std::ssize(ranks) > kMostReplicas) {
    fail(ErrorCode::kUsage,
         "--print-stablehlo: {} ranks run the programs of this stage: expected at most {}; add "
         "--ranks for fewer data ranks, whose programs differ in the groups of collectives alone",
         ranks.size(), kMostReplicas);
  }
  stablehlo::CellMap kept;
  for (const stablehlo::Cell& cell : stablehlo::cells_kept(programs)) kept.insert(cell);
  const stablehlo::RuleTable rules = stablehlo_rules();
  std::string text;
  std::vector<std::string_view> names;
  for (const Program& program : programs.programs) {
    names.push_back(program.name);
    if (!wanted.empty() && program.name != wanted) continue;
    std::vector<std::vector<Instruction>> by_rank;
    for (const int64_t one : ranks) by_rank.push_back(of_rank(program, graphs, one));
    text += stablehlo::write_module(
                {program.name, programs.mesh, ranks, {by_rank.begin(), by_rank.end()}, kept}, rules)
                .text;
  }
  if (text.empty()) {
    fail(ErrorCode::kUsage, "--print-stablehlo {}: expected one of {}", wanted,
         fmt::join(names, ", "));
  }
  return text;
}

}  // namespace skein
