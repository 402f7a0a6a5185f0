// The hardware description of this machine as `ranks` workers share it: what a plan without
// --hardware takes times from. Products and copies are measured now, within half a second, with the
// threads of one worker; the links between workers are assumed. skein/cli/calibrate.h measures
// all.
#pragma once

#include "skein/config/config.h"
#include "skein/schedule/hardware.h"

namespace skein {

// How `workers` share the cores of this machine.
struct WorkerCores {
  int64_t threads = 1;     // of a worker
  int64_t concurrent = 1;  // workers that find a core for every thread at once
};
WorkerCores share_cores(const Config& config, int64_t workers);

// What needs no measuring: a CPU's memory, how workers share it; rates and links are made up.
Hardware this_machine_unmeasured(const Config& config, int64_t ranks);

Hardware describe_this_machine(const Config& config, int64_t ranks);

}  // namespace skein
