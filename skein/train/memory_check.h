// Whether what all ranks are about to allocate fits, asked once, before the first of them takes
// any: several workers of a machine would each find the same free memory, and together be killed.
//
// Formula  of each limit (skein/runtime/host_memory.h) that ranks share: the sum of what they will
//          hold, their processes among it, against the least that one of them finds free and what
//          their processes hold already
// Errors   Error{kNoSpace}, the same on every rank, with the table of the plan and what would make
//          it fit: written by a rank that has the limit
// Cost     one all-gather of at most 0.5 KiB a rank
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/comm/communicator.h"
#include "skein/compile/step_programs.h"
#include "skein/plan/memory_fit.h"

namespace skein {

// A limit, as one rank sees it.
struct RankLimit {
  uint64_t id = 0;           // of who shares it; 0: nobody does
  int64_t needed_bytes = 0;  // by this rank
  int64_t held_bytes = 0;    // of them, what the process holds already and is not free any more
  int64_t free_bytes = 0;
};

struct LimitVerdict {
  int rank = 0;      // the lowest that has it
  size_t index = 0;  // in that rank's list
  int64_t ranks = 1;
  int64_t needed_bytes = 0;
  int64_t available_bytes = 0;
};

// The limit that is exceeded by most; nothing where all hold. `limits`: of every rank.
std::optional<LimitVerdict> exceeded_limit(std::span<const std::vector<RankLimit>> limits);

// Of this rank's programs; collective.
void check_memory(Communicator& world, const Device& device, const Config& config,
                  const StepSpec& spec, const ProgramSet& programs, int64_t snapshot_bytes);

// The same for all `workers` of this machine, none of which is started yet.
void check_memory_of_workers(const Config& config, const DecoderConfig& model, int64_t workers);

}  // namespace skein
