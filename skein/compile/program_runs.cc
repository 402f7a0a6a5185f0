#include "skein/compile/program_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "skein/base/text/units.h"
#include "skein/compile/whole_step.h"
#include "skein/passes/overlap/pair_programs.h"

namespace skein {
namespace {

class StepWriter {
 public:
  StepWriter(const StepSpec& spec, const ProgramSet& programs)
      : spec_(spec), several_(spec.layout.virtual_stages > 1) {
    for (const Program& program : programs.programs) names_.insert(program.name);
  }

  std::vector<ProgramRun> write() {
    const int64_t hosted = spec_.layout.hosted_virtual_ranks();
    const int64_t micro_batches = spec_.micro_batches / hosted;  // of a virtual rank
    if (names_.contains(kRoundWeightsProgram)) order_.push_back({kRoundWeightsProgram});
    const std::vector<Task> tasks = stage_tasks(spec_.pipeline(), spec_.layout.stage());
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].beside) {
        add_pair(tasks[i], tasks[i + 1]);
        ++i;
      } else {
        add_task(tasks[i]);
      }
      const Task& task = tasks[i];
      const bool ends_virtual_rank =
          task.micro_batch < spec_.micro_batches && (task.micro_batch + 1) % micro_batches == 0;
      if (hosted > 1 && task.kind == TaskKind::kBackward && ends_virtual_rank) {
        add_folds(task.chunk, task.micro_batch / micro_batches);
      }
    }
    return std::move(order_);
  }

 private:
  void add_task(const Task& task) {
    const std::string kind = task.kind == TaskKind::kForward ? "forward" : "backward";
    std::string name = chunk_program(kind, task.chunk, several_);
    const auto prefer = [&](const char* which) {
      std::string other = chunk_program(kind + which, task.chunk, several_);
      if (names_.contains(other)) name = std::move(other);
    };
    const bool is_first = task.micro_batch == 0;
    const bool is_last = task.micro_batch + 1 == spec_.pipeline().micro_batches;
    if (is_first) prefer(".first");
    if (is_last) prefer(".last");
    if (is_first && is_last) prefer(".only");
    order_.push_back({std::move(name), task.slot, task.micro_batch});
  }

  void add_pair(const Task& forward, const Task& backward) {
    const char* name =
        backward.micro_batch == 0 && names_.contains("pair.first") ? "pair.first" : "pair";
    order_.push_back(
        {name, backward.slot, backward.micro_batch, forward.micro_batch, forward.slot});
  }

  // The tree of gradient sums works like a binary counter: a level holds the sum of 2^level virtual
  // ranks that waits for its right neighbour. After the last virtual rank all levels are merged.
  void add_folds(int64_t chunk, int64_t virtual_rank) {
    const auto add = [&](const char* mode, int64_t level) {
      order_.push_back({chunk_program(fmt::format("{}.{}", mode, level), chunk, several_)});
    };
    int64_t level = 0;
    for (; (virtual_rank >> level & 1) != 0; ++level) add("merge", level);
    if (virtual_rank + 1 < spec_.layout.hosted_virtual_ranks()) return add("push", level);
    for (; virtual_rank >> level != 0; ++level) {
      if ((virtual_rank >> level & 1) != 0) add("merge", level);
    }
  }

  const StepSpec& spec_;
  const bool several_;
  std::set<std::string, std::less<>> names_;
  std::vector<ProgramRun> order_;
};

// The micro-batches of a shorter step that still has every kind of task in every slot, since a
// schedule repeats itself once all stages are busy.
int64_t rehearsed_micro_batches(const StepSpec& spec) {
  if (spec.empty_micro_batches > 0) return spec.micro_batches;
  const PipelineShape shape = spec.pipeline();
  const int64_t hosted = spec.layout.hosted_virtual_ranks();
  const int64_t enough = shape.pair_group > 0    ? 2 * kPairSlots * hosted
                         : shape.num_stages == 1 ? 2
                                                 : 3 * shape.num_stages;
  const int64_t period = shape.pair_group > 0 ? kPairSlots * hosted : shape.num_stages;
  for (int64_t n = round_up(enough, hosted); n < spec.micro_batches; n += hosted) {
    if (n % period == spec.micro_batches % period) return n;
  }
  return spec.micro_batches;
}

}  // namespace

std::vector<MemoryRun> rehearsal(const StepSpec& spec, const ProgramSet& programs) {
  StepSpec shorter = spec;
  shorter.micro_batches = rehearsed_micro_batches(spec);
  std::vector<MemoryRun> step;
  for (const ProgramRun& run : step_order(shorter, programs))
    step.push_back({run.program, run.slot});
  step.push_back({"update", 0, true});
  std::vector<MemoryRun> runs = step;
  for (const Program& program : programs.programs) {
    if (program.name.starts_with("evaluate")) runs.push_back({program.name});
  }
  runs.insert(runs.end(), step.begin(), step.end());
  if (spec.also_one_micro_batch) {
    shorter.micro_batches = 1;
    shorter.empty_micro_batches = 0;
    for (const ProgramRun& run : step_order(shorter, programs)) {
      runs.push_back({run.program, run.slot});
    }
    runs.push_back({"update", 0, true});
  }
  return runs;
}

std::vector<ProgramRun> step_order(const StepSpec& spec, const ProgramSet& programs) {
  return StepWriter(spec, programs).write();
}

ProgramRuns program_runs(const StepSpec& spec, const ProgramSet& programs) {
  ProgramRuns runs;
  const auto is_step = [](const Program& program) { return program.name == kStepProgram; };
  if (std::ranges::any_of(programs.programs, is_step)) return {{std::string(kStepProgram), 1}};
  for (const ProgramRun& run : step_order(spec, programs)) ++runs[run.program];
  for (const Program& program : programs.programs) {
    if (program.name == "update") runs["update"] = 1;
  }
  return runs;
}

}  // namespace skein
