// The hardware description of this machine shared by `ranks` workers, which a plan without
// --hardware takes its rates from. Products and copies are measured on each call, within half a
// second, with the threads of one worker; the links between workers are assumed.
// skein/cli/plan/calibrate.h measures all.
#pragma once

#include "skein/config/config.h"
#include "skein/schedule/hardware.h"

namespace skein {

// How `workers` share the cores of this machine.
struct WorkerCores {
  int64_t threads = 1;     // per worker
  int64_t concurrent = 1;  // workers for which there is a core per thread
};
WorkerCores share_cores(const Config& config, int64_t workers);

// Memory and cores of this machine without measurements; rates and links are placeholders.
Hardware this_machine_unmeasured(const Config& config, int64_t ranks);

Hardware describe_this_machine(const Config& config, int64_t ranks);

}  // namespace skein
