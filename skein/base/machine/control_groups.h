// The control groups that limit this process: cgroup v1 and v2, nested, and seen from inside a
// container, whose own group may be the root of what is mounted.
//
// Errors   none: what cannot be read limits nothing
// Threads  all may be called from any thread
// Source   cgroups(7); proc(5), mountinfo; the kernel's cgroup-v2.rst (cpu.max, memory.max) and
//          sched-bwc.rst (cpu.cfs_quota_us)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

struct ControlGroup {
  fs::path folder;
  std::string name;  // below the mount: "/", "/slurm/job_7"
  bool v2 = false;
};

// The groups of this process in the hierarchy of `controller` ("memory", "cpu"), each followed by
// those that hold it, as far up as they can be seen. `root` stands for / in tests.
std::vector<ControlGroup> control_groups(std::string_view controller, const fs::path& root = "/");

// The time of processors that a group may take.
struct CpuQuota {
  double cores = 0;   // microseconds of them in a microsecond
  std::string group;  // its name
  std::string by;     // "the control group /pod (cpu.max)"
};

// The least of the groups', of cpu.max (v2) or cpu.cfs_quota_us (v1); nothing where none has one.
std::optional<CpuQuota> cpu_quota(const fs::path& root = "/");

}  // namespace skein
