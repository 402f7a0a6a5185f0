// What this process may still take of the host's memory, and who says so.
//
// Limits   of the node: MemAvailable; CommitLimit where vm.overcommit_memory is 2; every cgroup
//          from this process's up to the root of what it sees, v1 and v2, less what is in use but
//          for page cache, which the kernel gives up first. Of the process: RLIMIT_AS and
//          RLIMIT_DATA. Swap does not count: training touches all that it holds in every step.
// Errors   none: what the system does not say, or says in another form, limits nothing
// Source   proc(5), cgroups(7), Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/base/file.h"

namespace skein {

struct MemoryLimit {
  // The same on all processes that share it, and on no others; empty: the process's own.
  std::string id;
  std::string by;  // for people: "free memory of this machine (MemAvailable)"
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;
  // What counts is what is mapped, resident or not: threads' stacks and the allocator's reserves.
  bool of_addresses = false;
};

struct HostMemory {
  std::vector<MemoryLimit> limits;
  int64_t own_bytes = 0;  // resident in this process and nobody else's: gone from what is free

  // The least that is free; null: nothing limits. Of addresses only where nothing else does.
  const MemoryLimit* tightest() const;
};

// `root` replaces "/" in tests.
HostMemory read_host_memory(const fs::path& root = "/");

// Throws Error{kNoSpace} where `bytes` more do not fit: naming what, how much is free and the
// limit.
void require_host_memory(int64_t bytes, const std::string& what);

}  // namespace skein
