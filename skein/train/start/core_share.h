// How much of its threads' time a worker can have: all of it where every thread has a core, less
// where workers share cores or a control group limits their time
// (skein/base/machine/control_groups.h).
//
// Formula  min(1, cores / threads of all workers that may run on the same cores,
//          limit / threads of all workers under the same limit)
#pragma once

#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/comm/communicator.h"

namespace skein {

struct CoreUse {
  std::string machine;
  std::string cores;       // those that it may run on, as text: "0,1"
  int num_cores = 0;       // of them
  std::string limit;       // the cgroup that limits its time; "": none
  double limit_cores = 0;  // what that cgroup may use of them
  int threads = 0;
};

double core_share(const std::vector<CoreUse>& workers, const CoreUse& mine);

// Of this process, with `root` in place of / for tests.
CoreUse core_use(int threads, const fs::path& root = "/");

// The share of this rank among all ranks, which call it together.
double core_share(Communicator& world, int threads);

}  // namespace skein
