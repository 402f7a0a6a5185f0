#include "skein/train/program_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace skein {

ProgramRuns program_runs(const StepSpec& spec, const ProgramSet& programs) {
  ProgramRuns runs;
  const auto is_there = [&](const std::string& name) {
    return std::any_of(programs.programs.begin(), programs.programs.end(),
                       [&](const Program& program) { return program.name == name; });
  };
  const bool several = spec.layout.virtual_stages > 1;
  std::set<int64_t> chunks;
  for (const Task& task : stage_tasks(pipeline_shape(spec), spec.layout.stage())) {
    const char* kind = task.kind == TaskKind::kForward ? "forward" : "backward";
    const std::string last = chunk_program(fmt::format("{}.last", kind), task.chunk, several);
    const bool is_last = task.micro_batch + 1 == spec.micro_batches && is_there(last);
    ++runs[is_last ? last : chunk_program(kind, task.chunk, several)];
    chunks.insert(task.chunk);
  }
  // Joining n sums takes n - 1 merges; all but the last sum are pushed first, each to the level of
  // the branch that it completes.
  const int64_t hosted = spec.layout.hosted_virtual_ranks();
  for (const int64_t chunk : chunks) {
    const auto count = [&](const char* mode, int64_t level) {
      ++runs[chunk_program(fmt::format("{}.{}", mode, level), chunk, several)];
    };
    for (int64_t rank = 0; hosted > 1 && rank < hosted; ++rank) {
      int64_t level = 0;
      for (; (rank >> level & 1) != 0; ++level) count("merge", level);
      if (rank + 1 < hosted) count("push", level);
      for (; rank + 1 == hosted && rank >> level != 0; ++level) {
        if ((rank >> level & 1) != 0) count("merge", level);
      }
    }
  }
  if (is_there("update")) runs["update"] = 1;
  return runs;
}

}  // namespace skein
