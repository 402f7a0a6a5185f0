#include "skein/plan/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "skein/base/error.h"
#include "skein/ir/graph_text.h"
#include "skein/plan/planned_run.h"
#include "skein/plan/stage_modules.h"

namespace skein {
namespace {

constexpr std::string_view kLast = "plan_memory";

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

std::string stablehlo_text(const PlanRequest& request, int64_t rank, const std::string& wanted,
                           bool is_narrow) {
  const StageModules stage(spec_of(request, rank), wanted, is_narrow);
  std::string text;
  stage.for_each("--print-stablehlo", [&](const StageModule& one) { text += one.module.text; });
  return text;
}

}  // namespace skein
