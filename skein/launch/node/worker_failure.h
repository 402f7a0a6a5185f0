// How a worker ended, and which of several failures is the cause of the others.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "skein/base/error.h"
#include "skein/base/files/file.h"

namespace skein {

struct WorkerFailure {
  int rank = 0;
  bool lost_peer = false;  // it failed only because another worker did
  bool told = false;       // the worker reported the failure itself
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // "rank 3 failed: ..."
};

// Builds a failure from `status` (of waitpid) and the worker's report; nullopt for exit codes 0 and
// 75.
// `out_of_memory`: the kernel killed processes of this machine for that meanwhile.
std::optional<WorkerFailure> worker_failure(int rank, int status,
                                            const std::optional<Error>& report, const fs::path& log,
                                            bool out_of_memory = false);

// The first failure that is not a lost peer, or else the first one. `failures`: in order of time,
// not empty.
const WorkerFailure& cause_of(std::span<const WorkerFailure> failures);

// How often the kernel has killed a process of this machine, or of this container, for its memory.
int64_t oom_kills();

}  // namespace skein
