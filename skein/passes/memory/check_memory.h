// Runs programs on paper and sees that every instruction finds in memory the very values that the
// graph says it reads: the check of what plan_memory, and whoever changed programs since, have laid
// out.
//
//   1. an instruction reads what the value's producer wrote, whole; nothing wrote over any byte of
//      it
//   2. outputs and scratch lie on no input of the instruction, nor on each other, but as the op's
//      layout says; and where the layout says so, they do
//   3. what an op has begun and another will end (OpDef::ended_by) is left alone in between: what
//      it writes is neither read nor written, what it reads is not written
//   4. what outlives a step, weights, moments, gradient sums, results, is whole at the end of it
//   5. a program has every node of its phase and chunk, once; a pair those of two phases, which
//      come to the same as one after the other (passes/overlap/pair_programs.h)
//   6. nothing is expected in the workspace from one program to the next
//
// Cost    a few microseconds an instruction of each run
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/passes/memory/plan_memory.h"

namespace skein {

// One run of a program. `ends_step`: the host may look at all that outlives it.
struct MemoryRun {
  std::string program;
  int64_t slot = 0;
  bool ends_step = false;
};

// `graphs`: those that `programs` were planned from, in that order. `runs`: in the order of a run.
// Errors  Error{kInternal} naming program, step and values
void check_memory(const std::vector<const Graph*>& graphs, const ProgramSet& programs,
                  const std::vector<MemoryRun>& runs);

}  // namespace skein
