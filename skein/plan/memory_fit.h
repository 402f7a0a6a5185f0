// Whether what a plan holds fits the memory that there is.
//
// A GPU    the arenas of each rank its device; what lies on the host (snapshot, loader, offloaded
//          arenas, the processes themselves) of all ranks of a node that node's memory
// A CPU    arenas and all the rest of all ranks of a node lie in one memory: the sum decides
// Exact    but for the processes (skein/plan/process_bytes.h)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "skein/runtime/host_memory.h"
#include "skein/schedule/hardware.h"

namespace skein {

struct Plan;

struct MemoryFit {
  std::string memory;  // "device", "host"; "device and host" where they are one
  std::string limit;   // who says so
  int64_t ranks = 1;   // whose needs these are
  int64_t needed_bytes = 0;
  int64_t available_bytes = 0;

  int64_t spare_bytes() const { return available_bytes - needed_bytes; }
  bool fits() const { return spare_bytes() >= 0; }
};

// What described hardware has: of a node that does nothing else.
std::vector<MemoryLimit> memory_limits(const Hardware& hardware);

// Of the device where it has memory of its own, and of the host's tightest limit; nothing where it
// is not known. Of the ranks of a node, those of the node that holds most.
std::vector<MemoryFit> memory_fits(const Plan& plan, std::span<const MemoryLimit> limits);

bool all_fit(std::span<const MemoryFit> fits);

// The one with the least to spare; `fits` is not empty.
const MemoryFit& tightest(std::span<const MemoryFit> fits);

}  // namespace skein
