// How much more host memory this process may use, and which limit says so.
//
// Limits   of the node: MemAvailable; CommitLimit where vm.overcommit_memory is 2; every cgroup (v1
//          and v2) from this process's up to the visible root, less its usage without page cache,
//          which the kernel reclaims first. Of the process: RLIMIT_AS and RLIMIT_DATA. Swap does
//          not count: training touches everything that it holds in every step.
// Errors   none: a limit that the system does not report, or reports in another form, is ignored
// Source   proc(5), cgroups(7), Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

struct MemoryLimit {
  // Equal for all processes that share the limit, and only for them; empty: the process's own.
  std::string id;
  std::string by;  // for people: "free memory of this machine (MemAvailable)"
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;
  // Counts mapped memory, resident or not, and so threads' stacks and the allocator's reserves.
  bool of_addresses = false;
};

struct HostMemory {
  std::vector<MemoryLimit> limits;
  int64_t own_bytes = 0;  // resident in this process alone; no longer part of what is free

  // The limit that leaves the least free; null: there is none.
  const MemoryLimit* tightest() const;
};

// `root` replaces "/" in tests.
HostMemory read_host_memory(const fs::path& root = "/");

// Throws Error{kNoSpace} if `bytes` more do not fit, naming `what`, the free bytes and the limit.
void require_host_memory(int64_t bytes, const std::string& what);

}  // namespace skein
