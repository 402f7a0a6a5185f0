// Whether the memory that a plan needs is there.
//
// A GPU    the arenas of each rank must fit its device; what lies on the host (snapshot, loader,
//          offloaded arenas, the processes themselves) of all ranks of a node must fit the node's
//          memory
// A CPU    arenas and host memory of all ranks of a node share one memory, so their sum must fit
// Exact    except for the processes' own memory (skein/plan/process_bytes.h)
// Margin   a plan leaves PlanRequest::memory_margin of each memory free: what is said to fit must
//          also do so beside what the plan cannot know (a driver's memory, another process).
//          Training, which asks for what is free at that moment, has none: it refuses what does not
//          fit, and nothing else
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
  std::string limit;   // where the limit comes from, for people
  int64_t ranks = 1;   // the ranks that needed_bytes counts
  int64_t needed_bytes = 0;
  int64_t available_bytes = 0;
  int64_t margin_bytes = 0;  // of them, to be left free

  int64_t spare_bytes() const { return available_bytes - margin_bytes - needed_bytes; }
  bool fits() const { return spare_bytes() >= 0; }
};

// The bytes of a memory that a margin, a share of it, leaves free.
int64_t margin_of(int64_t bytes, double margin);

// The memory of a node of described hardware, taken as otherwise unused.
std::vector<MemoryLimit> memory_limits(const Hardware& hardware);

// The fit of the device, where it has memory of its own, and of the host's tightest limit; a memory
// of unknown size is left out. A node's need is that of the node that needs most.
std::vector<MemoryFit> memory_fits(const Plan& plan, std::span<const MemoryLimit> limits);

bool all_fit(std::span<const MemoryFit> fits);

// The fit with the least to spare; `fits` is not empty.
const MemoryFit& tightest(std::span<const MemoryFit> fits);

}  // namespace skein
