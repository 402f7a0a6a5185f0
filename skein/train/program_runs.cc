#include "skein/train/program_runs.h"

#include <fmt/format.h>

#include <set>

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
    for (const Task& task : stage_tasks(pipeline_shape(spec_), spec_.layout.stage())) {
      add_task(task);
      const bool ends_virtual_rank = (task.micro_batch + 1) % micro_batches == 0;
      if (hosted > 1 && task.kind == TaskKind::kBackward && ends_virtual_rank) {
        add_folds(task.chunk, task.micro_batch / micro_batches);
      }
    }
    return std::move(order_);
  }

 private:
  void add_task(const Task& task) {
    const char* kind = task.kind == TaskKind::kForward ? "forward" : "backward";
    std::string name = chunk_program(fmt::format("{}.last", kind), task.chunk, several_);
    if (task.micro_batch + 1 < spec_.micro_batches || !names_.contains(name)) {
      name = chunk_program(kind, task.chunk, several_);
    }
    order_.push_back({std::move(name), task.slot, task.micro_batch});
  }

  // The tree of gradient sums, like a binary counter: a level holds the sum of 2^level virtual ranks
  // that waits for its right neighbour. After the last one all levels join.
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

}  // namespace

std::vector<ProgramRun> step_order(const StepSpec& spec, const ProgramSet& programs) {
  return StepWriter(spec, programs).write();
}

ProgramRuns program_runs(const StepSpec& spec, const ProgramSet& programs) {
  ProgramRuns runs;
  for (const ProgramRun& run : step_order(spec, programs)) ++runs[run.program];
  for (const Program& program : programs.programs) {
    if (program.name == "update") runs["update"] = 1;
  }
  return runs;
}

}  // namespace skein
