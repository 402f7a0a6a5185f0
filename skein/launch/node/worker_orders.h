// How a worker stays when its generation is over, and takes part in the next one: what it and its
// supervisor say to each other, over a socket that the worker inherits (SKEIN_ORDERS).
//
//   worker      "ended 76"       it has left its generation, with this exit code
//   supervisor  "noted"          it sends no more signals that belong to that generation
//   worker      "ready"          it has forgotten those: what comes now belongs to the next one
//   supervisor  "NAME=value\n…"  the next generation: the variables that a new process would have
//   closed                       there is none for this process
//
// Errors   Error{kPeerLost}, Error{kInvalid}: what comes over the socket is not a supervisor's
// Threads  the worker's main thread, once everything else of the generation has ended
#pragma once

#include <optional>

#include "skein/base/files/file.h"
#include "skein/launch/place/rank_info.h"

namespace skein {

// Tells the supervisor that this worker has left its generation with `exit_code`, and waits.
// Returns its place in the next one, with the output where that rank's belongs; nullopt: the
// process is to end. A signal that asks to stop, and comes after the next generation was announced,
// acts as it would on a new process.
std::optional<RankInfo> next_generation(const RankInfo& last, int exit_code,
                                        const fs::path& run_dir);

}  // namespace skein
