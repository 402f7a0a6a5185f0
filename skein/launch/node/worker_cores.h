// Divides the cores of a machine among its workers.
//
// Workers that compute together wait for each other at every collective. The scheduler sometimes
// puts two of them on one core for some milliseconds while another core is idle, and then all wait.
// So each worker is bound to its own cores if there are enough.
#pragma once

#include <sched.h>

#include <vector>

namespace skein {

// The cores that this thread may run on, ascending.
std::vector<int> usable_cores();

// The cores of worker `index` of `count`: adjacent ones, at least floor(cores / count); none where
// there are more workers than cores.
std::vector<int> cores_of_worker(const std::vector<int>& cores, int index, int count);

// Binds the calling thread, and the threads and processes that it starts, to `cores`; the
// destructor restores the calling thread's former cores. Does nothing where `cores` is empty or the
// system refuses, since only speed depends on it.
class BoundToCores {
 public:
  explicit BoundToCores(const std::vector<int>& cores);
  ~BoundToCores();
  BoundToCores(const BoundToCores&) = delete;
  BoundToCores& operator=(const BoundToCores&) = delete;

 private:
  bool bound_ = false;
  cpu_set_t former_;
};

}  // namespace skein
