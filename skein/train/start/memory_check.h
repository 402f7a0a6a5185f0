// Checks that what all ranks are about to allocate fits, before the first of them allocates.
// Workers of one machine would each find the same free memory, and together exceed it and be
// killed.
//
// Formula  for each limit (skein/runtime/host_memory.h): sum of needed_bytes over the ranks that
//          share it <= the least free_bytes that one of them sees + sum of their held_bytes
// Errors   Error{kNoSpace}, the same on every rank, with the table of the plan and advice on what
//          would fit; the lowest rank under the limit writes the text
// Cost     one all-gather of 0.5 KiB a rank
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/comm/communicator.h"
#include "skein/compile/step_programs.h"
#include "skein/plan/memory_fit.h"

namespace skein {

// A memory limit as one rank sees it.
struct RankLimit {
  uint64_t id = 0;           // the same on all ranks that share it; 0: nobody shares it
  int64_t needed_bytes = 0;  // what this rank will hold, held_bytes included
  int64_t held_bytes = 0;    // what its process holds already, which free_bytes does not count
  int64_t free_bytes = 0;
};

struct LimitVerdict {
  int rank = 0;      // the lowest rank under the limit
  size_t index = 0;  // of the limit in that rank's list
  int64_t ranks = 1;
  int64_t needed_bytes = 0;
  int64_t available_bytes = 0;
};

// The limit that is exceeded by the most bytes; nullopt where all hold. `limits`: the lists of all
// ranks.
std::optional<LimitVerdict> exceeded_limit(std::span<const std::vector<RankLimit>> limits);

// Checks the needs of this rank's programs together with all other ranks'. Collective.
void check_memory(Communicator& world, const Device& device, const Config& config,
                  const StepSpec& spec, const ProgramSet& programs, int64_t snapshot_bytes);

// Whether `more_bytes` of host memory a rank fit beside what check_memory has checked; nothing:
// they do; else what is too small, for people. Collective, the same on every rank.
std::optional<std::string> lacks_memory_for(Communicator& world, const Device& device,
                                            const Config& config, const StepSpec& spec,
                                            const ProgramSet& programs, int64_t snapshot_bytes,
                                            int64_t more_bytes);

// The same for all `workers` of this machine, before any of them is started.
void check_memory_of_workers(const Config& config, const DecoderConfig& model, int64_t workers);

}  // namespace skein
