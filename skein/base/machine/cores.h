// How many cores this process can use: as many as it may run on, or fewer where a control group
// limits its time (`docker run --cpus=4` on 64 cores).
//
// Formula  max(1, min(cores that it may run on, ceil(quota)))
// Why ceil a quota of 1.5 cores gives one thread 1.0 of them and two threads 1.5 in sum, though the
//          kernel then holds both for a part of every period (docs/launching.md has what was
//          measured)
// Threads  all may be called from any thread. A quota is read once a process; the cores that it may
//          run on at each call, since workers are bound to some of them
// Source   sched_setaffinity(2); skein/base/machine/control_groups.h
#pragma once

#include <optional>
#include <string>

#include "skein/base/machine/control_groups.h"

namespace skein {

// Of the process: the cores that the calling thread may run on, without a look at quotas.
int num_cores_to_run_on();

int num_cores();

// The same of given ones.
int num_cores(int to_run_on, const std::optional<CpuQuota>& quota);

// "2", or "2 of 64: the control group /pod (cpu.max) allows the time of 1.5".
std::string cores_text();
std::string cores_text(int to_run_on, const std::optional<CpuQuota>& quota);

// Whether a quota leaves fewer cores than the process may run on.
bool has_tight_quota();

}  // namespace skein
