// The groups of ranks that a rank communicates in.
//
// Order   collective: all ranks of the run form them together
// Errors  those of the backend's make_world and of split_by_axis
#pragma once

#include <memory>

#include "skein/comm/communicator.h"
#include "skein/compile/parallel.h"
#include "skein/config/config.h"
#include "skein/runtime/device.h"
#include "skein/runtime/executor.h"

namespace skein {

struct RankGroups {
  // The arguments must outlive the groups.
  RankGroups(const Config& config, const ParallelLayout& layout, Communicator& world,
             Device& device);

  const std::unique_ptr<Communicator> device_world;  // of all GPUs; else null
  Communicators by_axis;
};

}  // namespace skein
