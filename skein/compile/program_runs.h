// The order of a training step: which programs a rank runs, and how often. Training and the plan
// both use it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "skein/compile/step_programs.h"
#include "skein/passes/memory/check_memory.h"

namespace skein {

struct ProgramRun {
  std::string program;
  int64_t slot = 0;
  int64_t micro_batch = -1;  // the one whose inputs it reads; -1: none
  // The one whose forward a pair runs, and its slot; -1: none.
  int64_t ahead = -1;
  int64_t slot_ahead = -1;
};

// All runs before the update: the schedule's tasks on the stage of the spec's rank and, after the
// last backward of each virtual rank, the programs that add its gradient sums to the tree.
// `programs`: those of that stage.
std::vector<ProgramRun> step_order(const StepSpec& spec, const ProgramSet& programs);

// Runs per program name, the update included. Programs that a training step does not run, such as
// evaluation, are absent.
using ProgramRuns = std::map<std::string, int64_t, std::less<>>;
ProgramRuns program_runs(const StepSpec& spec, const ProgramSet& programs);

// The runs that passes/memory/check_memory.h simulates: two steps with an evaluation between them,
// with as many micro-batches as it takes to use every activation slot.
std::vector<MemoryRun> rehearsal(const StepSpec& spec, const ProgramSet& programs);

}  // namespace skein
