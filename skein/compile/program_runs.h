// The order of a training step: which programs a rank runs, and how often. Training follows it, and
// a plan counts it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "skein/compile/step_programs.h"
#include "skein/passes/check_memory.h"

namespace skein {

struct ProgramRun {
  std::string program;
  int64_t slot = 0;
  int64_t micro_batch = -1;  // whose inputs it reads; -1: none
};

// Up to the update: the schedule's tasks on the stage of the spec's rank and, behind the last
// backward of a virtual rank, the moves that bring its sums into the tree. `programs`: of that
// stage.
std::vector<ProgramRun> step_order(const StepSpec& spec, const ProgramSet& programs);

// By program name, the update among them; those that a step does not run (evaluation) are absent.
using ProgramRuns = std::map<std::string, int64_t, std::less<>>;
ProgramRuns program_runs(const StepSpec& spec, const ProgramSet& programs);

// What check_memory runs on paper: two steps and an evaluation between them, of as many
// micro-batches as it takes to use all of the memory that is kept for them.
std::vector<MemoryRun> rehearsal(const StepSpec& spec, const ProgramSet& programs);

}  // namespace skein
