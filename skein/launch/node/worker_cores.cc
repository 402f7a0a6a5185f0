#include "skein/launch/node/worker_cores.h"

#include <unistd.h>

namespace skein {

std::vector<int> usable_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  } else {  // the machine has more than CPU_SETSIZE cores
    for (int core = 0; core < sysconf(_SC_NPROCESSORS_ONLN); ++core) cores.push_back(core);
  }
  return cores;
}

std::vector<int> cores_of_worker(const std::vector<int>& cores, int index, int count) {
  const int num_cores = static_cast<int>(cores.size());
  if (num_cores < count) return {};
  return {cores.begin() + num_cores * index / count,
          cores.begin() + num_cores * (index + 1) / count};
}

BoundToCores::BoundToCores(const std::vector<int>& cores) {
  if (cores.empty() || cores.back() >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  bound_ = sched_getaffinity(0, sizeof(former_), &former_) == 0 &&
           sched_setaffinity(0, sizeof(set), &set) == 0;
}

BoundToCores::~BoundToCores() {
  if (bound_) sched_setaffinity(0, sizeof(former_), &former_);
}

}  // namespace skein
